"""Residual networks: He et al. 2016, "Deep Residual Learning for Image Recognition"."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Grid
from qkv.errors import ConfigError
from qkv.layers.aggregate import Head
from qkv.layers.convolution import BLOCKS, SHORTCUTS, STEMS
from qkv.models.checks import check_config

__all__ = ["SIZES", "ResNet", "ResNetConfig"]


@dataclass(frozen=True)
class ResNetConfig:
    """What a residual network is made of.

    Attributes:
        classes: how many (the codec says).
        block: basic (two 3 x 3 convolutions) or bottleneck (1 x 1, 3 x 3, 1 x 1).
        stem: large (7 x 7, strided and pooled: a quarter of the sides) or small (3 x 3: for images below 64 pixels).
        shortcut: where shapes change: projected (a 1 x 1 convolution) or padded (zeros for the new channels).
        stem_width: channels after the stem.
        widths: channels inside the blocks of each stage; each stage but the first halves the sides.
        depths: blocks of each stage.
    """

    classes: int = 0
    block: str = "basic"
    stem: str = "large"
    shortcut: str = "projected"
    stem_width: int = 64
    widths: tuple[int, ...] = (64, 128, 256, 512)
    depths: tuple[int, ...] = (2, 2, 2, 2)

    def __post_init__(self):
        check_config(self, "stem_width", "widths", "depths", block=BLOCKS, stem=STEMS, shortcut=SHORTCUTS)
        if not self.widths or len(self.widths) != len(self.depths):
            raise ConfigError(
                f"size.widths has {len(self.widths)} stages and size.depths {len(self.depths)}", expected="as many"
            )
        outside = [self.stem_width, *map(self.channels, range(len(self.widths)))]
        if self.shortcut == "padded" and sorted(outside) != outside:
            raise ConfigError("size.shortcut is 'padded', and channels become fewer", remedy="choose projected")

    def channels(self, stage: int) -> int:
        """Channels after a stage."""
        return BLOCKS[self.block].expansion * self.widths[stage]


SMALL = dict(stem="small", stem_width=16, widths=(16, 32, 64), shortcut="padded")  # section 4.2, for 32 x 32 pixels
SIZES = {  #        block                  depths
    "20":    dict(block="basic",      depths=(3, 3, 3), **SMALL),
    "56":    dict(block="basic",      depths=(9, 9, 9), **SMALL),
    "18":    dict(block="basic",      depths=(2, 2, 2, 2)),
    "34":    dict(block="basic",      depths=(3, 4, 6, 3)),
    "50":    dict(block="bottleneck", depths=(3, 4, 6, 3)),
    "101":   dict(block="bottleneck", depths=(3, 4, 23, 3)),
}  # fmt: skip
SIZES |= {"nano": SIZES["20"], "tiny": SIZES["18"], "small": SIZES["34"], "base": SIZES["50"], "large": SIZES["101"]}


class ResNet(nn.Module):
    """Blocks that learn what to add to their input (figure 2); it looks at nothing, and its maps are of gradients."""

    Config, SIZES = ResNetConfig, SIZES

    def __init__(self, config: ResNetConfig):
        super().__init__()
        self.config = c = config
        self.stem = STEMS[c.stem](c.stem_width)
        self.stages, inside = nn.ModuleList(), c.stem_width
        for number, depth in enumerate(c.depths):
            blocks = nn.Sequential()
            for block in range(depth):
                stride, outside = 2 if number and not block else 1, c.channels(number)
                same = stride == 1 and inside == outside
                shortcut = nn.Identity() if same else SHORTCUTS[c.shortcut](inside, outside, stride)
                blocks.append(self.block(number, inside, stride, shortcut))
                inside = outside
            self.stages.append(blocks)
        self.head = Head(inside, c.classes)

    def block(self, stage: int, inside: int, stride: int, shortcut: nn.Module) -> nn.Module:
        """A block of a stage, which is given so many channels."""
        return BLOCKS[self.config.block](inside, self.config.widths[stage], stride, shortcut)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch class"]:
        """Logits of each class, of a normalised image."""
        return self.head(self.cells(image).mean((1, 2)))

    def cells(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch row column dim"]:
        """What is seen at each cell of the last stage's grid."""
        maps = self.stem(image)
        for stage in self.stages:
            maps = stage(maps)
        return maps.movedim(1, -1)

    def layers(self) -> list[nn.Module]:
        """The blocks, from the image to the head."""
        return [block for stage in self.stages for block in stage]

    def axes(self, image: Float[Tensor, "batch 3 height width"]) -> dict[str, list[Grid]]:
        """The grid of each stage's maps, for each image of a batch."""
        height, width = image.shape[-2:]
        axes, side = {}, 4 if self.config.stem == "large" else 1
        for number in range(len(self.stages)):
            grid = Grid(-(-height // side), -(-width // side), (height, width), cell=(side, side))
            axes[f"stage.{number}"] = [grid] * len(image)
            side *= 2
        return axes
