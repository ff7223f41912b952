"""Listening to a layer while it learns: its weights, with their gradient, for a loss that says where to look."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from qkv.layers.attention import Attention, KeyValue, attention_weights
from qkv.layers.mask import Mask
from qkv.layers.score import Score

__all__ = ["Listener", "listen"]


@dataclass
class Listener:
    """A tap that keeps the weights of some heads of a layer's last run."""

    heads: slice
    weights: Float[Tensor, "batch head query key"] | None = field(default=None, repr=False)
    intervenes = False

    def see(self, query: Tensor, memory: KeyValue, score: Score, mask: Mask, bias: Tensor | None) -> None:
        scores = score.scores(query[:, self.heads], memory.key[:, self.heads])
        keep = mask.dense(query.shape[-2], memory.key.shape[-2], query.device)
        self.weights = attention_weights(scores if bias is None else scores + bias[:, self.heads], keep)

    def edit(self, weights: Tensor) -> Tensor:
        return weights


@contextmanager
def listen(layer: Attention, heads: slice = slice(None)) -> Iterator[Listener]:
    """Hear what a layer looks at while the block runs. Unlike a trace it keeps the gradient and knows no names."""
    layer.tap = listener = Listener(heads)
    try:
        yield listener
    finally:
        layer.tap = None
