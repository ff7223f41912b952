"""GloVe's table of ratios (Pennington et al. 2014, table 1): P(k | one) / P(k | other) tells two words apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkv.data.cooccurrence import counts_of
from qkv.data.word_ids import WordIds
from qkv.errors import DataError, RunError
from qkv.tasks.word_vectors import WordVectors

__all__ = ["Ratio", "Ratios", "count_ratios"]

WINDOW = 10
TELLING = 5.0  # a context is offered where both words together were near it so much


@dataclass(frozen=True)
class Ratio:
    """P(k | one), P(k | other) and the first over the second; None where the second is 0."""

    context: str
    one: float
    other: float
    ratio: float | None


@dataclass(frozen=True)
class Ratios:
    """The table of two words, and what it was counted of."""

    one: str
    other: str
    rows: list[Ratio]
    counted: str


def count_ratios(vectors: WordVectors, one: str, other: str, contexts: Sequence[str] = ()) -> Ratios:
    """Count the neighbours of two words in the text that the run keeps, 10 words on both sides, each 1 / its distance.

    Args:
        contexts: words k; if none are given, the eight that tell the two apart most, four for each.

    Raises:
        RunError: the run keeps no text (an imported one has none).
        DataError: a word has no vector, or was never near another.
    """
    if vectors.folder is None or not (vectors.folder / "text" / "store.json").is_file():
        raise RunError(
            "keeps no text to count in", file=vectors.folder, remedy="ratios need a run that was trained here"
        )
    text = WordIds.open(vectors.folder / "text")
    rows = np.array([vectors.row(one), vectors.row(other)])
    counts = counts_of(text.ids, text.ends, rows, WINDOW, len(vectors))
    totals = counts.sum(1, keepdims=True)
    if not totals.all():
        raise DataError(f"{(one, other)[int(totals.argmin())]!r} has no neighbours in the text", file=vectors.folder)
    chance = counts / totals
    chosen = [vectors.row(word) for word in contexts] or _telling(counts, chance, rows)
    told = []
    for k in chosen:
        here, there = map(float, chance[:, k])
        told.append(Ratio(vectors.words.words[k], here, there, here / there if there else None))
    places = f"{len(text.ids):,} places of the run's text, {WINDOW} words on both sides, each 1 / its distance"
    return Ratios(one, other, told, places)


def _telling(counts: np.ndarray, chance: np.ndarray, own: np.ndarray) -> list[int]:
    weighed = np.log((chance[0] + 1e-6) / (chance[1] + 1e-6)) * np.sqrt(counts.sum(0))
    weighed[counts.sum(0) < TELLING] = 0
    weighed[own] = 0
    order = np.argsort(weighed)
    return [int(k) for k in [*order[::-1][:4], *order[:4]] if weighed[k]]
