"""How good word vectors are: analogies, and pairs of words rated by people. How much was in vocabulary is told."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from qkv.data.lines import open_lines, raw_lines
from qkv.errors import DataError
from qkv.tasks.word_vectors import WordVectors

__all__ = ["Analogies", "Similarities", "score_analogies", "score_pairs", "spearman"]

AT_ONCE = 256  # questions whose scores of all words are held together


@dataclass(frozen=True)
class Analogies:
    """Share of right answers among the questions whose four words have vectors; by section too."""

    file: str
    asked: int
    known: int
    right: int
    rule: str
    sections: dict[str, tuple[int, int]] = field(default_factory=dict)  # known, right

    @property
    def accuracy(self) -> float | None:
        return self.right / self.known if self.known else None

    def __str__(self) -> str:
        share = f"{self.accuracy:.2%} right" if self.known else "no question can be asked"
        return (
            f"{self.file}: {share} ({self.right:,} of {self.known:,}, 3Cos{self.rule.capitalize()}); "
            f"{self.asked - self.known:,} of {self.asked:,} questions "
            f"({(self.asked - self.known) / self.asked:.1%}) have a word out of vocabulary"
        )

    def to_json(self) -> dict:
        return {**asdict(self), "accuracy": self.accuracy}


@dataclass(frozen=True)
class Similarities:
    """Spearman's rank correlation of cosines and people's ratings, over the pairs whose words have vectors."""

    file: str
    pairs: int
    known: int
    spearman: float | None

    def __str__(self) -> str:
        share = f"Spearman {self.spearman:.4f}" if self.spearman is not None else "no correlation can be told"
        return (
            f"{self.file}: {share} over {self.known:,} pairs; {self.pairs - self.known:,} of {self.pairs:,} "
            f"({(self.pairs - self.known) / self.pairs:.1%}) have a word out of vocabulary"
        )

    def to_json(self) -> dict:
        return asdict(self)


def score_analogies(vectors: WordVectors, file: Path, rule: str = "add", most_words: int | None = None) -> Analogies:
    """Questions as in questions-words.txt: ``a b c d`` asks for d from ``b - a + c``; ``: name`` begins a section.

    The three words given are never an answer.

    Args:
        most_words: only so many of the most frequent words may be asked about and be answers, as the published figures
            have it (30,000); all if not given.

    Raises:
        DataError: a line has not four words, or there is no question.
    """
    asked, sections, section = 0, {}, ""
    questions: list[tuple[str, list[int]]] = []
    find = _finder(vectors, most_words)
    for number, words in _rows(file, None):
        if words[0].startswith(":"):
            section = " ".join(words).lstrip(": ")
            continue
        if len(words) != 4:
            raise DataError(f"{len(words)} words", expected="a question of four words", file=file, line=number)
        asked += 1
        rows = [find(word) for word in words]
        sections.setdefault(section, [0, 0])
        if None not in rows:
            questions.append((section, rows))
            sections[section][0] += 1
    if not asked:
        raise DataError("there is no question", expected="lines of four words", file=file)
    right = 0
    for begin in range(0, len(questions), AT_ONCE):
        some = questions[begin : begin + AT_ONCE]
        rows = np.array([row for _, row in some])
        scores = vectors._analogies(rows[:, [1, 2, 0]], 2, rule)[:most_words]
        scores[rows[:, :3], np.arange(len(some))[:, None]] = -np.inf
        for (section, _), hit in zip(some, scores.argmax(0) == rows[:, 3], strict=True):
            sections[section][1] += int(hit)
            right += int(hit)
    told = {name: tuple(counts) for name, counts in sections.items()}
    return Analogies(Path(file).name, asked, len(questions), right, rule, told)


def score_pairs(vectors: WordVectors, file: Path) -> Similarities:
    """Pairs as in WordSim-353 and SimLex-999: two words and a rating, tabs (or commas or blanks) between.

    Raises:
        DataError: a line is no such pair, or there is none.
    """
    ratings, cosines, pairs = [], [], 0
    find = _finder(vectors, None)
    for number, cells in _rows(file, "\t,"):
        try:
            rating = float(cells[2])
        except (IndexError, ValueError):
            if pairs == 0 and number == 1:
                continue  # names of columns
            raise DataError(
                f"{' '.join(cells)!r} is no rated pair", expected="word, word, rating", file=file, line=number
            ) from None
        pairs += 1
        one, other = find(cells[0]), find(cells[1])
        if one is not None and other is not None:
            ratings.append(rating)
            cosines.append(float(vectors.unit(one) @ vectors.unit(other)))
    if not pairs:
        raise DataError("there is no pair", expected="word, word, rating", file=file)
    return Similarities(Path(file).name, pairs, len(ratings), spearman(ratings, cosines))


def spearman(left: list[float], right: list[float]) -> float | None:
    """The correlation of ranks, equal values sharing theirs; None where there is none to tell."""
    if len(left) < 2:
        return None
    ranks = [_ranks(np.asarray(values)) for values in (left, right)]
    if any(rank.std() == 0 for rank in ranks):
        return None
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def _finder(vectors: WordVectors, most: int | None) -> Callable[[str], int | None]:
    """A word's row: as it is, else in the small letters of a vocabulary that has no others."""

    def find(word: str) -> int | None:
        row = vectors.words.find(word)
        row = vectors.words.find(word.lower()) if row is None else row
        return row if row is None or most is None or row < most else None

    return find


def _rows(file: Path, between: str | None) -> Iterator[tuple[int, list[str]]]:
    """``(line number, cells)`` of a file, without comments and blank lines."""
    with open_lines(file) as stream:
        for number, raw in enumerate(raw_lines(stream), start=1):
            text = (raw or b"").decode("utf-8", "replace").strip("\ufeff\r ")
            if not text.strip() or text.startswith("#"):
                continue
            mark = next((mark for mark in between or "" if mark in text), None)
            yield number, text.split(mark)
