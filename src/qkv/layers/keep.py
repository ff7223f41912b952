"""Keeping what a layer looks at, run by run, while it learns: for a loss over all steps of a decoder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from qkv.layers.attention import Attention, KeyValue
from qkv.layers.mask import Mask
from qkv.layers.score import Score

__all__ = ["Keeper", "keep"]


@dataclass
class Keeper:
    """A tap that keeps the very weights that a layer uses, with their gradient: of a layer that looks step by step, of
    all steps.

    The layer computes them anyway where it looks with one query; a fused kernel makes room for them.
    """

    runs: list[Float[Tensor, "batch head query key"]] = field(default_factory=list, repr=False)
    intervenes = True

    def see(self, query: Tensor, memory: KeyValue, score: Score, mask: Mask, bias: Tensor | None) -> None: ...

    def edit(self, weights: Tensor, mask: Mask) -> Tensor:
        self.runs.append(weights)
        return weights


@contextmanager
def keep(layer: Attention) -> Iterator[Keeper]:
    """Keep what a layer looks at while the block runs; see `qkv.layers.listen` for a look at the last run only."""
    layer.tap = keeper = Keeper()
    try:
        yield keeper
    finally:
        layer.tap = None
