"""Windows of a grid: split, shift, join, and the mask of what does not belong together (Liu et al. 2021, section 3.2).

A grid that windows do not divide is **padded first, then shifted** (cells on the right and at the bottom, all zero). A
shifted window at the border then holds cells from both ends of the grid; the mask keeps those apart, and padding goes
with the cells it was added to. Padded cells are keys like others: they are zeros before the projections, so they carry
the biases of key and value, as in the published weights; nothing is read from what they look at.

A window as long as the grid, or longer, is clipped to it, and there is no shift along that side. Each side is clipped
by itself, as in timm and torchvision (Hugging Face's and the original clip both sides to the shorter one).
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from qkv.layers.mask import Mask

__all__ = ["Window", "WindowMask", "Windows"]


@dataclass(frozen=True)
class Window:
    """Windows of ``size`` x ``size`` cells; their borders lie ``shift`` cells further right and down."""

    size: int
    shift: int = 0

    def over(self, rows: int, columns: int) -> "Windows":
        """The windows of a grid."""
        sides = (rows, columns)
        size = tuple(min(self.size, side) for side in sides)
        shift = tuple(self.shift if self.size < side else 0 for side in sides)
        return Windows(sides, size, shift)


@dataclass(frozen=True)
class WindowMask(Mask):
    """What the border of shifted windows lets through, and which windows the examples are: a trace needs to know."""

    windows: "Windows | None" = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Windows:
    """The windows of one grid, row by row; every pair is (along rows, along columns)."""

    grid: tuple[int, int]
    size: tuple[int, int]
    shift: tuple[int, int]

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns that windows divide."""
        return tuple(-(-side // size) * size for side, size in zip(self.grid, self.size, strict=True))

    @property
    def count(self) -> int:
        """How many windows there are."""
        return self.padded[0] // self.size[0] * (self.padded[1] // self.size[1])

    def split(self, states: Shaped[Tensor, "batch row column dim"]) -> Shaped[Tensor, "windows cell dim"]:
        """Pad, shift and cut: the windows of the first example, then those of the next one."""
        if self.padded != self.grid:
            states = functional.pad(states, (0, 0, 0, self.padded[1] - self.grid[1], 0, self.padded[0] - self.grid[0]))
        return self._cut(states)

    def join(self, windows: Float[Tensor, "windows cell dim"]) -> Float[Tensor, "batch row column dim"]:
        """The inverse of `split`."""
        (height, width), (rows, columns) = self.padded, self.size
        states = windows.view(-1, height // rows, width // columns, rows, columns, windows.shape[-1])
        states = states.transpose(2, 3).reshape(-1, height, width, windows.shape[-1])
        if any(self.shift):
            states = states.roll(self.shift, (1, 2))
        return states[:, : self.grid[0], : self.grid[1]]

    def mask(self, batch: int, device: torch.device | None = None) -> WindowMask:
        """Hides from each cell what came into its window from the other end of the grid; for ``batch`` examples."""
        if not any(self.shift):
            return WindowMask(windows=self)
        # Along each side, what the shift wrapped around stays apart from what it did not.
        height, width = self.padded
        down = torch.arange(height, device=device) < self.shift[0]
        along = torch.arange(width, device=device) < self.shift[1]
        region = self._cut((2 * down[:, None] + along)[None, :, :, None])[..., 0]
        keep = region[:, None, :, None] == region[:, None, None, :]
        return WindowMask(keep.repeat(batch, 1, 1, 1), windows=self)

    def where(self) -> Int[Tensor, "window cell"]:
        """The position on the grid, row by row, of each place of each window; -1 where it is padding."""
        positions = torch.full(self.padded, -1)
        positions[: self.grid[0], : self.grid[1]] = torch.arange(self.grid[0] * self.grid[1]).view(self.grid)
        return self._cut(positions[None, :, :, None])[..., 0]

    def _cut(self, states: Tensor) -> Tensor:
        if any(self.shift):
            states = states.roll([-shift for shift in self.shift], (1, 2))
        (height, width), (rows, columns) = self.padded, self.size
        states = states.reshape(-1, height // rows, rows, width // columns, columns, states.shape[-1])
        return states.transpose(2, 3).reshape(-1, rows * columns, states.shape[-1])
