"""The Vision Transformer's weights under the names of others.

===============  ======================================================================================
origin           whose names
===============  ======================================================================================
``timm``         timm's ``VisionTransformer`` (and its distilled DeiT)
``torchvision``  torchvision's ``VisionTransformer``
``hf``           Hugging Face's ``ViTForImageClassification``; with a distillation token
                 ``DeiTForImageClassificationWithTeacher``; as their files hold them
``npz``          the original release, of JAX: kernels are (in, out), and parted into heads
===============  ======================================================================================
"""

from qkv.errors import RunError, nearest
from qkv.models.vit import ViTConfig
from qkv.weights.names import Fuse, Heads, Layout, Permute, Rule, Split, Transpose, columns

__all__ = ["ORIGINS", "vit"]

OURS = tuple("blocks.{block}.attention." + name for name in ("query", "key", "value"))


def vit(origin: str, config: ViTConfig) -> Layout:
    """Names of an origin, for a config.

    Raises:
        RunError: the origin is unknown.
    """
    if origin not in ORIGINS:
        raise RunError(f"no names of {origin!r} are known for a ViT", remedy=nearest(origin, ORIGINS))
    return Layout(ORIGINS[origin](config))


def _timm(config: ViTConfig) -> tuple[Rule, ...]:
    norm = "norm" if config.pool == "class" else "fc_norm"  # timm's name where tokens are pooled first
    return (
        _first(config, "cls_token", "dist_token"),
        *columns(f"""
            patches.registers.table                             reg_token
            patches.position.table                              pos_embed
            patches.patch.projection.{{part}}                   patch_embed.proj.{{part}}
            blocks.{{block}}.attention_residual.norm.{{part}}   blocks.{{block}}.norm1.{{part}}
            blocks.{{block}}.attention.output.{{part}}          blocks.{{block}}.attn.proj.{{part}}
            blocks.{{block}}.feed_forward_residual.norm.{{part}} blocks.{{block}}.norm2.{{part}}
            blocks.{{block}}.feed_forward.expand.{{part}}       blocks.{{block}}.mlp.fc1.{{part}}
            blocks.{{block}}.feed_forward.reduce.{{part}}       blocks.{{block}}.mlp.fc2.{{part}}
            norm.{{part}}                                       {norm}.{{part}}
            head.hidden.{{part}}                                pre_logits.fc.{{part}}
            head.output.{{part}}                                head.{{part}}
            distilled_head.output.{{part}}                      head_dist.{{part}}
        """),
        Fuse(tuple(f"{name}.{{part}}" for name in OURS), "blocks.{block}.attn.qkv.{part}"),
    )


def _torchvision(config: ViTConfig) -> tuple[Rule, ...]:
    attention = "encoder.layers.encoder_layer_{block}.self_attention"
    return (
        *columns("""
            patches.first.table                              class_token
            patches.position.table                           encoder.pos_embedding
            patches.patch.projection.{part}                  conv_proj.{part}
            blocks.{block}.attention_residual.norm.{part}    encoder.layers.encoder_layer_{block}.ln_1.{part}
            blocks.{block}.feed_forward_residual.norm.{part} encoder.layers.encoder_layer_{block}.ln_2.{part}
            blocks.{block}.feed_forward.expand.{part}        encoder.layers.encoder_layer_{block}.mlp.0.{part}
            blocks.{block}.feed_forward.reduce.{part}        encoder.layers.encoder_layer_{block}.mlp.3.{part}
            norm.{part}                                      encoder.ln.{part}
            head.hidden.{part}                               heads.pre_logits.{part}
            head.output.{part}                               heads.head.{part}
        """),
        *columns(f"blocks.{{block}}.attention.output.{{part}} {attention}.out_proj.{{part}}"),
        Fuse(tuple(f"{name}.weight" for name in OURS), f"{attention}.in_proj_weight"),
        Fuse(tuple(f"{name}.bias" for name in OURS), f"{attention}.in_proj_bias"),
    )


