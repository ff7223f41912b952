"""The cells around a cell: who is near on a grid, and how to look at no others (Ramachandran et al. 2019, section 3.1).

Hiding all but a few keys from each query still computes all of them. So the grid is cut into square tiles, and the
cells of a tile look together at the tile and a border around it, as wide as the reach (Vaswani et al. 2021, "Scaling
Local Self-Attention for Parameter Efficient Visual Backbones", section 2.2): cost linear in the grid, and equal up to
rounding.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from qkv.layers.mask import Mask

__all__ = ["NearMask", "Tiles", "neighbours"]

WORTH = 2  # times as many keys on the whole grid as around a tile, from which cutting is faster


@dataclass(frozen=True)
class Tiles:
    """How to cut a grid, row by row, into tiles, and to put the answers together again.

    Attributes:
        queries: the cells of each tile; at the border of the grid some are there twice.
        keys: the cells of each tile and its border; what would lie outside of the grid is any cell, and hidden.
        keep: which of these keys each of these queries may see.
        place: of each cell of the grid, its first place among the queries of all tiles.
    """

    queries: Int[Tensor, "tile query"]
    keys: Int[Tensor, "tile key"]
    keep: Bool[Tensor, "tile query key"]
    place: Int[Tensor, "cell"]

    def cut(self, cells: Float[Tensor, "batch head cell depth"], which: Int[Tensor, "tile place"]) -> Tensor:
        """``queries`` or ``keys`` of the cells, each tile as a head of its own."""
        return cells[:, :, which].flatten(1, 2)

    def bias(self, bias: Float[Tensor, "1 head cell cell"]) -> Float[Tensor, "1 headtile query key"]:
        """What is added to the scores, minus infinity where a key is hidden."""
        cut = bias[:, :, self.queries[:, :, None], self.keys[:, None, :]]
        return cut.masked_fill(~self.keep, float("-inf")).flatten(1, 2)

    def join(self, answers: Float[Tensor, "batch headtile query depth"]) -> Float[Tensor, "batch head cell depth"]:
        """Those of the cells of the grid, row by row."""
        return answers.unflatten(1, (-1, len(self.queries))).flatten(2, 3)[:, :, self.place]


@dataclass(frozen=True)
class NearMask(Mask):
    """Lets each cell of a grid see those near it; ``tiles`` say how to look at few others (None: not worth it)."""

    tiles: Tiles | None = field(default=None, kw_only=True)


def neighbours(rows: int, columns: int, reach: int, device: torch.device | None = None) -> NearMask:
    """Each cell of a grid, row by row, sees those at most ``reach`` rows and columns away."""
    down, along = (torch.arange(side, device=device) for side in (rows, columns))
    # Side by side, and only then for each two cells: distances of those would be many numbers of eight bytes.
    near_rows, near_columns = (_near(side, side, reach) for side in (down, along))
    keep = near_rows[:, None, :, None] & near_columns[None, :, None, :]
    side = 2 * reach
    worth = rows * columns > WORTH * (side + 2 * reach) ** 2
    keep = keep.reshape(1, 1, rows * columns, rows * columns)
    return NearMask(keep, tiles=_tiles(rows, columns, reach, side, device) if worth else None)


def _tiles(rows: int, columns: int, reach: int, side: int, device: torch.device | None) -> Tiles:
    starts = torch.cartesian_prod(*(torch.arange(0, length, side, device=device) for length in (rows, columns)))

    def around(border: int) -> tuple[Tensor, Tensor]:
        """Rows and columns of each tile and so much around it."""
        places = torch.arange(-border, side + border, device=device)
        return tuple((starts[:, None] + torch.cartesian_prod(places, places)).unbind(-1))

    (row, column), (key_row, key_column) = around(0), around(reach)
    row, column = (
        row.clamp(max=rows - 1),
        column.clamp(max=columns - 1),
    )  # no query sees nothing: its row would be 0 / 0
    inside = (key_row >= 0) & (key_row < rows) & (key_column >= 0) & (key_column < columns)
    keep = _near(row, key_row, reach) & _near(column, key_column, reach) & inside[:, None]
    queries = row * columns + column
    keys = key_row.clamp(0, rows - 1) * columns + key_column.clamp(0, columns - 1)
    cell = torch.arange(rows * columns, device=device)
    tile = cell // columns // side * -(-columns // side) + cell % columns // side
    place = tile * side**2 + cell // columns % side * side + cell % columns % side
    return Tiles(queries, keys, keep, place)


def _near(query: Int[Tensor, "*tile query"], key: Int[Tensor, "*tile key"], reach: int) -> Bool[Tensor, "..."]:
    return (query[..., :, None] - key[..., None, :]).abs() <= reach
