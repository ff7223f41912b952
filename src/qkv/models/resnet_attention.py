"""Residual networks with attention between their stages: Wang et al. 2018, "Non-local Neural Networks"."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.layers.norm import LayerNorm
from qkv.models.checks import check_config, check_heads
from qkv.models.resnet import SIZES as RESNET_SIZES
from qkv.models.resnet import ResNet, ResNetConfig

__all__ = ["SIZES", "AttentionResNet", "AttentionResNetConfig", "NonLocal"]


@dataclass(frozen=True)
class AttentionResNetConfig(ResNetConfig):
    """What the network is made of: all of `ResNetConfig`, and

    Attributes:
        looks_after: the stages after which each cell looks at all cells, counted from 0.
        heads: attention heads of each look.
    """

    looks_after: tuple[int, ...] = (1, 2)
    heads: int = 4

    def __post_init__(self):
        super().__post_init__()
        check_config(self, "heads")
        for stage in self.looks_after:
            if not 0 <= stage < len(self.widths):
                raise ConfigError(f"size.looks_after has {stage}", expected=f"stages, from 0 to {len(self.widths) - 1}")
            check_heads(self.channels(stage), self.heads)


SIZES = RESNET_SIZES


class NonLocal(nn.Module):
    """Adds to each cell what it sees on the whole grid (Wang et al. 2018, eq. 6); at first it adds nothing."""

    def __init__(self, dim: int, heads: int, stream: str):
        super().__init__()
        self.norm = LayerNorm(dim)
        self.attention = Attention(dim, heads, between=(stream, stream))
        nn.init.zeros_(self.attention.output.weight)

    def forward(self, maps: Float[Tensor, "batch dim row column"]) -> Float[Tensor, "batch dim row column"]:
        cells = self.norm(maps.permute(0, 2, 3, 1))
        return maps + self.attention(cells).permute(0, 3, 1, 2)


class AttentionResNet(ResNet):
    """Convolutions see what is near; between the stages every cell sees every other."""

    Config, SIZES = AttentionResNetConfig, SIZES

    def __init__(self, config: AttentionResNetConfig):
        super().__init__(config)
        for stage in config.looks_after:
            self.stages[stage].append(NonLocal(config.channels(stage), config.heads, f"stage.{stage}"))