def _hf(config: ViTConfig) -> tuple[Rule, ...]:
    model, head = ("deit", "cls_classifier") if config.distilled else ("vit", "classifier")
    layer = f"{model}.encoder.layer.{{block}}"
    return (
        _first(config, f"{model}.embeddings.cls_token", f"{model}.embeddings.distillation_token"),
        *columns(f"""
            patches.position.table                               {model}.embeddings.position_embeddings
            patches.patch.projection.{{part}}                    {model}.embeddings.patch_embeddings.projection.{{part}}
            blocks.{{block}}.attention_residual.norm.{{part}}    {layer}.layernorm_before.{{part}}
            blocks.{{block}}.attention.query.{{part}}            {layer}.attention.attention.query.{{part}}
            blocks.{{block}}.attention.key.{{part}}              {layer}.attention.attention.key.{{part}}
            blocks.{{block}}.attention.value.{{part}}            {layer}.attention.attention.value.{{part}}
            blocks.{{block}}.attention.output.{{part}}           {layer}.attention.output.dense.{{part}}
            blocks.{{block}}.feed_forward_residual.norm.{{part}} {layer}.layernorm_after.{{part}}
            blocks.{{block}}.feed_forward.expand.{{part}}        {layer}.intermediate.dense.{{part}}
            blocks.{{block}}.feed_forward.reduce.{{part}}        {layer}.output.dense.{{part}}
            norm.{{part}}                                        {model}.layernorm.{{part}}
            head.output.{{part}}                                 {head}.{{part}}
            distilled_head.output.{{part}}                       distillation_classifier.{{part}}
        """),
    )


def _npz(config: ViTConfig) -> tuple[Rule, ...]:
    block, theirs = "blocks.{block}", "Transformer/encoderblock_{block}"
    attention = f"{theirs}/MultiHeadDotProductAttention_1"
    return (
        *columns(f"""
            patches.first.table                      cls
            patches.position.table                   Transformer/posembed_input/pos_embedding
            patches.patch.projection.bias            embedding/bias
            {block}.attention_residual.norm.weight   {theirs}/LayerNorm_0/scale
            {block}.attention_residual.norm.bias     {theirs}/LayerNorm_0/bias
            {block}.attention.output.bias            {attention}/out/bias
            {block}.feed_forward_residual.norm.weight {theirs}/LayerNorm_2/scale
            {block}.feed_forward_residual.norm.bias  {theirs}/LayerNorm_2/bias
            {block}.feed_forward.expand.bias         {theirs}/MlpBlock_3/Dense_0/bias
            {block}.feed_forward.reduce.bias         {theirs}/MlpBlock_3/Dense_1/bias
            norm.weight                              Transformer/encoder_norm/scale
            norm.bias                                Transformer/encoder_norm/bias
            head.hidden.bias                         pre_logits/bias
            head.output.bias                         head/bias
        """),
        Permute("patches.patch.projection.weight", "embedding/kernel", order=(3, 2, 0, 1)),
        *(
            rule
            for name in ("query", "key", "value")
            for rule in (
                Heads(f"{block}.attention.{name}.weight", f"{attention}/{name}/kernel", heads=config.heads, dim=1),
                Heads(f"{block}.attention.{name}.bias", f"{attention}/{name}/bias", heads=config.heads),
            )
        ),
        Heads(f"{block}.attention.output.weight", f"{attention}/out/kernel", heads=config.heads),
        Transpose(f"{block}.feed_forward.expand.weight", f"{theirs}/MlpBlock_3/Dense_0/kernel"),
        Transpose(f"{block}.feed_forward.reduce.weight", f"{theirs}/MlpBlock_3/Dense_1/kernel"),
        Transpose("head.hidden.weight", "pre_logits/kernel"),
        Transpose("head.output.weight", "head/kernel"),
    )


def _first(config: ViTConfig, token: str, distillation: str) -> Rule:
    return Split("patches.first.table", (token, distillation) if config.distilled else (token,), dim=1)


ORIGINS = {"timm": _timm, "torchvision": _torchvision, "hf": _hf, "npz": _npz}
