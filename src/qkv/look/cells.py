"""Between the cells of a grid and the pixels under them; grids of fewer cells; how much of a map lies in a region."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkv.axis import Grid
from qkv.errors import RunError
from qkv.look.record import Map, Trace

__all__ = ["Head", "choose_head", "coarser", "mass_inside", "onto_cells", "onto_pixels", "pixel_cells"]

Region = tuple[float, float, float, float]  # left, top, right, bottom in pixels


def pixel_cells(grid: Grid) -> Int[Tensor, "height width"]:
    """The cell that each pixel of the image lies in, row by row from 0; extra tokens are not counted."""
    (height, width), (tall, wide) = grid.image, grid.sides
    row, column = ((torch.arange(side) + 0.5) // size for side, size in ((height, tall), (width, wide)))
    return (row.clamp(max=grid.rows - 1)[:, None] * grid.columns + column.clamp(max=grid.columns - 1)).long()


def onto_cells(pixels: Float[Tensor, "*batch height width"], grid: Grid) -> Float[Tensor, "*batch cell"]:
    """The mean over the pixels of each cell; zero for a cell that holds none."""
    cells = pixel_cells(grid).flatten()
    sums = pixels.new_zeros(*pixels.shape[:-2], grid.rows * grid.columns).index_add(-1, cells, pixels.flatten(-2))
    return sums / torch.bincount(cells, minlength=sums.shape[-1]).clamp_min(1)


def onto_pixels(cells: Float[Tensor, "*batch cell"], grid: Grid) -> Float[Tensor, "*batch height width"]:
    """The value of its cell for each pixel."""
    return cells[..., pixel_cells(grid)]


def coarser(grid: Grid, most: int = 16) -> Grid:
    """The grid without extra tokens, whole cells put together until no side has more than ``most``."""
    by = max(1, -(-max(grid.rows, grid.columns) // most))
    tall, wide = grid.sides
    return replace(
        grid, rows=-(-grid.rows // by), columns=-(-grid.columns // by), prefix=(), cell=(by * tall, by * wide)
    )


# --- Regions -------------------------------------------------------------------------------------------------------


def mass_inside(weights: Float[Tensor, "*batch key"], grid: Grid, region: Region) -> Float[Tensor, "*batch"]:
    """The share of a row's weight that lies in a region of the image; a cell across its border counts in part.

    Extra tokens are left out, and the rest is made to sum to one; 0 where nothing is left.
    """
    left, top, right, bottom = region
    shares = []
    for position in range(len(grid.prefix), len(grid)):
        one, two, three, four = grid.box(position)
        across, down = min(three, right) - max(one, left), min(four, bottom) - max(two, top)
        area = (three - one) * (four - two)
        shares.append(max(across, 0) * max(down, 0) / area if area else 0.0)
    cells = weights[..., len(grid.prefix) :].double()
    whole = cells.sum(-1)
    return (cells @ torch.tensor(shares, dtype=torch.float64) / whole.masked_fill(whole == 0, 1.0)).float()


@dataclass(frozen=True)
class Head:
    """A layer and one of its heads, and the mean share of its weight that lay in the regions it was chosen by."""

    layer: str
    head: int
    mass: float

    def mass_in(self, traces: Sequence[Trace], regions: Sequence[Region]) -> float:
        """The same share on other pictures: the only one to be reported."""
        return float(torch.stack([_masses(trace[self.layer][0], r) for trace, r in _pairs(traces, regions)]).mean(0)[
            traces[0][self.layer][0].heads.index(self.head)
        ])  # fmt: skip


def choose_head(traces: Sequence[Trace], regions: Sequence[Region], layers: Sequence[str] = ()) -> Head:
    """The layer and head that looks most into the regions, over pictures that nothing else is judged by.

    Which head looks at the object is not known beforehand; chosen on the very pictures that it is scored on, the best
    of many would look good by luck.

    Args:
        traces: a record of each picture, of its first example.
        regions: where the object of each picture is, in pixels of what the model read.
        layers: only these; all that look or mix if not given.

    Errors:
        RunError: no layer has cells for keys, or there are not as many regions as records.
    """
    best = None
    pairs = _pairs(traces, regions)
    for name in layers or traces[0]:
        first = traces[0][name][0]
        if not isinstance(first.key, Grid) or first.kind not in ("self", "cross"):
            continue
        masses = torch.stack([_masses(trace[name][0], region) for trace, region in pairs]).mean(0)
        head = int(masses.argmax())
        if best is None or masses[head] > best.mass:
            best = Head(name, first.heads[head], float(masses[head]))
    if best is None:
        raise RunError("no layer looks at the cells of an image", remedy="trace a ViT or Swin")
    return best


def _pairs(traces: Sequence[Trace], regions: Sequence[Region]) -> list[tuple[Trace, Region]]:
    if len(traces) != len(regions) or not traces:
        raise RunError(f"{len(traces)} records and {len(regions)} regions", expected="as many, and one at least")
    return list(zip(traces, regions, strict=True))


def _masses(map: Map, region: Region) -> Float[Tensor, " head"]:
    """Of each head: the share in the region of what the class token looks at, or all cells where there is none."""
    return mass_inside(reading(map), map.key, region)


def reading(map: Map) -> Float[Tensor, "head key"]:
    """The row that is looked at first: the class token's, or a pool's, or else the mean of all rows."""
    if isinstance(map.query, Grid) and "[CLS]" in map.query.prefix:
        return map.row(map.query.prefix.index("[CLS]"))
    return map.whole().weights.mean(1)
