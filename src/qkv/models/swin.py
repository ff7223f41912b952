"""The Swin Transformer: Liu et al. 2021, "Hierarchical Vision Transformer using Shifted Windows"."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Grid
from qkv.errors import ConfigError
from qkv.layers.aggregate import Head
from qkv.layers.attention import Attention
from qkv.layers.block import EncoderBlock, FeedForward, Residual
from qkv.layers.dropout import Dropout
from qkv.layers.embed import Patches, PatchMerging
from qkv.layers.norm import LayerNorm
from qkv.layers.position import RelativeBias
from qkv.layers.stochastic_depth import skip_rates
from qkv.layers.window import Window
from qkv.models.checks import check_config, check_heads

__all__ = ["SIZES", "Swin", "SwinConfig"]


@dataclass(frozen=True)
class SwinConfig:
    """What a Swin Transformer is made of.

    Attributes:
        classes: how many (the codec says).
        patch: side of a patch in pixels.
        window: cells along the side of a window.
        dim: width of a cell in the first stage; each stage doubles it.
        depths: blocks of each stage; every second one has its windows shifted by half a window.
        heads: attention heads of each stage.
        ratio: how much wider the feed-forward layers are inside.
        dropout: of embeddings and of each layer's output, in training.
        stochastic_depth: chance that the last block's layers are skipped in training; less for those before it.
        eps: of the norms.
    """

    classes: int = 0
    patch: int = 4
    window: int = 7
    dim: int = 96
    depths: tuple[int, ...] = (2, 2, 6, 2)
    heads: tuple[int, ...] = (3, 6, 12, 24)
    ratio: int = 4
    dropout: float = 0.0
    stochastic_depth: float = 0.0
    eps: float = 1e-5

    def __post_init__(self):
        check_config(self, "patch", "window", "dim", "depths", "heads", "ratio")
        if not self.depths or len(self.depths) != len(self.heads):
            raise ConfigError(
                f"size.depths has {len(self.depths)} stages and size.heads {len(self.heads)}", expected="as many"
            )
        for stage, heads in enumerate(self.heads):
            check_heads(self.dim * 2**stage, heads)


SIZES = {  #         dim      depths                  heads
    "nano":  dict(dim=32,  depths=(2, 2),        heads=(2, 4)),
    "tiny":  dict(dim=96,  depths=(2, 2, 6, 2),  heads=(3, 6, 12, 24)),
    "small": dict(dim=96,  depths=(2, 2, 18, 2), heads=(3, 6, 12, 24)),
    "base":  dict(dim=128, depths=(2, 2, 18, 2), heads=(4, 8, 16, 32)),
    "large": dict(dim=192, depths=(2, 2, 18, 2), heads=(6, 12, 24, 48)),
}  # fmt: skip


class Stage(nn.Module):
    """Blocks on one grid, of half the rows and columns of the stage before it (figure 3)."""

    def __init__(self, config: SwinConfig, number: int):
        super().__init__()
        c, dim, heads, stream = config, config.dim * 2**number, config.heads[number], f"stage.{number}"
        before = sum(c.depths[:number])
        skips = skip_rates(c.stochastic_depth, sum(c.depths))[before : before + c.depths[number]]
        self.merge = PatchMerging(dim // 2) if number else None
        self.blocks = nn.ModuleList(
            EncoderBlock(
                Attention(
                    dim,
                    heads,
                    bias=RelativeBias(heads, c.window),
                    window=Window(c.window, shift=c.window // 2 if block % 2 else 0),
                    between=(stream, stream),
                ),
                FeedForward(dim, c.ratio * dim, "gelu"),
                lambda skip=skip: Residual(dim, "pre", dropout=c.dropout, eps=c.eps, skip=skip),
            )
            for block, skip in enumerate(skips)
        )

    def forward(self, states: Float[Tensor, "batch _ _ _"]) -> Float[Tensor, "batch row column dim"]:
        if self.merge is not None:
            states = self.merge(states)
        for block in self.blocks:
            states = block(states)
        return states


class Swin(nn.Module):
    """Attention inside windows that move by half a window from block to block; its cost is linear in the image.

    Any image will do: its right and lower border is padded to patches, to windows, and to pairs where cells merge.
    """

    Config, SIZES = SwinConfig, SIZES

    def __init__(self, config: SwinConfig):
        super().__init__()
        self.config = c = config
        last = c.dim * 2 ** (len(c.depths) - 1)
        self.patches = Patches(c.patch, c.dim, pad=True)
        self.patch_norm = LayerNorm(c.dim, c.eps)
        self.dropout = Dropout(c.dropout)
        self.stages = nn.ModuleList(Stage(c, number) for number in range(len(c.depths)))
        self.norm = LayerNorm(last, c.eps)
        self.head = Head(last, c.classes)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch class"]:
        """Logits of each class, of a normalised image."""
        return self.head(self.cells(image).mean((1, 2)))

    def cells(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch row column dim"]:
        """What is seen at each cell of the last stage's grid."""
        states = self.dropout(self.patch_norm(self.patches(image)))
        for stage in self.stages:
            states = stage(states)
        return self.norm(states)

    def layers(self) -> list[nn.Module]:
        """The blocks, from the image to the head."""
        return [block for stage in self.stages for block in stage.blocks]

    def axes(self, image: Float[Tensor, "batch 3 height width"]) -> dict[str, list[Grid]]:
        """The grid of each stage, for each image of a batch."""
        height, width = image.shape[-2:]
        rows, columns = self.patches.grid(height, width)
        axes = {}
        for number in range(len(self.stages)):
            side = self.config.patch * 2**number
            axes[f"stage.{number}"] = [Grid(rows, columns, (height, width), cell=(side, side))] * len(image)
            rows, columns = -(-rows // 2), -(-columns // 2)
        return axes
