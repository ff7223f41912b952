"""Batches of about equally many tokens from pairs of about equal length, as a pure function of seed and position.

Resuming is a jump: the batch at a place in an epoch depends on the seed, the epoch and the place alone, so any process
can ask for any batch. Several ranks share an epoch by taking the places ``step * ranks + rank``; every rank sees the
same `Buckets.epoch_length`, so they can agree on how many steps there are (places past the end are the loop's to wrap
or leave out).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from qkv.data.codec import Codec
from qkv.data.store import PairStore

__all__ = ["Batch", "Buckets", "Rounds", "by_length", "pad", "pad_rows"]

STRIP = 1 << 10  # neighbouring rows that stay in one block
BLOCK = 1 << 18  # rows that are shuffled and sorted by length together: what is in memory at once


class Position(Protocol):
    """`qkv.tasks.task.Position`, of which this file knows no more than: an epoch, and a batch in it."""

    epoch: int
    batch: int


@dataclass(frozen=True)
class Batch:
    """Some pairs, padded on the right.

    A source row is pieces and the end mark; a target row is the start id, pieces and the end mark. ``lengths`` count
    them all. ``ids`` are line numbers in the user's file. ``targets`` is how many real tokens are to be predicted
    (all of the target but the start); ``tokens`` how many real ones there are on both sides.
    """

    source: Int[Tensor, "sentence source"]
    source_lengths: Int[Tensor, "sentence"]
    target: Int[Tensor, "sentence target"]
    target_lengths: Int[Tensor, "sentence"]
    ids: Int[Tensor, "sentence"]
    targets: int
    tokens: int

    @property
    def size(self) -> int:
        return len(self.source)

    def to(self, device: torch.device | str, non_blocking: bool = True) -> "Batch":
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "Batch":
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, move) -> "Batch":
        names = ("source", "source_lengths", "target", "target_lengths", "ids")
        return replace(self, **{name: move(getattr(self, name)) for name in names})


def pad_rows(
    rows: Sequence[Sequence[int]], padding: int
) -> tuple[Int[Tensor, "sentence position"], Int[Tensor, "sentence"]]:
    """Rows of ids as one tensor, filled up on the right, and their lengths."""
    lengths = [len(row) for row in rows]
    filled = np.full((len(rows), max(lengths, default=0)), padding, np.int64)
    for line, row in zip(filled, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(filled), torch.tensor(lengths, dtype=torch.int64)


def pad(
    source: Sequence[Sequence[int]], target: Sequence[Sequence[int]], codec: Codec, ids: Sequence[int] | None = None
) -> Batch:
    """A batch of rows as `Codec.encode_source` and `Codec.encode_target` give them, in the order given."""
    sources, source_lengths = pad_rows(source, codec.source.pad)
    targets, target_lengths = pad_rows(target, codec.target.pad)
    real = int(target_lengths.sum())
    numbers = torch.tensor(range(1, len(source) + 1) if ids is None else ids, dtype=torch.int64)
    return Batch(
        sources, source_lengths, targets, target_lengths, numbers, real - len(source), real + int(source_lengths.sum())
    )


def by_length(widths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Indices grouped into batches of like width, widest first: ``len(batch) * widest <= batch_tokens``, or one alone.

    Put answers back by index and line in is line out: ``for batch in by_length(...): for i in batch: answer[i] = ...``.
    """
    order = np.argsort(-np.asarray(widths, np.int64), kind="stable")
    cuts = _cut(np.asarray(widths, np.int64)[order], batch_tokens)
    return [order[begin:end].tolist() for begin, end in pairwise(cuts.tolist())]


class Plan(NamedTuple):
    """The batches of one block: batch ``i`` is ``order[cuts[turn[i]] : cuts[turn[i] + 1]]``."""

    order: np.ndarray
    cuts: np.ndarray
    turn: np.ndarray


