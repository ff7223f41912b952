"""Listening to a layer while it runs: its weights, with their gradient. For a loss that says where to look, and for
whoever asks how much an answer hangs on a weight."""

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
    intervenes: bool = False
    weights: Float[Tensor, "batch head query key"] | None = field(default=None, repr=False)

    def see(self, query: Tensor, memory: KeyValue, score: Score, mask: Mask, bias: Tensor | None) -> None:
        scores = score.scores(query[:, self.heads], memory.key[:, self.heads])
        keep = mask.dense(query.shape[-2], memory.key.shape[-2], query.device)
        self.weights = attention_weights(scores if bias is None else scores + bias[:, self.heads], keep)

    def edit(self, weights: Tensor, mask: Mask) -> Tensor:
        self.weights = weights
        return weights


@contextmanager
def listen(layer: Attention, heads: slice = slice(None), *, through: bool = False) -> Iterator[Listener]:
    """Hear what a layer looks at while the block runs. Unlike a trace it keeps the gradient and knows no names.

    Args:
        heads: which to hear.
        through: all heads are heard, and the layer's answer is made from what is heard and not in the fused kernel
            beside it: only then has the answer a gradient by the weights.
    """
    layer.tap = listener = Listener(heads, through)
    try:
        yield listener
    finally:
        layer.tap = None
