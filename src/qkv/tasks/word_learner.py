"""What makes the steps of word vectors: the compiled kernels, over a part of the text or of the counts at a time.

A learner fits `qkv.tasks.task.Learner`. It writes to the model's own tables.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from qkv.data.cooccurrence import PAIR, Cooccurrences, count_pairs
from qkv.data.word_ids import WordIds
from qkv.data.words import Words
from qkv.kernels import glove as glove_kernel
from qkv.kernels import word2vec as word2vec_kernel
from qkv.models.glove import GloVe
from qkv.models.word2vec import CBOW, SkipGram
from qkv.tasks.task import Position

__all__ = ["CountLearner", "WindowLearner", "keep_thresholds"]

PART = 1 << 19  # words of the text that a process learns from between two looks at the clock
PAIRS = 1 << 21  # pairs of counts, the same
FEW = 0.4  # of a text, where dropping frequent words is pointed out
TOGETHER = {
    "mean": word2vec_kernel.MEAN, "sum": word2vec_kernel.SUM, "undivided": word2vec_kernel.UNDIVIDED,
}  # fmt: skip
LEAST = 1e-4  # of the learning rate, at the end of its linear way down


def keep_thresholds(counts: np.ndarray, sample: float) -> np.ndarray:
    """uint32[words]: a word is kept where a 24-bit draw is below.

    The published program's chance, sqrt(t/f) + t/f, and not the paper's 1 - eq. 5, sqrt(t/f): f is the word's share.
    """
    whole = np.full(len(counts), 1 << 24, np.uint32)
    if not sample:
        return whole
    share = np.maximum(np.asarray(counts, np.float64), 1e-9) / max(counts.sum(), 1)
    chance = np.sqrt(sample / share) + sample / share
    return np.minimum(chance * (1 << 24), 1 << 24).astype(np.uint32)


def _table(parameter: nn.Parameter) -> np.ndarray:
    return parameter.detach().numpy()


def _split(begin: int, end: int, share: int, of: int) -> tuple[int, int]:
    return begin + (end - begin) * share // of, begin + (end - begin) * (share + 1) // of


def _again(threads: int, ranks: int) -> str:
    """Whether the same run gives the same vectors."""
    if threads > 1:
        return f"{threads} threads write without locks: quicker, and each run a little different (one thread is exact)"
    of_all = f" with {ranks} processes" if ranks > 1 else ""
    return f"one thread: the same vectors to the bit each time{of_all}"


class WindowLearner:
    """Skip-gram and CBOW: plain gradient descent whose rate falls linearly to almost nothing over all epochs."""

    unit = "words"

    def __init__(
        self, model: SkipGram, words: Words, text: WordIds, epochs: int, rate: float, seed: int, threads: int,
        rank: int = 0, ranks: int = 1,
    ):  # fmt: skip
        self.text, self.model = text, model
        self.epochs, self.first_rate, self.seed = epochs, rate, seed
        self.threads, self.rank, self.ranks = threads, rank, ranks
        config = model.config
        self.window, self.kind = config.window, word2vec_kernel.SKIPGRAM
        if isinstance(model, CBOW):
            self.kind = TOGETHER[config.combine]
        self.kept = keep_thresholds(words.counts, config.sample)
        self.tables = _table(model.input.weight), _table(model.output.weight)
        self.counts = counts = np.asarray(words.counts, np.float64)
        if config.output == "hierarchical":
            self.negatives, self.alias = 0, np.zeros((1, 2), np.uint32)
            self.paths = word2vec_kernel.paths_of(words.counts)
        else:
            self.negatives, self.alias = config.negatives, word2vec_kernel.alias_table(counts**config.power)
            self.paths = np.zeros(0, np.uint32), np.zeros(0, np.float32), np.zeros(1, np.int64)
        self.parts = max(1, -(-len(text.ids) // (PART * ranks)))
        self._pool = ThreadPoolExecutor(threads)
        self._sweep(0, 0, 0.0, 0.0, np.uint64(0), np.uint64(0))  # compiled now: once on a machine, then kept

    def estimate(self) -> list[str]:
        """Memory and what to expect, in words."""
        table = sum(table.nbytes for table in self.tables)
        total = len(self.text.ids) * self.epochs
        chance = np.minimum(self.kept / (1 << 24), 1)
        left = float((self.counts * chance).sum() / max(self.counts.sum(), 1))
        dropped = f"frequent words are dropped at random: {left:.0%} of the text is left each time" if left < 1 else ""
        if left < FEW:
            dropped += "; in so small a text all words are frequent: --size.sample 0 drops none"
        epochs = f"{self.epochs} epoch{'s' * (self.epochs != 1)}"
        told = f"{total:,} words in {epochs}; {table / 1e6:,.0f} MB of vectors in memory"
        return [told, *filter(None, [dropped]), _again(self.threads, self.ranks)]

    def rate(self, position: Position) -> float:
        """The learning rate at a place: it falls with the words that have gone by, of those of all epochs."""
        gone = (position.epoch + position.batch / self.parts) / self.epochs
        return max(self.first_rate * (1 - gone), self.first_rate * LEAST)

    def part(self, position: Position) -> dict[str, float]:
        """Learn from one part; sums of loss and of what it was summed over."""
        count = len(self.text.ids)
        begin, end = _split(0, count, position.batch, self.parts)
        own = _split(begin, end, self.rank, self.ranks)
        slope = self.first_rate / (count * self.epochs) * self.ranks * self.threads
        place_seed = np.uint64(np.random.SeedSequence([self.seed, position.epoch]).generate_state(1, np.uint64)[0])

        def learn(thread: int) -> tuple:
            of_thread = _split(*own, thread, self.threads)
            numbers = [self.seed, position.epoch, position.batch, self.rank, thread]
            seed = np.uint64(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
            return self._sweep(*of_thread, self.rate(position), slope, seed, place_seed)

        loss, looked, centres, pairs = np.sum(list(self._pool.map(learn, range(self.threads))), axis=0)
        return {"loss": loss, "looked": looked, "centres": centres, "pairs": pairs, "targets": own[1] - own[0]}

    def _sweep(self, begin: int, end: int, rate: float, slope: float, seed: np.uint64, place_seed: np.uint64) -> tuple:
        return word2vec_kernel.sweep(
            self.text.ids, self.text.ends, begin, end, self.kept, self.window, *self.tables, self.alias, self.negatives,
            *self.paths, self.kind, rate, slope, self.first_rate * LEAST, seed, place_seed,
        )  # fmt: skip

    def averaged(self) -> list[Tensor]:
        """What is averaged over processes after each part."""
        return [self.model.input.weight.detach(), self.model.output.weight.detach()]

    def tensors(self) -> dict[str, Tensor]:
        """What must be saved beside the weights: nothing, plain descent has no memory."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


