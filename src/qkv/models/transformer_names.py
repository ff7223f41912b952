"""The Transformer's weights under the names of others.

`marian` serves the models of Marian (Junczys-Dowmunt et al. 2018) as published for ``transformers`` under the name
OPUS-MT (Tiedemann and Thottingal 2020): the norm after the sum, swish, all sines before all cosines, a bias for each
word of the output, and a decoder that starts at the padding word.
"""

from collections.abc import Mapping
from typing import Any

from qkv.errors import RunError
from qkv.models.transformer import TransformerConfig
from qkv.weights.names import Drop, Layout, Row, Tied, columns

__all__ = ["marian", "marian_config", "marian_config_of"]

BLOCKS = columns("""
    encoder.{block}.attention.query.{part}                 model.encoder.layers.{block}.self_attn.q_proj.{part}
    encoder.{block}.attention.key.{part}                   model.encoder.layers.{block}.self_attn.k_proj.{part}
    encoder.{block}.attention.value.{part}                 model.encoder.layers.{block}.self_attn.v_proj.{part}
    encoder.{block}.attention.output.{part}                model.encoder.layers.{block}.self_attn.out_proj.{part}
    encoder.{block}.attention_residual.norm.{part}         model.encoder.layers.{block}.self_attn_layer_norm.{part}
    encoder.{block}.feed_forward.expand.{part}             model.encoder.layers.{block}.fc1.{part}
    encoder.{block}.feed_forward.reduce.{part}             model.encoder.layers.{block}.fc2.{part}
    encoder.{block}.feed_forward_residual.norm.{part}      model.encoder.layers.{block}.final_layer_norm.{part}

    decoder.{block}.attention.query.{part}                 model.decoder.layers.{block}.self_attn.q_proj.{part}
    decoder.{block}.attention.key.{part}                   model.decoder.layers.{block}.self_attn.k_proj.{part}
    decoder.{block}.attention.value.{part}                 model.decoder.layers.{block}.self_attn.v_proj.{part}
    decoder.{block}.attention.output.{part}                model.decoder.layers.{block}.self_attn.out_proj.{part}
    decoder.{block}.attention_residual.norm.{part}         model.decoder.layers.{block}.self_attn_layer_norm.{part}
    decoder.{block}.cross.query.{part}                     model.decoder.layers.{block}.encoder_attn.q_proj.{part}
    decoder.{block}.cross.key.{part}                       model.decoder.layers.{block}.encoder_attn.k_proj.{part}
    decoder.{block}.cross.value.{part}                     model.decoder.layers.{block}.encoder_attn.v_proj.{part}
    decoder.{block}.cross.output.{part}                    model.decoder.layers.{block}.encoder_attn.out_proj.{part}
    decoder.{block}.cross_residual.norm.{part}             model.decoder.layers.{block}.encoder_attn_layer_norm.{part}
    decoder.{block}.feed_forward.expand.{part}             model.decoder.layers.{block}.fc1.{part}
    decoder.{block}.feed_forward.reduce.{part}             model.decoder.layers.{block}.fc2.{part}
    decoder.{block}.feed_forward_residual.norm.{part}      model.decoder.layers.{block}.final_layer_norm.{part}
""")

WORDS = {  # by what the model ties
    "all": (
        Tied(
            ("source.words.weight", "target.words.weight", "output.weight"),
            (
                "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                "lm_head.weight",
            ),
        ),
    ),
    "output": (
        *columns("source.words.weight model.encoder.embed_tokens.weight"),
        Tied(("target.words.weight", "output.weight"), ("model.decoder.embed_tokens.weight", "lm_head.weight")),
    ),
    "none": (
        *columns("""
            source.words.weight    model.encoder.embed_tokens.weight
            target.words.weight    model.decoder.embed_tokens.weight
            output.weight          lm_head.weight
        """),
        Drop((), "model.shared.weight"),  # there in a file whose config ties nothing, and then used by nobody
    ),
}  # fmt: skip


def marian(tie: str) -> Layout:
    """Names of ``transformers.MarianMTModel``, for a config of this ``tie``."""
    return Layout((
        *WORDS[tie],
        *BLOCKS,
        Row("output.bias", "final_logits_bias"),
        Drop((), "model.encoder.embed_positions.weight"),
        Drop((), "model.decoder.embed_positions.weight"),
    ))  # fmt: skip


# What a Marian config may say in one way only for us to be the same model, and what transformers takes if it is silent.
REQUIRED = {
    "scale_embedding": (True, False),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
    "static_position_embeddings": (True, True),
}
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}


def marian_config(theirs: Mapping[str, Any]) -> TransformerConfig:
    """Our config for the ``config.json`` of a published Marian model.

    Raises:
        RunError: it is no Marian model, or does something that our Transformer does not.
    """
    if theirs.get("model_type") != "marian":
        raise RunError(f"the model is of the type {theirs.get('model_type')!r}", expected="marian (an OPUS-MT model)")
    for key, (value, silent) in REQUIRED.items():
        if theirs.get(key, silent) != value:
            raise RunError(f"the model's config says {key} = {theirs.get(key, silent)!r}", expected=f"{value!r}")
    for key in ("attention_heads", "ffn_dim"):
        if theirs[f"encoder_{key}"] != theirs[f"decoder_{key}"]:
            raise RunError(
                f"encoder_{key} is {theirs[f'encoder_{key}']} and decoder_{key} is {theirs[f'decoder_{key}']}",
                expected="the same in encoder and decoder",
            )
    activation = theirs.get("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        raise RunError(f"the activation {activation!r} is not one of ours", expected=", ".join(ACTIVATIONS))
    shared, tied = theirs.get("share_encoder_decoder_embeddings", True), theirs.get("tie_word_embeddings", True)
    return TransformerConfig(
        source_words=theirs["vocab_size"],
        target_words=theirs["vocab_size"] if shared else theirs.get("decoder_vocab_size") or theirs["vocab_size"],
        dim=theirs["d_model"],
        encoder_depth=theirs["encoder_layers"],
        decoder_depth=theirs["decoder_layers"],
        heads=theirs["encoder_attention_heads"],
        hidden=theirs["encoder_ffn_dim"],
        dropout=theirs.get("dropout", 0.1),
        activation=ACTIVATIONS[activation],
        positions="sinusoidal-halves",
        tie="none" if not tied else "all" if shared else "output",
        output_bias=True,
    )


def marian_config_of(ours: TransformerConfig) -> dict[str, Any]:
    """The ``config.json`` of our model as a Marian model (without its special ids).

    Raises:
        RunError: our model does something that a Marian model does not.
    """
    marian = {"order": "post", "norm": "layer", "score": "scaled", "positions": "sinusoidal-halves", "join": "added"}
    for key, value in marian.items():
        if getattr(ours, key) != value:
            raise RunError(f"a Marian model cannot have {key} = {getattr(ours, key)!r}", expected=f"{value!r}")
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": ours.source_words,
        "decoder_vocab_size": ours.target_words,
        "d_model": ours.dim,
        "encoder_layers": ours.encoder_depth,
        "decoder_layers": ours.decoder_depth,
        "encoder_attention_heads": ours.heads,
        "decoder_attention_heads": ours.heads,
        "encoder_ffn_dim": ours.hidden,
        "decoder_ffn_dim": ours.hidden,
        "dropout": ours.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "activation_function": ours.activation,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "share_encoder_decoder_embeddings": ours.tie == "all",
        "tie_word_embeddings": ours.tie != "none",
        "is_encoder_decoder": True,
        "dtype": "float32",
    }
