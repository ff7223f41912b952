"""Parts of residual networks (He et al. 2016): convolution and norm, two blocks, two stems, two shortcuts."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["BLOCKS", "SHORTCUTS", "STEMS", "BasicBlock", "BottleneckBlock", "ConvolutionNorm", "PaddedShortcut", "Stem"]


class ConvolutionNorm(nn.Module):
    """A convolution without bias, which the norm after it would take away again, and batch norm; both sides padded."""

    def __init__(self, inside: int, outside: int, size: int, stride: int = 1):
        super().__init__()
        self.convolution = nn.Conv2d(inside, outside, size, stride, padding=size // 2, bias=False)
        self.norm = nn.BatchNorm2d(outside)
        nn.init.kaiming_normal_(self.convolution.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, maps: Float[Tensor, "batch inside row column"]) -> Float[Tensor, "batch outside row2 column2"]:
        return self.norm(self.convolution(maps))


class PaddedShortcut(nn.Module):
    """Every ``stride``-th cell, and zeros for the new channels, half on each side (He et al. 2016, option A)."""

    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.new, self.stride = outside - inside, stride

    def forward(self, maps: Float[Tensor, "batch inside row column"]) -> Float[Tensor, "batch outside row2 column2"]:
        maps = maps[:, :, :: self.stride, :: self.stride]
        return functional.pad(maps, (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))


def _projected(inside: int, outside: int, stride: int) -> ConvolutionNorm:
    return ConvolutionNorm(inside, outside, 1, stride)


SHORTCUTS = {"projected": _projected, "padded": PaddedShortcut}  # where shapes differ; elsewhere it is the identity


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut (He et al. 2016, figure 5 left)."""

    expansion = 1

    def __init__(self, inside: int, width: int, stride: int, shortcut: nn.Module):
        super().__init__()
        self.first, self.second = ConvolutionNorm(inside, width, 3, stride), ConvolutionNorm(width, width, 3)
        self.shortcut = shortcut

    def forward(self, maps: Float[Tensor, "batch inside row column"]) -> Float[Tensor, "batch outside row2 column2"]:
        return (self.second(self.first(maps).relu()) + self.shortcut(maps)).relu()


class BottleneckBlock(nn.Module):
    """1 x 1 to a quarter of the channels, 3 x 3, and 1 x 1 back (He et al. 2016, figure 5 right).

    The 3 x 3 convolution strides, as in all weights published since, and not the first one. Something else that strides
    may stand in its place, as ``second``.
    """

    expansion = 4

    def __init__(self, inside: int, width: int, stride: int, shortcut: nn.Module, second: nn.Module | None = None):
        super().__init__()
        self.first = ConvolutionNorm(inside, width, 1)
        self.second = ConvolutionNorm(width, width, 3, stride) if second is None else second
        self.third = ConvolutionNorm(width, 4 * width, 1)
        self.shortcut = shortcut

    def forward(self, maps: Float[Tensor, "batch inside row column"]) -> Float[Tensor, "batch outside row2 column2"]:
        return (self.third(self.second(self.first(maps).relu()).relu()) + self.shortcut(maps)).relu()


BLOCKS = {"basic": BasicBlock, "bottleneck": BottleneckBlock}


class Stem(nn.Module):
    """One convolution, and for photographs a pooling over 3 x 3 after it."""

    def __init__(self, width: int, size: int, stride: int, pool: bool):
        super().__init__()
        self.first, self.pool = ConvolutionNorm(3, width, size, stride), pool

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch outside row column"]:
        maps = self.first(image).relu()
        return functional.max_pool2d(maps, 3, 2, 1) if self.pool else maps


STEMS = {
    "large": lambda width: Stem(width, 7, 2, pool=True),  # a quarter of the sides: photographs
    "small": lambda width: Stem(width, 3, 1, pool=False),  # every pixel counts: images below 64 pixels
}