class Rounds:
    """Which of ``count`` rows make up the batch at a place. Every row occurs once an epoch.

    An epoch cuts the rows into strips of neighbours, shuffles the strips, and puts them together into blocks of at most
    `BLOCK` rows from all over the corpus. A block is shuffled, sorted by length, cut into batches, and its batches are
    shuffled. One block is in memory at a time, as numpy arrays.

    Args:
        sort: ``sort(index)`` gives the order of some rows by length, and the width of each in that order.
        batch_tokens: a batch's rows times its widest are at most this (a row that is wider alone is a batch alone).
    """

    def __init__(
        self,
        count: int,
        sort: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        batch_tokens: int,
        seed: int = 0,
        block: int = BLOCK,
    ):
        self.count, self.sort, self.batch_tokens, self.seed = count, sort, batch_tokens, seed
        self.strip = min(STRIP, block)
        self.strips_per_block = max(1, block // self.strip)
        self._plans: dict[tuple[int, int], Plan] = {}
        self._ends: dict[int, np.ndarray] = {}

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch; epochs differ by a few."""
        return int(self._block_ends(epoch)[-1])

    def rows(self, position: Position) -> np.ndarray:
        """int64[row]: which rows make up the batch at a place.

        Raises:
            IndexError: the epoch has no such batch.
        """
        ends = self._block_ends(position.epoch)
        if not 0 <= position.batch < ends[-1]:
            raise IndexError(f"epoch {position.epoch} has {ends[-1]} batches, there is no batch {position.batch}")
        block = int(np.searchsorted(ends, position.batch, side="right"))
        plan = self._plan(position.epoch, block)
        cut = plan.turn[position.batch - (ends[block - 1] if block else 0)]
        return plan.order[plan.cuts[cut] : plan.cuts[cut + 1]]

    def _blocks(self, epoch: int) -> list[np.ndarray]:
        """The numbers of the strips of each block."""
        strips = np.random.default_rng((self.seed, epoch)).permutation(-(-self.count // self.strip))
        return [strips[i : i + self.strips_per_block] for i in range(0, len(strips), self.strips_per_block)]

    def _block_ends(self, epoch: int) -> np.ndarray:
        """int64[block]: how many batches there are up to the end of each block."""
        if epoch not in self._ends:
            counts = [len(self._plan(epoch, block).turn) for block in range(len(self._blocks(epoch)))]
            self._ends = {**dict(list(self._ends.items())[-1:]), epoch: np.cumsum([*counts] or [0])}
        return self._ends[epoch]

    def _plan(self, epoch: int, block: int) -> Plan:
        if (epoch, block) not in self._plans:
            self._plans = {**dict(list(self._plans.items())[-1:]), (epoch, block): self._make_plan(epoch, block)}
        return self._plans[epoch, block]

    def _make_plan(self, epoch: int, block: int) -> Plan:
        chance = np.random.default_rng((self.seed, epoch, 1 + block))
        begins = self._blocks(epoch)[block] * self.strip
        index = np.concatenate([np.arange(b, min(b + self.strip, self.count)) for b in begins.tolist()])
        index = index[chance.permutation(len(index))]
        order, widths = self.sort(index)
        cuts = _cut(widths, self.batch_tokens)
        return Plan(index[order], cuts, chance.permutation(len(cuts) - 1))


class Buckets:
    """Training batches of a `PairStore`; fits `qkv.tasks.task.Batches`. Every pair occurs once an epoch (`Rounds`).

    Args:
        batch_tokens: a batch's rows times its longest row, on the longer side, are at most this (marks counted; a pair
            that is longer alone is a batch alone).
        bpe_dropout: cut the words of both sides anew each time, forgetting merges with this probability. Batches are
            planned by undropped lengths, so they grow by some tokens; a line that would grow beyond ``max_length``
            pieces stays as it was.
    """

    def __init__(
        self,
        store: PairStore,
        codec: Codec,
        batch_tokens: int,
        seed: int = 0,
        bpe_dropout: float = 0.0,
        max_length: int = 1 << 30,
        block: int = BLOCK,
    ):
        self.store, self.codec, self.seed = store, codec, seed
        self.bpe_dropout, self.max_length = bpe_dropout, max_length
        self.rounds = Rounds(len(store), self._sort, batch_tokens, seed, block)

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch; epochs differ by a few."""
        return self.rounds.epoch_length(epoch)

    def batch(self, position: Position) -> Batch:
        """The batch at a place.

        Raises:
            IndexError: the epoch has no such batch.
        """
        return self._make(self.rows(position), position)

    def rows(self, position: Position) -> np.ndarray:
        """int64[sentence]: which pairs of the store make up the batch at a place."""
        return self.rounds.rows(position)

    def _sort(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        source, target = self.store.source.lengths(index), self.store.target.lengths(index)
        # By target, then by source, up and down in turn so that neighbours across a step are alike on both sides.
        order = np.lexsort((np.where(target % 2, -source, source), target))
        return order, np.maximum(source + len(self.codec.source_row(())), target + 1)[order]

    def _make(self, rows: np.ndarray, position: Position) -> Batch:
        sides = []
        for number, (side, vocabulary) in enumerate(
            ((self.store.source, self.codec.source), (self.store.target, self.codec.target))
        ):
            plain = [side[row].tolist() for row in rows]
            if self.bpe_dropout:
                seed = (self.seed, position.epoch, position.batch, number)
                texts = [vocabulary.decode(ids) for ids in plain]
                anew = vocabulary.encode(texts, dropout=self.bpe_dropout, seed=seed)
                plain = [new if len(new) <= self.max_length else old for new, old in zip(anew, plain, strict=True)]
            sides.append(plain)
        source = [self.codec.source_row(ids) for ids in sides[0]]
        target = [[self.codec.start, *ids, self.codec.target.end] for ids in sides[1]]
        return pad(source, target, self.codec, self.store.lines[rows].tolist())


def _cut(widths: np.ndarray, batch_tokens: int) -> np.ndarray:
    """Where to cut a row of widths so that each stretch times its widest is at most ``batch_tokens`` (or is one)."""
    cuts, begin = [0], 0
    while begin < len(widths):
        most = max(1, batch_tokens // max(1, int(widths[begin])))
        widest = np.maximum.accumulate(widths[begin : begin + most])
        fits = int(np.searchsorted(widest * np.arange(1, len(widest) + 1), batch_tokens, side="right"))
        begin += max(1, fits)
        cuts.append(begin)
    return np.array(cuts)
