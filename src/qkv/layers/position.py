"""Positions: what tells a model, which sees its tokens as a set, in which order they stand."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.errors import DataError

__all__ = ["RESAMPLING", "Learned", "LearnedGrid", "NearBias", "RelativeBias", "Sinusoidal", "similarity", "sinusoids"]


def sinusoids(length: int, dim: int, layout: str = "interleaved") -> Float[Tensor, "position dim"]:
    """The table of Vaswani et al. 2017, section 3.5: PE(p, 2i) = sin(p / 10000^(2i/dim)), PE(p, 2i+1) = cos(same).

    The period *grows* with the channel, from 2 pi to 10000 * 2 pi positions. ``layout`` "interleaved" is the paper's;
    "halves" puts all sines before all cosines, as published Marian weights expect.
    """
    sines = (dim + 1) // 2
    period = torch.exp(torch.arange(sines, dtype=torch.float64) * (-2 * math.log(10000.0) / dim))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * period
    table = torch.empty(length, dim)
    if layout == "interleaved":
        table[:, 0::2], table[:, 1::2] = angle.sin(), angle[:, : dim // 2].cos()
    else:
        table[:, :sines], table[:, sines:] = angle.sin(), angle[:, : dim // 2].cos()
    return table


def similarity(rows: Float[Tensor, "position dim"]) -> Float[Tensor, "position position"]:
    """The cosine of each two positions: what a model can tell of their distance before it has learned anything."""
    rows = torch.nn.functional.normalize(rows.float(), dim=-1)
    return rows @ rows.T


class Sinusoidal(nn.Module):
    """Fixed sines and cosines; any length: the table grows when a longer text comes."""

    def __init__(self, dim: int, layout: str = "interleaved"):
        super().__init__()
        self.dim, self.layout = dim, layout
        self.register_buffer("table", sinusoids(128, dim, layout), persistent=False)

    def forward(self, first: int, count: int) -> Float[Tensor, "position dim"]:
        """The rows of positions ``first`` to ``first + count - 1``."""
        if first + count > len(self.table):
            longer = sinusoids(2 * (first + count), self.dim, self.layout)
            self.table = longer.to(device=self.table.device, dtype=self.table.dtype)
        return self.table[first : first + count]


class Learned(nn.Module):
    """One learned vector a position, up to a fixed longest text (Gehring et al. 2017, section 3.1)."""

    def __init__(self, dim: int, longest: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(longest, dim) * 0.02)

    def forward(self, first: int, count: int) -> Float[Tensor, "position dim"]:
        """The rows of positions ``first`` to ``first + count - 1``."""
        if first + count > len(self.table):
            raise DataError(
                f"a text of {first + count} tokens is longer than the {len(self.table)} learned positions",
                remedy="shorten it, or train with sinusoidal positions or a larger `longest`",
            )
        return self.table[first : first + count]


# How a table of positions is read on another grid: by the rule that the origin of the weights goes by. None of them is
# given a scale factor, which would be rounded, but the grid itself.
RESAMPLING = {
    "timm": dict(mode="bicubic", align_corners=False, antialias=True),
    "hf": dict(mode="bicubic", align_corners=False),
    "torchvision": dict(mode="bicubic", align_corners=True),
    "linear": dict(mode="bilinear", align_corners=True),  # the zoom of the original ViT
    "bilinear": dict(mode="bilinear", align_corners=False),
}


class LearnedGrid(nn.Module):
    """One learned vector a cell of a grid, row by row (Dosovitskiy et al. 2021, section 3.1 and appendix D.4).

    Args:
        dim: width of a vector.
        grid: rows and columns that are learned; others are resampled from them, each side by itself.
        prefix: extra tokens before the cells, which have a vector each that is never resampled.
        rule: how to resample, one of `RESAMPLING`.
    """

    def __init__(self, dim: int, grid: tuple[int, int], prefix: int = 0, rule: str = "timm"):
        super().__init__()
        self.grid, self.prefix, self.rule = grid, prefix, rule
        self.table = nn.Parameter(torch.randn(1, prefix + grid[0] * grid[1], dim) * 0.02)

    def forward(self, rows: int, columns: int) -> Float[Tensor, "1 position dim"]:
        """The vectors of the prefix and of each cell of a grid of ``rows`` x ``columns``."""
        if (rows, columns) == self.grid:
            return self.table
        prefix, cells = self.table[:, : self.prefix], self.table[:, self.prefix :]
        cells = cells.unflatten(1, self.grid).permute(0, 3, 1, 2).float()
        cells = nn.functional.interpolate(cells, size=(rows, columns), **RESAMPLING[self.rule])
        return torch.cat([prefix, cells.flatten(2).transpose(1, 2).to(prefix.dtype)], 1)


class RelativeBias(nn.Module):
    """One learned number a head for each distance along rows and along columns (Liu et al. 2021, eq. 4).

    ``table`` holds (2M - 1)^2 distances for windows of up to M x M, the distance along columns counting fastest; both
    are of the query from the key, from -(M - 1).
    """

    def __init__(self, heads: int, size: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty((2 * size - 1) ** 2, heads))
        nn.init.trunc_normal_(self.table, std=0.02)
        side = torch.arange(size)
        distance = side[:, None] - side + size - 1
        index = distance[:, None, :, None] * (2 * size - 1) + distance[None, :, None, :]
        self.register_buffer("index", index, persistent=False)

    def forward(self, rows: int, columns: int) -> Float[Tensor, "1 head query key"]:
        """What is added to the scores in a window of ``rows`` x ``columns``: the same in every window."""
        index = self.index[:rows, :columns, :rows, :columns].reshape(rows * columns, -1)
        return self.table.T[:, index].contiguous()[None]


class NearBias(nn.Module):
    """One learned number a head for each distance along rows and along columns up to ``reach``, on a grid of any size.

    Cells further away share the number of the nearest such distance; a mask hides them.
    """

    def __init__(self, heads: int, reach: int):
        super().__init__()
        self.reach = reach
        self.table = nn.Parameter(torch.empty((2 * reach + 1) ** 2, heads))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, rows: int, columns: int) -> Float[Tensor, "1 head query key"]:
        """What is added to the scores on a grid of ``rows`` x ``columns``."""
        down, along = (self._distances(side) for side in (rows, columns))
        index = down[:, None, :, None] * (2 * self.reach + 1) + along[None, :, None, :]
        return self.table[index.reshape(rows * columns, -1)].permute(2, 0, 1)[None]

    def _distances(self, side: int) -> Int[Tensor, "query key"]:
        """From each key to each query, from 0: those beyond the reach are clipped to it."""
        places = torch.arange(side, device=self.table.device)
        return (places[:, None] - places).clamp(-self.reach, self.reach) + self.reach
