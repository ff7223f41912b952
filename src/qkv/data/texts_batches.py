"""Batches of texts of about one length, as a pure function of (seed, epoch, position), so that resuming is a jump."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Int, Num
from torch import Tensor

from qkv.data.buckets import pad_rows

__all__ = ["ByLength", "InOrder", "TextBatch", "padded"]

POOL = 64  # batches whose texts are sorted by length together: little padding, and still a shuffle


class Position(Protocol):
    """`qkv.tasks.task.Position`, of which this file knows no more than: an epoch, and a batch in it."""

    epoch: int
    batch: int


@dataclass(frozen=True)
class TextBatch:
    """Some texts, padded on the right, and what is to be learned of them.

    ``labels`` are shares of classes or a number for each text (`qkv.data.targets`), or for tags the number of one for
    each token, -1 where none is learned. ``ids`` count the texts of their part from 0. ``targets`` is how many texts,
    or tokens, a loss is summed over.
    """

    tokens: Int[Tensor, "text token"]
    lengths: Int[Tensor, "text"]
    segments: Int[Tensor, "text token"]
    labels: Num[Tensor, "text *_"]
    ids: Int[Tensor, "text"]
    targets: int

    @property
    def size(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device | str, non_blocking: bool = True) -> "TextBatch":
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "TextBatch":
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, move: Callable[[Tensor], Tensor]) -> "TextBatch":
        names = ("tokens", "lengths", "segments", "labels", "ids")
        return replace(self, **{name: move(getattr(self, name)) for name in names})


def padded(
    rows: Sequence[Sequence[int]], segments: Sequence[Sequence[int]], pad: int
) -> tuple[Int[Tensor, "text token"], Int[Tensor, "text"], Int[Tensor, "text token"]]:
    """Tokens, lengths and segments of some texts as a model reads them."""
    tokens, lengths = pad_rows(rows, pad)
    return tokens, lengths, pad_rows(segments, 0)[0]


class ByLength:
    """Training batches; fits `qkv.tasks.task.Batches`. Every text occurs once an epoch; one batch may be smaller.

    Args:
        lengths: of each text, in tokens.
        make: the batch of the texts of these numbers.
    """

    def __init__(
        self, lengths: Sequence[int], batch: int, seed: int, make: Callable[[Int[np.ndarray, "text"]], TextBatch]
    ):
        self.lengths, self.size, self.seed, self.make = np.asarray(lengths), batch, seed, make
        self._order = lru_cache(2)(self._shuffled)

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch: the same for all."""
        return -(-len(self.lengths) // self.size)

    def batch(self, position: Position) -> TextBatch:
        """The batch at a place. Raises IndexError: the epoch has no such batch."""
        return self.make(self.ids(position))

    def ids(self, position: Position) -> Int[np.ndarray, "text"]:
        """Which texts make up the batch at a place."""
        length = self.epoch_length(position.epoch)
        if not 0 <= position.batch < length:
            raise IndexError(f"epoch {position.epoch} has {length} batches, there is no batch {position.batch}")
        order, turn = self._order(position.epoch)
        begin = turn[position.batch] * self.size
        return order[begin : begin + self.size]

    def _shuffled(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        chance = np.random.default_rng((self.seed, epoch))
        order = chance.permutation(len(self.lengths))
        for begin in range(0, len(order), POOL * self.size):
            pool = order[begin : begin + POOL * self.size]
            order[begin : begin + len(pool)] = pool[np.argsort(self.lengths[pool], kind="stable")]
        return order, chance.permutation(self.epoch_length(epoch))


class InOrder(Sequence[TextBatch]):
    """Each text once, longest first; made when asked for."""

    def __init__(self, lengths: Sequence[int], batch: int, make: Callable[[Int[np.ndarray, "text"]], TextBatch]):
        self.order, self.size, self.make = np.argsort(-np.asarray(lengths), kind="stable"), batch, make

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)

    def __getitem__(self, place: int) -> TextBatch:
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} batches, there is no batch {place}")
        return self.make(self.order[place * self.size : (place + 1) * self.size])

    def __iter__(self) -> Iterator[TextBatch]:
        return (self[place] for place in range(len(self)))
