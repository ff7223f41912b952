"""Which pictures of train are held out where the user has named none: of each class alike, and by content alone.

The choice depends on the pixels, not on names, order or a seed: a picture that is added moves few others, runs of any
seed are judged on the same pictures, and two copies of a picture are always on the same side.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, UInt64

from qkv.data.classes import Label, counts

__all__ = ["hold_out"]


def hold_out(
    content: UInt64[np.ndarray, "picture"], labels: Sequence[Label], share: float
) -> Bool[np.ndarray, "picture"]:
    """True for pictures to hold out: ``share`` of each class, rounded, but one at least and never all.

    With several labels a picture counts for the rarest of them; numbers are one class.

    Args:
        content: a hash of each picture's pixels.
    """
    common = counts(labels)
    classes: dict[int, Label] = {}  # of each picture that there is, however many files it has
    for one, label in zip(content.tolist(), labels, strict=True):
        classes.setdefault(one, _stratum(label, common))
    groups: dict[Label, list[int]] = {}
    for one in sorted(classes):  # in order of a hash, which is a shuffle
        groups.setdefault(classes[one], []).append(one)
    chosen = []
    for group in groups.values():
        if len(group) > 1:
            chosen += group[: min(len(group) - 1, max(1, round(share * len(group))))]
    return np.isin(content, np.array(chosen, np.uint64))


def _stratum(label: Label, common: Counter[str]) -> Label:
    if isinstance(label, tuple):
        return min(label, key=lambda name: (common[name], name), default="")
    return "" if isinstance(label, float) else label
