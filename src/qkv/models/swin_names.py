"""Swin's weights under the names of others: timm, torchvision and Hugging Face (as their files hold them).

Stages merge cells as they begin, as timm counts them; for Hugging Face the merging ends the stage before, and for
torchvision it is a stage of its own.
"""

import math

from qkv.errors import RunError, nearest
from qkv.layers.position import RelativeBias
from qkv.models.swin import SwinConfig
from qkv.weights.names import Drop, Fuse, Layout, Rule, columns

__all__ = ["ORIGINS", "swin"]


def swin(origin: str, config: SwinConfig) -> Layout:
    """Names of an origin, for a config.

    Raises:
        RunError: the origin is unknown.
    """
    if origin not in ORIGINS:
        raise RunError(f"no names of {origin!r} are known for a Swin", remedy=nearest(origin, ORIGINS))
    return Layout(ORIGINS[origin](config))


class _WithIndex(Rule):
    """Theirs is our table of distances, and beside it the row of the table for each query and key of a window."""

    def load(self, theirs):
        return theirs[:1]

    def save(self, ours):
        return [*ours, RelativeBias(1, (math.isqrt(len(ours[0])) + 1) // 2).index.flatten()]


def _block(ours: str, theirs: str, mlp: tuple[str, str]) -> tuple[Rule, ...]:
    """Names of a block for timm and torchvision, but for those of its relative positions."""
    return (
        *columns(f"""
            {ours}.attention_residual.norm.{{part}}      {theirs}.norm1.{{part}}
            {ours}.attention.output.{{part}}             {theirs}.attn.proj.{{part}}
            {ours}.feed_forward_residual.norm.{{part}}   {theirs}.norm2.{{part}}
            {ours}.feed_forward.expand.{{part}}          {theirs}.mlp.{mlp[0]}.{{part}}
            {ours}.feed_forward.reduce.{{part}}          {theirs}.mlp.{mlp[1]}.{{part}}
        """),
        Fuse(
            tuple(f"{ours}.attention.{name}.{{part}}" for name in ("query", "key", "value")),
            f"{theirs}.attn.qkv.{{part}}",
        ),
    )


def _timm(config: SwinConfig) -> tuple[Rule, ...]:
    ours, theirs = "stages.{stage}.blocks.{block}", "layers.{stage}.blocks.{block}"
    return (
        *columns(f"""
            patches.projection.{{part}}                patch_embed.proj.{{part}}
            patch_norm.{{part}}                        patch_embed.norm.{{part}}
            {ours}.attention.bias.table                {theirs}.attn.relative_position_bias_table
            stages.{{stage}}.merge.norm.{{part}}       layers.{{stage}}.downsample.norm.{{part}}
            stages.{{stage}}.merge.reduction.{{part}}  layers.{{stage}}.downsample.reduction.{{part}}
            norm.{{part}}                              norm.{{part}}
            head.output.{{part}}                       head.fc.{{part}}
        """),
        *_block(ours, theirs, ("fc1", "fc2")),
        Drop((), f"{theirs}.attn.relative_position_index"),  # in old files
    )


def _torchvision(config: SwinConfig) -> tuple[Rule, ...]:
    rules = [
        *columns("""
            patches.projection.{part}    features.0.0.{part}
            patch_norm.{part}            features.0.2.{part}
            norm.{part}                  norm.{part}
            head.output.{part}           head.{part}
        """)
    ]
    for stage in range(len(config.depths)):
        ours, theirs = f"stages.{stage}.blocks.{{block}}", f"features.{2 * stage + 1}.{{block}}"
        beside = tuple(f"{theirs}.attn.relative_position_{what}" for what in ("bias_table", "index"))
        rules += [*_block(ours, theirs, ("0", "3")), _WithIndex(f"{ours}.attention.bias.table", beside)]
        rules += columns(f"""
            stages.{stage + 1}.merge.norm.{{part}}        features.{2 * stage + 2}.norm.{{part}}
            stages.{stage + 1}.merge.reduction.{{part}}   features.{2 * stage + 2}.reduction.{{part}}
        """)
    return tuple(rules)


def _hf(config: SwinConfig) -> tuple[Rule, ...]:
    ours, theirs = "stages.{stage}.blocks.{block}", "swin.encoder.layers.{stage}.blocks.{block}"
    rules = [
        *columns(f"""
            patches.projection.{{part}}                  swin.embeddings.patch_embeddings.projection.{{part}}
            patch_norm.{{part}}                          swin.embeddings.norm.{{part}}
            {ours}.attention_residual.norm.{{part}}      {theirs}.layernorm_before.{{part}}
            {ours}.attention.query.{{part}}              {theirs}.attention.self.query.{{part}}
            {ours}.attention.key.{{part}}                {theirs}.attention.self.key.{{part}}
            {ours}.attention.value.{{part}}              {theirs}.attention.self.value.{{part}}
            {ours}.attention.bias.table                  {theirs}.attention.self.relative_position_bias_table
            {ours}.attention.output.{{part}}             {theirs}.attention.output.dense.{{part}}
            {ours}.feed_forward_residual.norm.{{part}}   {theirs}.layernorm_after.{{part}}
            {ours}.feed_forward.expand.{{part}}          {theirs}.intermediate.dense.{{part}}
            {ours}.feed_forward.reduce.{{part}}          {theirs}.output.dense.{{part}}
            norm.{{part}}                                swin.layernorm.{{part}}
            head.output.{{part}}                         classifier.{{part}}
        """),
        Drop((), f"{theirs}.attention.self.relative_position_index"),
    ]
    for stage in range(len(config.depths) - 1):
        rules += columns(f"""
            stages.{stage + 1}.merge.norm.{{part}}       swin.encoder.layers.{stage}.downsample.norm.{{part}}
            stages.{stage + 1}.merge.reduction.{{part}}  swin.encoder.layers.{stage}.downsample.reduction.{{part}}
        """)
    return tuple(rules)


ORIGINS = {"timm": _timm, "torchvision": _torchvision, "hf": _hf}
