"""Word vectors at work: ``vectors["왕"]``, neighbours, analogies, the odd one out."""

import difflib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkv.data.word_vectors import vectors_in
from qkv.data.words import Words
from qkv.errors import DataError
from qkv.store import read_json

__all__ = ["Near", "WordVectors"]

BLOCK = 1 << 16  # rows that are compared at once
EPSILON = 1e-3  # of 3CosMul (Levy and Goldberg 2014)


class Near(NamedTuple):
    """A word, and how near it is: a cosine, or 3CosMul's ratio."""

    word: str
    score: float


class WordVectors:
    """The vectors of a run. Rows are mapped: opening is quick, and processes share the memory.

    A vector of zeros has a cosine of 0 with everything: no answer is ever NaN. Nothing is near to one.
    """

    def __init__(self, words: Words, rows: np.ndarray, folder: Path | None = None):
        self.words, self.rows, self.folder = words, rows, folder

    @classmethod
    def load(cls, folder: Path, device: str | None = None) -> "WordVectors":
        """Open a run; ``device`` is for the likeness to other runs' openers: vectors stay where they are mapped."""
        return cls(Words.load(folder / "codec"), vectors_in(folder), folder)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return self.words.find(word) is not None

    def __getitem__(self, word: str) -> np.ndarray:
        """float32[dim].

        Raises:
            DataError: the word has no vector; the message names words that are spelled like it.
        """
        return self.rows[self.row(word)]

    @property
    def dim(self) -> int:
        return self.rows.shape[1]

    @property
    def kind(self) -> str:
        """skipgram, cbow, glove or word-table."""
        return read_json(self.folder / "model.json")["class"] if self.folder else "word-table"

    def row(self, word: str) -> int:
        """The row of a word; DataError if it has none."""
        if (row := self.words.find(word)) is None:
            near = self.spelled_like(word)
            raise DataError(
                f"{word!r} has no vector: it is not among the {len(self):,} words",
                remedy=f"did you mean {' or '.join(map(repr, near))}?" if near else "",
            )
        return row

    def spelled_like(self, word: str, count: int = 3) -> list[str]:
        """Words whose spelling is near: another case first, then by letters; the frequent ones of these."""
        folded = word.casefold()
        same = [other for other in self.words.words if other.casefold() == folded and other != word]
        alike = [other for other in self.words.words if abs(len(other) - len(word)) <= 2 and other[:1] == word[:1]]
        close = difflib.get_close_matches(word, alike[:20_000], n=count, cutoff=0.6)
        return list(dict.fromkeys([*same, *close]))[:count]

    @cached_property
    def lengths(self) -> np.ndarray:
        """float32[words]: of each vector; 1 for a vector of zeros."""
        found = np.concatenate(
            [np.linalg.norm(self.rows[i : i + BLOCK], axis=1) for i in range(0, len(self), BLOCK)]
        ).astype(np.float32)
        found[found == 0] = 1
        return found

    def unit(self, row: int) -> np.ndarray:
        """A vector at length 1."""
        return np.asarray(self.rows[row]) / self.lengths[row]

    def cosines(self, directions: np.ndarray) -> np.ndarray:
        """float32[words, n]: of every word with each of some unit vectors (n, dim)."""
        return np.concatenate(
            [self.rows[i : i + BLOCK] @ directions.T for i in range(0, len(self), BLOCK)]
        ) / self.lengths[:, None]  # fmt: skip

    def nearest(self, word: str | np.ndarray, top: int = 10) -> list[Near]:
        """The words of the largest cosine with a word (itself left out), or with any vector.

        Raises:
            DataError: the vector is all zeros.
        """
        row = self.row(word) if isinstance(word, str) else None
        vector = np.asarray(word if row is None else self.rows[row], np.float32)
        if not (length := np.linalg.norm(vector)):
            whose = "the vector" if row is None else f"the vector of {word!r}"
            raise DataError(f"{whose} is all zeros and has no direction, so that nothing is near to it")
        return self._best(self.cosines(vector[None] / length)[:, 0], top, [] if row is None else [row])

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two words."""
        return float(self.unit(self.row(one)) @ self.unit(self.row(other)))

    def analogy(self, plus: Sequence[str], minus: Sequence[str] = (), top: int = 10, rule: str = "add") -> list[Near]:
        """What is to ``plus`` without ``minus``: "왕" and "여자" without "남자" is ... The words given are left out.

        Args:
            rule: "add", the cosine with the sum of unit vectors (3CosAdd, Mikolov et al. 2013c), or "mul", the product
                of shifted cosines over those of minus (3CosMul, Levy and Goldberg 2014, eq. 4).
        """
        if not plus:
            raise DataError("an analogy has no word with a plus", expected="such as: 왕 - 남자 + 여자")
        given = [self.row(word) for word in [*plus, *minus]]
        return self._best(self._analogies(np.array([given]), len(plus), rule)[:, 0], top, given)

    def _analogies(self, given: np.ndarray, plus: int, rule: str) -> np.ndarray:
        """float32[words, questions]: scores of all words for questions of as many rows each, the first with a plus."""
        signs = np.array([1.0] * plus + [-1.0] * (given.shape[1] - plus), np.float32)
        units = np.asarray(self.rows[given]) / self.lengths[given][..., None]
        if rule == "add":
            target = (units * signs[None, :, None]).sum(1)
            length = np.linalg.norm(target, axis=1, keepdims=True)
            return self.cosines(target / np.where(length == 0, 1, length))
        if rule != "mul":
            raise DataError(f"there is no rule {rule!r}", expected="add or mul")
        scores = np.ones((len(self), len(given)), np.float32)
        for i, sign in enumerate(signs):
            shifted = (self.cosines(units[:, i]) + 1) / 2
            scores = scores * shifted if sign > 0 else scores / (shifted + EPSILON)
        return scores

    def odd(self, words: Sequence[str]) -> list[Near]:
        """Words by their cosine with the mean of all, the odd one first."""
        if len(words) < 3:
            raise DataError(
                f"{len(words)} word{'s' * (len(words) != 1)}", expected="three or more, to find the odd one"
            )
        units = np.stack([self.unit(self.row(word)) for word in words])
        mean = units.mean(0)
        cosines = units @ (mean / (np.linalg.norm(mean) or 1))
        return sorted(map(Near, words, cosines.tolist()), key=lambda near: near.score)

    def _best(self, scores: np.ndarray, top: int, without: Sequence[int]) -> list[Near]:
        scores = np.nan_to_num(scores.astype(np.float32), nan=-np.inf)
        scores[list(without)] = -np.inf
        top = min(top, len(scores) - len(set(without)))
        if top < 1:
            return []
        best = np.argpartition(-scores, top - 1)[:top]
        best = best[np.lexsort((best, -scores[best]))]  # of equal ones the more frequent first
        return [Near(self.words.words[i], float(scores[i])) for i in best]
