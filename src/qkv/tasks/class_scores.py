"""Scores of classification, the same for pictures, clips and texts; all from probabilities and true labels.

``labels`` is the number of each example's class, or with several labels 1 and 0 for each class. Ties of probability go
to the class that comes first, as in argmax, so that a model which finds all classes alike is no expert.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from qkv.errors import DataError

__all__ = [
    "Bin",
    "ClassRow",
    "calibration",
    "class_scores",
    "class_table",
    "confusion_matrix",
    "defined",
    "f1",
    "interval",
    "macro_f1",
    "per_class",
    "per_label",
    "rank",
    "reliability",
    "several_scores",
]

CUT = 0.5  # probability from which one of several labels is said
BINS = 15  # of calibration, as in Guo et al. 2017
DRAWS = 1000  # of the bootstrap


def class_scores(
    probabilities: Float[np.ndarray, "example class"], labels: Int[np.ndarray, "example"]
) -> dict[str, float]:
    """``accuracy``, ``top5`` where there are more than five classes, and ``macro_f1``; from 0 to 1."""
    _check(probabilities, labels)
    ranks = rank(probabilities, labels)
    scores = {"accuracy": float((ranks == 0).mean())}
    if probabilities.shape[1] > 5:
        scores["top5"] = float((ranks < 5).mean())
    matrix = confusion_matrix(probabilities.argmax(1), labels, probabilities.shape[1])
    return scores | {"macro_f1": macro_f1(matrix)}


def several_scores(
    probabilities: Float[np.ndarray, "example class"], labels: Bool[np.ndarray, "example class"]
) -> dict[str, float]:
    """``map`` (mean over classes of average precision), ``micro_f1`` and ``macro_f1`` where `CUT` decides.

    A class that no example has is no part of ``map``; one that is neither there nor said is no part of ``macro_f1``.
    Where nothing is left to average, the score is not a number.
    """
    _check(probabilities, labels)
    labels = labels.astype(bool)
    precisions = [_average_precision(probabilities[:, i], labels[:, i]) for i in np.flatnonzero(labels.any(0))]
    counts = _several_counts(probabilities >= CUT, labels)
    there = (counts.right + counts.wrong + counts.missed) > 0
    micro = f1(counts.right.sum(), counts.wrong.sum(), counts.missed.sum())
    return {
        "map": _mean(precisions),
        "micro_f1": float(micro) if there.any() else float("nan"),
        "macro_f1": _mean(f1(counts.right, counts.wrong, counts.missed)[there]),
    }


def rank(
    probabilities: Float[np.ndarray, "example class"], labels: Int[np.ndarray, "example"]
) -> Int[np.ndarray, "example"]:
    """How many classes come before the true one; all of them where its probability is not a number."""
    true = np.take_along_axis(probabilities, labels[:, None], 1)
    earlier = np.arange(probabilities.shape[1]) < labels[:, None]
    return (~(probabilities <= true) | ((probabilities == true) & earlier)).sum(1)


def confusion_matrix(
    said: Int[np.ndarray, "example"], labels: Int[np.ndarray, "example"], classes: int
) -> Int[np.ndarray, "class class"]:
    """How often an example of class (row) was said to be of class (column)."""
    return np.bincount(labels * classes + said, minlength=classes * classes).reshape(classes, classes)


def f1(right, wrong, missed):
    """Harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN); 0 where nothing was right."""
    return 2 * right / np.maximum(2 * right + wrong + missed, 1)


@dataclass(frozen=True)
class ClassRow:
    """One class: ``count`` examples have it and ``said`` were said to; 0 for a precision of nothing said."""

    name: str
    count: int
    said: int
    precision: float
    recall: float
    f1: float


def per_class(matrix: Int[np.ndarray, "class class"], names: Sequence[str]) -> list[ClassRow]:
    """A row for each class of a confusion matrix."""
    right = matrix.diagonal()
    return _rows(names, right, matrix.sum(0) - right, matrix.sum(1) - right)


def per_label(
    probabilities: Float[np.ndarray, "example class"], labels: Bool[np.ndarray, "example class"], names: Sequence[str]
) -> list[ClassRow]:
    """The same for each of several labels, where `CUT` decides."""
    counts = _several_counts(probabilities >= CUT, labels.astype(bool))
    return _rows(names, counts.right, counts.wrong, counts.missed)


@dataclass(frozen=True)
class Bin:
    """Examples whose highest probability is between ``low`` and ``high``: their mean of it, and how many are right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def calibration(
    probabilities: Float[np.ndarray, "example class"], labels: Int[np.ndarray, "example"], bins: int = BINS
) -> tuple[float, list[Bin]]:
    """The expected calibration error (Guo et al. 2017, eq. 3), and the bins of equal width that are not empty."""
    _check(probabilities, labels)
    return reliability(probabilities.max(1), probabilities.argmax(1) == labels, bins)


