"""BERT's weights under the names of others: ``transformers``' BERT and DistilBERT, with and without a head.

Their files name the encoder ``bert.`` or ``distilbert.`` where there is a head, and have no such prefix where there is
none. Very old ones call the numbers of a norm gamma and beta.
"""

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from qkv.errors import RunError
from qkv.models.bert import BertConfig
from qkv.weights.names import Drop, Layout, Rename, Rule, Tied, columns

__all__ = ["bert", "bert_config", "bert_config_of", "modern"]

ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "silu": "swish", "swish": "swish"}
HEADS = {  # of a BERT and of a DistilBERT: our head -> the class of transformers
    "bert": {
        "pretrain": "BertForPreTraining", "words": "BertForMaskedLM", "class": "BertForSequenceClassification",
        "tag": "BertForTokenClassification", "none": "BertModel",
    },
    "distilbert": {
        "words": "DistilBertForMaskedLM", "class": "DistilBertForSequenceClassification",
        "tag": "DistilBertForTokenClassification", "none": "DistilBertModel",
    },
}  # fmt: skip


def modern(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same by the names of today."""
    new = {"gamma": "weight", "beta": "bias"}
    return {".".join(new.get(step, step) for step in name.split(".")): tensor for name, tensor in theirs.items()}


def bert(kind: str, config: BertConfig) -> Layout:
    """Names of a "bert" or a "distilbert", for a config."""
    prefix = "" if config.head == "none" else f"{kind}."
    return Layout((*(_bert if kind == "bert" else _distilbert)(prefix), *_words(kind, prefix, config)))


def _bert(prefix: str) -> tuple[Rule, ...]:
    layer = f"{prefix}encoder.layer.{{block}}"
    return (
        *columns(f"""
            tokens.position.table                               {prefix}embeddings.position_embeddings.weight
            tokens.segments.weight                              {prefix}embeddings.token_type_embeddings.weight
            tokens.norm.{{part}}                                {prefix}embeddings.LayerNorm.{{part}}
            blocks.{{block}}.attention.query.{{part}}           {layer}.attention.self.query.{{part}}
            blocks.{{block}}.attention.key.{{part}}             {layer}.attention.self.key.{{part}}
            blocks.{{block}}.attention.value.{{part}}           {layer}.attention.self.value.{{part}}
            blocks.{{block}}.attention.output.{{part}}          {layer}.attention.output.dense.{{part}}
            blocks.{{block}}.attention_residual.norm.{{part}}   {layer}.attention.output.LayerNorm.{{part}}
            blocks.{{block}}.feed_forward.expand.{{part}}       {layer}.intermediate.dense.{{part}}
            blocks.{{block}}.feed_forward.reduce.{{part}}       {layer}.output.dense.{{part}}
            blocks.{{block}}.feed_forward_residual.norm.{{part}} {layer}.output.LayerNorm.{{part}}
            pooler.layer.{{part}}                               {prefix}pooler.dense.{{part}}
            head.words.hidden.{{part}}                          cls.predictions.transform.dense.{{part}}
            head.words.norm.{{part}}                            cls.predictions.transform.LayerNorm.{{part}}
            head.next.output.{{part}}                           cls.seq_relationship.{{part}}
            head.output.{{part}}                                classifier.{{part}}
        """),
        Drop((), f"{prefix}embeddings.position_ids"),
    )


def _distilbert(prefix: str) -> tuple[Rule, ...]:
    layer = f"{prefix}transformer.layer.{{block}}"
    return columns(f"""
        tokens.position.table                               {prefix}embeddings.position_embeddings.weight
        tokens.norm.{{part}}                                {prefix}embeddings.LayerNorm.{{part}}
        blocks.{{block}}.attention.query.{{part}}           {layer}.attention.q_lin.{{part}}
        blocks.{{block}}.attention.key.{{part}}             {layer}.attention.k_lin.{{part}}
        blocks.{{block}}.attention.value.{{part}}           {layer}.attention.v_lin.{{part}}
        blocks.{{block}}.attention.output.{{part}}          {layer}.attention.out_lin.{{part}}
        blocks.{{block}}.attention_residual.norm.{{part}}   {layer}.sa_layer_norm.{{part}}
        blocks.{{block}}.feed_forward.expand.{{part}}       {layer}.ffn.lin1.{{part}}
        blocks.{{block}}.feed_forward.reduce.{{part}}       {layer}.ffn.lin2.{{part}}
        blocks.{{block}}.feed_forward_residual.norm.{{part}} {layer}.output_layer_norm.{{part}}
        pooler.layer.{{part}}                               pre_classifier.{{part}}
        head.words.hidden.{{part}}                          vocab_transform.{{part}}
        head.words.norm.{{part}}                            vocab_layer_norm.{{part}}
        head.output.{{part}}                                classifier.{{part}}
    """)


def _words(kind: str, prefix: str, config: BertConfig) -> tuple[Rule, ...]:
    """The table of token vectors, which the output for words shares."""
    table = f"{prefix}embeddings.word_embeddings.weight"
    if config.head != "pretrain":
        return (Rename("tokens.words.weight", table),)
    if kind == "distilbert":
        output, biases = "vocab_projector.weight", ("vocab_projector.bias",)
    else:
        output, biases = "cls.predictions.decoder.weight", ("cls.predictions.bias", "cls.predictions.decoder.bias")
    return (
        Tied(("tokens.words.weight", "head.words.output.weight"), (table, output)),
        Tied(("head.words.output.bias",), biases),
    )


def bert_config(theirs: Mapping[str, Any], names: Collection[str]) -> BertConfig:
    """Our config for the ``config.json`` of a published model whose weights have these (modern) names.

    Raises:
        RunError: it is none of these, or does something that ours does not.
    """
    kind = theirs.get("model_type")
    if kind not in HEADS:
        raise RunError(f"the model is of the type {kind!r}", expected=" or ".join(HEADS))
    made = (theirs.get("architectures") or [""])[0]
    known = {cls: head for head, cls in HEADS[kind].items()}
    if made and made not in known:
        raise RunError(f"the model is a {made}", expected=", ".join(known))
    for key, value in (("position_embedding_type", "absolute"), ("is_decoder", False), ("sinusoidal_pos_embds", False)):
        if theirs.get(key, value) != value:
            raise RunError(f"the model's config says {key} = {theirs[key]!r}", expected=f"{value!r}")
    pooler = any(name.endswith(("pooler.dense.weight", "pre_classifier.weight")) for name in names)
    if {"cls.predictions.bias", "vocab_projector.bias"} & set(names):
        head = "pretrain"
    elif "classifier.weight" in names:
        head = known.get(made) or ("class" if pooler else "tag")
    else:
        head = "none"
    distil = kind == "distilbert"
    activation = theirs.get("activation" if distil else "hidden_act", "gelu")
    if activation not in ACTIVATIONS:
        raise RunError(f"the activation {activation!r} is not one of ours", expected=", ".join(ACTIVATIONS))
    dropout = "dropout" if distil else "hidden_dropout_prob"
    return BertConfig(
        words=theirs["vocab_size"],
        segments=0 if distil else theirs.get("type_vocab_size", 2),
        longest=theirs.get("max_position_embeddings", 512),
        dim=theirs["dim" if distil else "hidden_size"],
        depth=theirs["n_layers" if distil else "num_hidden_layers"],
        heads=theirs["n_heads" if distil else "num_attention_heads"],
        hidden=theirs["hidden_dim" if distil else "intermediate_size"],
        dropout=theirs.get(dropout, 0.1),
        activation=ACTIVATIONS[activation],
        head=head,
        next="cls.seq_relationship.weight" in names,
        pooler=pooler,
        pooler_activation="relu" if distil else "tanh",
        eps=1e-12 if distil else theirs.get("layer_norm_eps", 1e-12),
    )


def bert_config_of(ours: BertConfig) -> tuple[str, dict[str, Any]]:
    """The kind of model that ours is to others, and its ``config.json`` (without its labels and the id that pads).

    Raises:
        RunError: it is none that others have.
    """
    kind = "distilbert" if ours.segments == 0 else "bert"
    head = "words" if ours.head == "pretrain" and not ours.next else ours.head
    if head not in HEADS[kind]:
        raise RunError(f"a {kind} has no head for {head}", expected=", ".join(HEADS[kind]))
    needs = head in ("pretrain", "class")
    activation = "relu" if kind == "distilbert" else "tanh"
    for key, right in (("pool", ours.pool == "cls" or not needs), ("pooler", ours.pooler or not needs)):
        if not right:
            raise RunError(
                f"a {HEADS[kind][head]} cannot have {key} = {getattr(ours, key)!r}", expected="cls, and a pooler"
            )
    if ours.pooler and ours.pooler_activation != activation:
        raise RunError(f"the pooler of a {kind} has a {activation}, and this one a {ours.pooler_activation}")
    if kind == "distilbert" and ours.eps != 1e-12:
        raise RunError(f"a distilbert cannot have eps = {ours.eps!r}", expected="1e-12")
    names = {"swish": "silu"}
    common = {
        "model_type": kind, "architectures": [HEADS[kind][head]], "vocab_size": ours.words,
        "max_position_embeddings": ours.longest, "dtype": "float32",
    }  # fmt: skip
    activation = names.get(ours.activation, ours.activation)
    if kind == "distilbert":
        return kind, common | {
            "dim": ours.dim, "n_layers": ours.depth, "n_heads": ours.heads, "hidden_dim": ours.hidden,
            "dropout": ours.dropout, "attention_dropout": ours.attention_dropout, "activation": activation,
            "sinusoidal_pos_embds": False, "seq_classif_dropout": ours.dropout,
        }  # fmt: skip
    return kind, common | {
        "hidden_size": ours.dim, "num_hidden_layers": ours.depth, "num_attention_heads": ours.heads,
        "intermediate_size": ours.hidden, "hidden_act": activation, "hidden_dropout_prob": ours.dropout,
        "attention_probs_dropout_prob": ours.attention_dropout, "type_vocab_size": ours.segments,
        "layer_norm_eps": ours.eps,
    }  # fmt: skip
