"""EfficientNet-Lite: Tan and Le 2019, "EfficientNet: Rethinking Model Scaling", without what small devices lack."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from qkv.axis import Grid
from qkv.errors import ConfigError
from qkv.layers.aggregate import Head
from qkv.layers.mobile import InvertedBottleneck, SameConvolutionNorm
from qkv.models.checks import check_config

__all__ = ["SIZES", "STAGES", "EfficientNet", "EfficientNetConfig"]

STAGES = [  # expansion, size, stride (table 1 of the paper)
    (1, 3, 1),
    (6, 3, 2),
    (6, 5, 2),
    (6, 3, 2),
    (6, 5, 1),
    (6, 5, 2),
    (6, 3, 1),
]


@dataclass(frozen=True)
class EfficientNetConfig:
    """What an EfficientNet-Lite is made of.

    Attributes:
        classes: how many (the codec says).
        widths: channels of each of the seven stages.
        depths: blocks of each stage.
        stem_width: channels after the stem.
        head_width: channels of the last grid.
    """

    classes: int = 0
    widths: tuple[int, ...] = (16, 24, 40, 80, 112, 192, 320)
    depths: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 1)
    stem_width: int = 32
    head_width: int = 1280

    def __post_init__(self):
        check_config(self, "widths", "depths", "stem_width", "head_width")
        if not len(self.widths) == len(self.depths) == len(STAGES):
            raise ConfigError(
                f"size.widths has {len(self.widths)} stages and size.depths {len(self.depths)}", expected="7 of each"
            )


SIZES = {
    "nano":  dict(widths=(8, 8, 12, 16, 24, 32, 48), depths=(1, 1, 1, 1, 1, 1, 1), stem_width=8, head_width=96),
    "lite0": dict(),
}  # fmt: skip
SIZES["small"] = SIZES["lite0"]


class EfficientNet(nn.Module):
    """Inverted bottlenecks; each cell of the last grid stands for 32 x 32 pixels."""

    Config, SIZES = EfficientNetConfig, SIZES

    def __init__(self, config: EfficientNetConfig):
        super().__init__()
        self.config = c = config
        self.stem = SameConvolutionNorm(3, c.stem_width, 3, 2)
        self.blocks, inside = nn.ModuleList(), c.stem_width
        for (expansion, size, stride), width, depth in zip(STAGES, c.widths, c.depths, strict=True):
            for block in range(depth):
                self.blocks.append(InvertedBottleneck(inside, width, expansion, size, 1 if block else stride))
                inside = width
        self.last = SameConvolutionNorm(inside, c.head_width, 1)
        self.head = Head(c.head_width, c.classes)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch class"]:
        """Logits of each class, of a normalised image."""
        return self.head(self.cells(image).mean((1, 2)))

    def cells(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch row column dim"]:
        """What is seen at each cell of the last grid."""
        maps = functional.relu6(self.stem(image))
        for block in self.blocks:
            maps = block(maps)
        return functional.relu6(self.last(maps)).movedim(1, -1)

    def axes(self, image: Float[Tensor, "batch 3 height width"]) -> dict[str, list[Grid]]:
        """The last grid, for each image of a batch."""
        height, width = image.shape[-2:]
        grid = Grid(-(-height // 32), -(-width // 32), (height, width), cell=(32, 32))
        return {"last": [grid] * len(image)}
