"""Attention in place of convolution: Ramachandran et al. 2019, "Stand-Alone Self-Attention in Vision Models"."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.layers.convolution import BottleneckBlock
from qkv.layers.near import neighbours
from qkv.layers.position import NearBias
from qkv.models.checks import check_config, check_heads
from qkv.models.resnet import ResNet, ResNetConfig

__all__ = ["SIZES", "LocalAttentionConfig", "LocalAttentionNet"]


@dataclass(frozen=True)
class LocalAttentionConfig(ResNetConfig):
    """What the network is made of: all of `ResNetConfig` (its blocks are bottlenecks), and

    Attributes:
        reach: how many cells away a cell looks, each way: 3 is a neighbourhood of 7 x 7.
        heads: attention heads of each layer.
    """

    block: str = "bottleneck"
    reach: int = 3
    heads: int = 4

    def __post_init__(self):
        super().__post_init__()
        check_config(self, "reach", "heads")
        if self.block != "bottleneck":
            raise ConfigError(
                f"size.block is {self.block!r}, and attention takes the place of the one 3 x 3 convolution of a block",
                expected="bottleneck",
            )
        for width in self.widths:
            check_heads(width, self.heads)


SIZES = {  #        stem_width      widths              depths
    "nano":  dict(stem="small", stem_width=16, widths=(16, 32), depths=(1, 1)),
    "tiny":  dict(stem="small", stem_width=32, widths=(16, 32, 64), depths=(2, 2, 2)),
    "26":    dict(depths=(1, 2, 4, 1)),
    "38":    dict(depths=(2, 3, 5, 2)),
    "50":    dict(depths=(3, 4, 6, 3)),
}  # fmt: skip
SIZES |= {"small": SIZES["26"], "base": SIZES["50"]}


class LocalAttention(nn.Module):
    """Each cell looks at those around it, for a 3 x 3 convolution; a stride averages afterwards (section 3.1)."""

    def __init__(self, dim: int, heads: int, reach: int, stride: int, stream: str):
        super().__init__()
        self.reach, self.stride = reach, stride
        self.attention = Attention(dim, heads, bias=NearBias(heads, reach), between=(stream, stream))
        self.norm = nn.BatchNorm2d(dim)

    def forward(self, maps: Float[Tensor, "batch dim row column"]) -> Float[Tensor, "batch dim row2 column2"]:
        cells = maps.permute(0, 2, 3, 1)
        near = neighbours(*cells.shape[1:3], self.reach, maps.device)
        maps = self.attention(cells, mask=near).permute(0, 3, 1, 2)
        if self.stride > 1:
            maps = functional.avg_pool2d(maps, self.stride, ceil_mode=True)
        return self.norm(maps)


class LocalAttentionNet(ResNet):
    """A residual network that looks where it would convolve; its stem still convolves, as the authors found best."""

    Config, SIZES = LocalAttentionConfig, SIZES

    def block(self, stage: int, inside: int, stride: int, shortcut: nn.Module) -> nn.Module:
        c, stream = self.config, f"stage.{stage - (stride > 1)}"  # it looks before it strides
        looks = LocalAttention(c.widths[stage], c.heads, c.reach, stride, stream)
        return BottleneckBlock(inside, c.widths[stage], stride, shortcut, looks)