class CountLearner:
    """GloVe: counts once, then AdaGrad over the pairs, in an order that is a function of (seed, epoch).

    A *target* here is a pair in one direction.
    """

    unit = "pairs"

    def __init__(
        self, model: GloVe, words: Words, text: WordIds, epochs: int, rate: float, seed: int, threads: int,
        rank: int = 0, ranks: int = 1, *, folder: Path, memory: int, tell: Callable[[str], None],
    ):  # fmt: skip
        self.model, self.epochs, self.first_rate, self.seed = model, epochs, rate, seed
        self.threads, self.rank, self.ranks = threads, rank, ranks
        config = model.config
        how = config.window, config.symmetric
        kept = Cooccurrences.open(folder, *how, len(text.ids))
        self.counts = kept or count_pairs(text.ids, text.ends, *how, folder, memory, tell, threads)
        names = ("input", "output", "input_bias", "output_bias")
        self.names = [f"{name}.weight" for name in names]
        self.tables = tuple(_table(model.get_parameter(name)) for name in self.names)
        self.sums = glove_kernel.fresh_sums(self.tables)
        # Parts never reach over the end of a bucket.
        self._parts = [
            (bucket, *_split(0, size, i, count))
            for bucket, size in enumerate(self.counts.buckets)
            for count in [max(1, -(-size // (PAIRS * ranks)))]
            for i in range(count)
        ]
        self.parts = len(self._parts)
        self._shuffled: tuple[Any, np.ndarray, np.ndarray] | None = None
        self._pool = ThreadPoolExecutor(threads)

    def estimate(self) -> list[str]:
        pairs, memory = self.counts.pairs, 2 * sum(table.nbytes for table in self.tables)
        largest = max(self.counts.buckets) * (PAIR.itemsize + 8)
        return [
            f"{pairs:,} pairs within {self.counts.window} words, {pairs * PAIR.itemsize / 1e6:,.0f} MB on the disk; "
            f"{(memory + largest) / 1e6:,.0f} MB in memory",
            _again(self.threads, self.ranks),
        ]

    def rate(self, position: Position) -> float:
        return self.first_rate

    def part(self, position: Position) -> dict[str, float]:
        order = np.random.default_rng([self.seed, position.epoch]).permutation(len(self.counts.buckets))
        rank_of = np.argsort(order)
        parts = sorted(self._parts, key=lambda part: (rank_of[part[0]], part[1]))
        bucket, begin, end = parts[position.batch]
        pairs, shuffled = self._bucket(position.epoch, bucket)
        own = _split(begin, end, self.rank, self.ranks)
        config = self.model.config

        def learn(thread: int) -> tuple:
            return glove_kernel.sweep(
                shuffled, *_split(*own, thread, self.threads), pairs["word"], pairs["context"], pairs["count"],
                config.symmetric, self.tables, self.sums, np.float32(self.first_rate), config.x_max, config.alpha,
            )  # fmt: skip

        loss, seen = np.sum(list(self._pool.map(learn, range(self.threads))), axis=0)
        return {"loss": loss, "looked": seen, "targets": int(seen)}

    def _bucket(self, epoch: int, bucket: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """A bucket's columns and a fresh order of its pairs."""
        if self._shuffled is None or self._shuffled[0] != (epoch, bucket):
            pairs = self.counts.bucket(bucket)
            columns = {name: np.ascontiguousarray(pairs[name]) for name in PAIR.names}
            shuffled = np.random.default_rng([self.seed, epoch, bucket]).permutation(len(pairs)).astype(np.uint32)
            self._shuffled = ((epoch, bucket), columns, shuffled)
        return self._shuffled[1:]

    def averaged(self) -> list[Tensor]:
        return [torch.from_numpy(table) for table in (*self.tables, *self.sums)]

    def tensors(self) -> dict[str, Tensor]:
        """AdaGrad's sums."""
        return {f"sum/{name}": torch.from_numpy(table) for name, table in zip(self.names, self.sums, strict=True)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, table in zip(self.names, self.sums, strict=True):
            table[:] = tensors[f"sum/{name}"].numpy()
