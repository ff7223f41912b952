"""Scores of predicted numbers, in the unit that the targets have."""

import math

import numpy as np
from jaxtyping import Float

from qkv.errors import DataError

__all__ = ["number_scores", "ranks", "shown"]

UNDEFINED = {"r2": " (all targets are equal)", "spearman": " (all targets or answers are equal)"}


def number_scores(said: Float[np.ndarray, "example"], targets: Float[np.ndarray, "example"]) -> dict[str, float]:
    """``mae``, ``rmse``, ``r2`` (1 - residual / total squares) and ``spearman`` (correlation of ranks).

    Where targets do not differ, ``r2`` and ``spearman`` are not a number; so is ``spearman`` of a constant answer.
    """
    if not len(targets):
        raise DataError("there is nothing to score", expected="one example or more")
    if len(said) != len(targets):
        raise ValueError(f"{len(said)} answers to {len(targets)} examples")
    said, targets = np.asarray(said, np.float64), np.asarray(targets, np.float64)
    error, total = said - targets, ((targets - targets.mean()) ** 2).sum()
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "r2": float(1 - (error**2).sum() / total) if total > 0 else float("nan"),
        "spearman": _correlation(ranks(said), ranks(targets)),
    }


def shown(name: str, value: float, form: str) -> str:
    """A score for people: ``r2 0.9312``; one that is not a number says why, as far as that is known."""
    return f"{name} not defined{UNDEFINED.get(name.strip(), '')}" if math.isnan(value) else f"{name} {value:{form}}"


def ranks(values: Float[np.ndarray, "example"]) -> Float[np.ndarray, "example"]:
    """Places in order, from 1; equal values share the mean of their places."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[which]


def _correlation(one: Float[np.ndarray, "example"], other: Float[np.ndarray, "example"]) -> float:
    one, other = one - one.mean(), other - other.mean()
    spread = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / spread) if spread > 0 else float("nan")
