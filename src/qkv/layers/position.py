"""Positions: what tells a model, which sees its tokens as a set, in which order they stand."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.errors import DataError

__all__ = ["Learned", "Sinusoidal", "similarity", "sinusoids"]


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
