"""MLP-Mixer's weights under the names of others: timm, and the original release of JAX (npz)."""

from qkv.errors import RunError, nearest
from qkv.models.mixer import MixerConfig
from qkv.weights.names import Layout, Permute, Rule, Transpose, columns

__all__ = ["ORIGINS", "mixer"]


def mixer(origin: str, config: MixerConfig) -> Layout:
    """Names of an origin; a Mixer's are the same for every config.

    Raises:
        RunError: the origin is unknown.
    """
    if origin not in ORIGINS:
        raise RunError(f"no names of {origin!r} are known for a Mixer", remedy=nearest(origin, ORIGINS))
    return Layout(ORIGINS[origin])


TIMM: tuple[Rule, ...] = columns("""
    patches.projection.{part}                           stem.proj.{part}
    blocks.{block}.mixing_residual.norm.{part}          blocks.{block}.norm1.{part}
    blocks.{block}.mixing.mlp.expand.{part}             blocks.{block}.mlp_tokens.fc1.{part}
    blocks.{block}.mixing.mlp.reduce.{part}             blocks.{block}.mlp_tokens.fc2.{part}
    blocks.{block}.feed_forward_residual.norm.{part}    blocks.{block}.norm2.{part}
    blocks.{block}.feed_forward.expand.{part}           blocks.{block}.mlp_channels.fc1.{part}
    blocks.{block}.feed_forward.reduce.{part}           blocks.{block}.mlp_channels.fc2.{part}
    norm.{part}                                         norm.{part}
    head.output.{part}                                  head.{part}
""")

NPZ: tuple[Rule, ...] = (
    *columns("""
        patches.projection.bias                            stem/bias
        blocks.{block}.mixing_residual.norm.weight         MixerBlock_{block}/LayerNorm_0/scale
        blocks.{block}.mixing_residual.norm.bias           MixerBlock_{block}/LayerNorm_0/bias
        blocks.{block}.mixing.mlp.expand.bias              MixerBlock_{block}/token_mixing/Dense_0/bias
        blocks.{block}.mixing.mlp.reduce.bias              MixerBlock_{block}/token_mixing/Dense_1/bias
        blocks.{block}.feed_forward_residual.norm.weight   MixerBlock_{block}/LayerNorm_1/scale
        blocks.{block}.feed_forward_residual.norm.bias     MixerBlock_{block}/LayerNorm_1/bias
        blocks.{block}.feed_forward.expand.bias            MixerBlock_{block}/channel_mixing/Dense_0/bias
        blocks.{block}.feed_forward.reduce.bias            MixerBlock_{block}/channel_mixing/Dense_1/bias
        norm.weight                                        pre_head_layer_norm/scale
        norm.bias                                          pre_head_layer_norm/bias
        head.output.bias                                   head/bias
    """),
    Permute("patches.projection.weight", "stem/kernel", order=(3, 2, 0, 1)),
    Transpose("blocks.{block}.mixing.mlp.expand.weight", "MixerBlock_{block}/token_mixing/Dense_0/kernel"),
    Transpose("blocks.{block}.mixing.mlp.reduce.weight", "MixerBlock_{block}/token_mixing/Dense_1/kernel"),
    Transpose("blocks.{block}.feed_forward.expand.weight", "MixerBlock_{block}/channel_mixing/Dense_0/kernel"),
    Transpose("blocks.{block}.feed_forward.reduce.weight", "MixerBlock_{block}/channel_mixing/Dense_1/kernel"),
    Transpose("head.output.weight", "head/kernel"),
)

ORIGINS = {"timm": TIMM, "npz": NPZ}
