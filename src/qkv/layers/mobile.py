"""Parts of mobile networks (Sandler et al. 2018): convolutions padded as in TensorFlow, and the inverted bottleneck."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["InvertedBottleneck", "SameConvolutionNorm"]


class SameConvolutionNorm(nn.Module):
    """A convolution without bias and its batch norm; of a side of n cells, ceil(n / stride) come out.

    Where an odd number of cells is missing, the one more is padded at the right and the bottom (TensorFlow's ``SAME``).
    """

    def __init__(self, inside: int, outside: int, size: int, stride: int = 1, groups: int = 1):
        super().__init__()
        self.convolution = nn.Conv2d(inside, outside, size, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outside, eps=1e-3, momentum=0.01)
        nn.init.kaiming_normal_(self.convolution.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, maps: Float[Tensor, "batch inside row column"]) -> Float[Tensor, "batch outside row2 column2"]:
        (size, _), (stride, _) = self.convolution.kernel_size, self.convolution.stride
        missing = [max((-(-side // stride) - 1) * stride + size - side, 0) for side in maps.shape[-2:]]
        if any(missing):
            down, across = missing
            maps = functional.pad(maps, (across // 2, across - across // 2, down // 2, down - down // 2))
        return self.norm(self.convolution(maps))


class InvertedBottleneck(nn.Module):
    """Wider, a convolution channel by channel, and narrow again without a non-linearity; a shortcut where shapes allow.

    ReLU6 and no squeeze-and-excitation, as in the "lite" EfficientNets.
    """

    def __init__(self, inside: int, outside: int, expansion: int, size: int, stride: int):
        super().__init__()
        wide = inside * expansion
        self.expand = SameConvolutionNorm(inside, wide, 1) if expansion > 1 else None
        self.depthwise = SameConvolutionNorm(wide, wide, size, stride, groups=wide)
        self.project = SameConvolutionNorm(wide, outside, 1)
        self.shortcut = stride == 1 and inside == outside

    def forward(self, maps: Float[Tensor, "batch inside row column"]) -> Float[Tensor, "batch outside row2 column2"]:
        wide = maps if self.expand is None else functional.relu6(self.expand(maps))
        made = self.project(functional.relu6(self.depthwise(wide)))
        return maps + made if self.shortcut else made
