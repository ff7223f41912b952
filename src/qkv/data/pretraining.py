"""Inputs for pretraining as a pure function of seed and position: pairs of texts, or full packed sentences, masked.

A pair is cut out of a document: its first text is the beginning of a run of sentences, and its second text with a
chance of one half the rest of that run, else as many pieces from a place in *another* document. What is so called
random never begins with the sentence that is truly next, even where documents repeat each other.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from qkv.data.buckets import Position, Rounds, pad_rows
from qkv.data.corpus_store import CorpusStore
from qkv.data.masking import mask_tokens
from qkv.data.text_codec import TextCodec

__all__ = ["FOLLOWS", "RANDOM", "MaskedBatch", "PretrainingBatches"]

FOLLOWS, RANDOM = 0, 1  # labels of the second text, numbered as in the paper's release
TRIES = 20


@dataclass(frozen=True)
class MaskedBatch:
    """Some inputs, padded on the right and masked.

    Attributes:
        tokens: what the model reads.
        lengths: real tokens of each row.
        segments: 0 or 1 for each token.
        places: row times width plus column of each token that must be told.
        words: what those tokens are.
        second: `FOLLOWS` or `RANDOM` for each row; empty where rows are no pairs.
        targets: how many tokens must be told.
        real: how many real tokens there are.
    """

    tokens: Int[Tensor, "row token"]
    lengths: Int[Tensor, "row"]
    segments: Int[Tensor, "row token"]
    places: Int[Tensor, "target"]
    words: Int[Tensor, "target"]
    second: Int[Tensor, "labelled"]
    targets: int
    real: int

    @property
    def size(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device | str, non_blocking: bool = True) -> "MaskedBatch":
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "MaskedBatch":
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, move) -> "MaskedBatch":
        names = ("tokens", "lengths", "segments", "places", "words", "second")
        return replace(self, **{name: move(getattr(self, name)) for name in names})


class PretrainingBatches:
    """Batches of a `CorpusStore`; fits `qkv.tasks.task.Batches`. Every input occurs once an epoch, otherwise each time.

    Args:
        pairs: inputs are pairs; else packed sentences.
        batch_tokens: a batch's rows times its longest row are at most this.
        masked: share of tokens that must be told.
        short: share of inputs that are cut shorter.
        whole_words: hide whole words.
        most: use only so many inputs, evenly spread.
    """

    def __init__(
        self,
        store: CorpusStore,
        codec: TextCodec,
        pairs: bool,
        *,
        batch_tokens: int,
        masked: float = 0.15,
        short: float = 0.0,
        whole_words: bool = False,
        seed: int = 0,
        most: int | None = None,
    ):
        self.store, self.codec, self.pairs, self.seed = store, codec, pairs, seed
        self.masked, self.short = masked, short
        self.opens = codec.opens if whole_words else None
        self.count = len(store) if most is None else min(most, len(store))
        self.rounds = Rounds(self.count, self._sort, batch_tokens, seed)

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch."""
        return self.rounds.epoch_length(epoch)

    def batch(self, position: Position) -> MaskedBatch:
        """The batch at a place."""
        chance = np.random.default_rng((self.seed, position.epoch, position.batch, 1))
        rows, segments, second = [], [], []
        for i in self._inputs(self.rounds.rows(position)).tolist():
            ids, places, label = self._pair(i, chance) if self.pairs else self._packed(i, chance)
            rows.append(ids)
            segments.append(places)
            second += [label] if self.pairs else []
        plain, lengths = pad_rows(rows, self.codec.pad)
        tokens = plain.numpy()
        real = np.arange(tokens.shape[1]) < lengths.numpy()[:, None]
        maskable = real & (tokens != self.codec.cls) & (tokens != self.codec.sep)
        hidden, chosen = mask_tokens(
            tokens, maskable, self.codec.mask, self.codec.ordinary, self.masked, chance, self.opens
        )
        places = np.flatnonzero(chosen)
        return MaskedBatch(
            torch.from_numpy(hidden), lengths, pad_rows(segments, 0)[0], torch.from_numpy(places),
            torch.from_numpy(tokens.reshape(-1)[places]), torch.tensor(second, dtype=torch.int64), len(places),
            int(lengths.sum()),
        )  # fmt: skip

    def _inputs(self, rows: np.ndarray) -> np.ndarray:
        return rows * len(self.store) // self.count

    def _sort(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = self._inputs(index)
        lengths = self.store.lengths(inputs) + 3
        if not self.pairs:  # a mark after each document
            lengths += self.store.borders(inputs) - 1
        order = np.argsort(lengths, kind="stable")
        return order, lengths[order]

    def _run(self, i: int, least: int, chance: np.random.Generator) -> tuple[int, int]:
        """The sentences of an input: all, or, where it is to be short, some of the first."""
        first, last = int(self.store.firsts[i]), int(self.store.lasts[i])
        if chance.random() < self.short:
            last = int(chance.integers(first + least, last + 1))
        return first, last

    def _pair(self, i: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
        store = self.store
        first, last = self._run(i, 2, chance)
        split = int(chance.integers(first + 1, last))
        rest, label = store.run(split, last), FOLLOWS
        if chance.random() < 0.5:
            other = self._from_elsewhere(first, store.run(split, split + 1), len(rest), chance)
            rest, label = (rest, FOLLOWS) if other is None else (other, RANDOM)
        begin = store.run(first, split)
        return (*self._join(begin, rest), label)

    def _join(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids = np.concatenate([[self.codec.cls], first, [self.codec.sep], second, [self.codec.sep]])
        return ids, (np.arange(len(ids)) >= len(first) + 2).astype(np.int64)

    def _from_elsewhere(self, first: int, following: np.ndarray, size: int, chance: np.random.Generator):
        """At most ``size`` pieces from the beginning of a sentence of another document; None if there is no other."""
        store = self.store
        begin, end = store.bounds(store.document(first))
        sentences = len(store.sentences)
        for _ in range(TRIES if sentences > end - begin else 0):
            sentence = int(chance.integers(0, sentences - (end - begin)))
            sentence += (end - begin) * (sentence >= begin)
            last = store.bounds(store.document(sentence))[1]
            if not np.array_equal(store.run(sentence, sentence + 1), following):
                return store.run(sentence, last)[:size]
        return None

    def _packed(self, i: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
        store = self.store
        first, last = self._run(i, 1, chance)
        parts = [[self.codec.cls]]
        while first < last:
            end = min(store.bounds(store.document(first))[1], last)
            parts += [store.run(first, end), [self.codec.sep]]
            first = end
        ids = np.concatenate(parts)
        return ids, np.zeros(len(ids), np.int64), FOLLOWS