def reliability(
    confidence: Float[np.ndarray, "example"], right: Bool[np.ndarray, "example"], bins: int = BINS
) -> tuple[float, list[Bin]]:
    """The same, of how sure each answer is and whether it is right."""
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)  # bin m holds ((m-1)/M, m/M]
    found = [
        Bin(m / bins, (m + 1) / bins, int(own.sum()), float(confidence[own].mean()), float(right[own].mean()))
        for m in range(bins)
        if (own := places == m).any()
    ]
    error = sum(one.count * abs(one.accuracy - one.confidence) for one in found) / len(right)
    return float(error), found


def interval(
    score: Callable[[Int[np.ndarray, "example"]], float], examples: int, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """The 95 % interval of a score by the bootstrap (Efron 1979; percentiles), the same for the same seed.

    Args:
        score: of the examples of these numbers, some more than once.
    """
    chance = np.random.default_rng(seed)
    found = [score(chance.integers(examples, size=examples)) for _ in range(draws)]
    known = [value for value in found if not np.isnan(value)]
    low, high = np.percentile(known, (2.5, 97.5)) if known else (np.nan, np.nan)
    return float(low), float(high)


def defined(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores, or their intervals, for JSON: None for what is not a number."""
    return {name: None if np.isnan(value).any() else value for name, value in scores.items()}


def class_table(rows: Sequence[ClassRow], most: int = 50) -> list[str]:
    """Rows for people to read; of more than ``most`` those with the lowest F1."""
    shown = rows if len(rows) <= most else sorted(rows, key=lambda row: row.f1)[:most]
    width = max([len("class"), *(len(row.name) for row in shown)])
    lines = [f"{'class':{width}}  precision  recall    F1  examples"]
    lines += [
        f"{row.name:{width}}  {row.precision:9.3f}  {row.recall:6.3f} {row.f1:5.3f}  {row.count:8,}" for row in shown
    ]
    return lines + ([f"... and {len(rows) - most:,} classes with a higher F1"] if len(rows) > most else [])


@dataclass(frozen=True)
class _Counts:
    right: Int[np.ndarray, "class"]
    wrong: Int[np.ndarray, "class"]  # said but not so
    missed: Int[np.ndarray, "class"]


def _several_counts(said: Bool[np.ndarray, "example class"], labels: Bool[np.ndarray, "example class"]) -> _Counts:
    return _Counts((said & labels).sum(0), (said & ~labels).sum(0), (~said & labels).sum(0))


def _rows(names: Sequence[str], right: np.ndarray, wrong: np.ndarray, missed: np.ndarray) -> list[ClassRow]:
    said, count = right + wrong, right + missed
    columns = (count, said, right / np.maximum(said, 1), right / np.maximum(count, 1), f1(right, wrong, missed))
    return [ClassRow(*row) for row in zip(names, *(column.tolist() for column in columns), strict=True)]


def macro_f1(matrix: Int[np.ndarray, "class class"]) -> float:
    """The mean F1 of the classes that are there or were said."""
    right, said, count = matrix.diagonal(), matrix.sum(0), matrix.sum(1)
    return _mean(f1(right, said - right, count - right)[said + count > 0])


def _average_precision(scores: Float[np.ndarray, "example"], labels: Bool[np.ndarray, "example"]) -> float:
    """Precision at each step of recall, weighted by the step; examples of equal score come at once."""
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    last = np.append(scores[1:] != scores[:-1], True)
    right, seen = np.cumsum(labels)[last], np.flatnonzero(last) + 1
    return float((np.diff(right, prepend=0) / right[-1] * right / seen).sum())


def _mean(values) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _check(probabilities: np.ndarray, labels: np.ndarray) -> None:
    if not len(labels):
        raise DataError("there is nothing to score", expected="one example or more")
    if len(probabilities) != len(labels):
        raise ValueError(f"{len(probabilities)} answers to {len(labels)} examples")
