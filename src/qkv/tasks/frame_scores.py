"""Scores of single frames, marked or not, over all frames of all clips."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from qkv.data.frame_labels import BACKGROUND
from qkv.tasks.class_scores import confusion_matrix, f1

__all__ = ["frame_scores"]


def frame_scores(
    probabilities: Float[np.ndarray, "frame class"], labels: Int[np.ndarray, "frame"], classes: Sequence[str]
) -> dict[str, float]:
    """``frame_accuracy``, and ``frame_f1``: the mean F1 of the classes that mark something and are there or were said.

    Without the class that marks nothing, which most frames have: a model that says it always has F1 0. Where no frame
    is marked or said to be, it is not a number.
    """
    said = probabilities.argmax(1)
    matrix = confusion_matrix(said, labels, len(classes))
    right = matrix.diagonal()
    marks = np.array([name != BACKGROUND for name in classes]) & (matrix.sum(0) + matrix.sum(1) > 0)
    each = f1(right, matrix.sum(0) - right, matrix.sum(1) - right)[marks]
    return {
        "frame_accuracy": float((said == labels).mean()),
        "frame_f1": float(each.mean()) if len(each) else float("nan"),
    }
