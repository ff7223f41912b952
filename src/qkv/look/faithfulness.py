"""Does a picture of attention tell what the answer hangs on? Take away what it points at and see.

Deletion removes positions from the most important to the least: a faithful order makes the score fall early. Insertion
puts them back in the same order into an input without any: the score rises early. (Petsiuk, Das & Saenko 2018, "RISE",
section 4.3, for images; here a position is whatever the caller can remove: a word, a patch, a frame.)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from jaxtyping import Bool, Float

from qkv.errors import RunError

__all__ = ["Curve", "Faithfulness", "deletion_insertion"]

Score = Callable[[Bool[np.ndarray, "batch position"]], Sequence[float]]
Importance = Float[np.ndarray, " position"]


@dataclass(frozen=True)
class Curve:
    """Scores while the positions are deleted, or inserted, in one order, step by step.

    ``shares`` are how much of them has gone, or come, at each step, from 0 to 1. ``area`` is insertion's area minus
    deletion's, each the mean height over the share of positions: the larger, the more of the score hangs on the
    positions that come first.
    """

    deletion: Float[np.ndarray, " step"]
    insertion: Float[np.ndarray, " step"]
    shares: Float[np.ndarray, " step"]

    @property
    def area(self) -> float:
        return float(np.trapezoid(self.insertion - self.deletion, self.shares))


@dataclass(frozen=True)
class Faithfulness:
    """The curves of an order of importance beside those of random orders and of other measures of importance.

    ``chance`` is the share of random orders whose area is at least as large (counting this one among them): a p-value.
    """

    curve: Curve
    random: Curve
    chance: float
    baselines: dict[str, Curve] = field(default_factory=dict)
    level: float = 0.05

    @property
    def better_than_chance(self) -> bool:
        return self.chance <= self.level

    @property
    def sentence(self) -> str:
        """What the figures say, in plain words."""
        figures = f"(area {self.curve.area:.2f}, random order {self.random.area:.2f})"
        if self.better_than_chance:
            return f"Taking away what it looked at most changes the answer most {figures}: better than chance here."
        if self.curve.area > self.random.area:
            return (
                f"Taking away what it looked at changes the answer more {figures}, but of random orders a share of "
                f"{self.chance:.2f} does as well: no better than chance here."
            )
        return f"Taking away other parts changes the answer as much {figures}: no better than chance here."

    def note(self) -> dict:
        """Plain data for ``trace.notes["faithfulness"]``."""
        return {
            "sentence": self.sentence,
            "area": self.curve.area,
            "random": self.random.area,
            "chance": self.chance,
            "baselines": {name: curve.area for name, curve in self.baselines.items()},
        }


def deletion_insertion(
    score: Score,
    importance: Importance,
    *,
    baselines: Mapping[str, Importance] | None = None,
    samples: int = 99,
    seed: int = 0,
    batch: int = 64,
    steps: int | None = None,
    level: float = 0.05,
) -> Faithfulness:
    """Deletion and insertion curves of ``importance`` against random orders.

    Args:
        score: takes a batch of inputs, each a row of booleans (True where a position is *removed*), and gives the score
            of the answer under study for each: its log-probability, say. How to remove is the caller's: a masked key,
            a grey patch. The answer must be the one given to the whole input, for every row.
        importance: one figure for each position, the larger the more important: a row of attention, a rollout. Equal
            ones are taken from left to right.
        baselines: other importances to draw beside it, by name (``{"gradient": ..., "uniform": ...}``).
        samples: how many random orders; with fewer orders than that in all (a short input), every one is tried.
        batch: the most rows given to ``score`` at once. No row is asked for twice.
        steps: how many steps from the whole input to nothing, of as many positions each as can be; one position at a
            time if not given.
        level: the largest ``chance`` that is called better than chance.
    """
    importance = np.asarray(importance, dtype=np.float64)
    positions = len(importance)
    if importance.ndim != 1 or positions == 0:
        raise RunError(f"importance of shape {importance.shape}", expected="one figure for each position")
    others = {name: np.asarray(values, dtype=np.float64) for name, values in (baselines or {}).items()}
    for name, values in {"importance": importance, **others}.items():
        if values.shape != importance.shape:
            raise RunError(f"{name} of shape {values.shape}", expected=f"{importance.shape}, as the importance")
        if not np.isfinite(values).all():
            raise RunError(f"{name} holds a value that is not finite")
    few = positions < 8 and math.factorial(positions) <= samples
    if few:
        randoms = [np.array(order) for order in permutations(range(positions))]
    else:
        draw = np.random.default_rng(seed)
        randoms = [draw.permutation(positions) for _ in range(samples)]
    orders = [np.argsort(-values, kind="stable") for values in (importance, *others.values())] + randoms

    counts = np.arange(positions + 1)
    if steps is not None and steps < positions:
        counts = np.round(np.linspace(0, positions, max(steps, 1) + 1)).astype(int)
    removed = np.stack([_removals(order, counts) for order in orders])  # order, step, position
    rows, place = np.unique(removed.reshape(-1, positions), axis=0, return_inverse=True)
    parts = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    scores = [np.asarray(score(part), dtype=np.float64) for part in parts]
    for part, given in zip(parts, scores, strict=True):
        if given.shape != (len(part),):
            raise RunError(f"the score function gave shape {given.shape}", expected=f"({len(part)},), one for each row")
    along = np.concatenate(scores)[place.reshape(len(orders), 2, len(counts))]
    own, *rest = (Curve(deletion, insertion, counts / positions) for deletion, insertion in along)
    named, chances = dict(zip(others, rest, strict=False)), rest[len(others) :]
    reached = sum(curve.area >= own.area - 1e-12 for curve in chances)
    chance = reached / len(chances) if few else (1 + reached) / (1 + len(chances))  # the few hold the order itself
    mean = Curve(*along[1 + len(others) :].mean(0), counts / positions)
    return Faithfulness(own, mean, float(chance), named, level)


def _removals(order: np.ndarray, counts: np.ndarray) -> Bool[np.ndarray, "step position"]:
    """What is removed at each step of the deletion, then of the insertion, of so many positions in this order."""
    deleted = np.argsort(order)[None, :] < counts[:, None]
    return np.concatenate([deleted, ~deleted])
