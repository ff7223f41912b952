"""Mixup and CutMix: every picture of a batch becomes a mixture of two, and so does its label."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["cutmix", "mixup"]

Mixed = tuple[Float[Tensor, "image 3 row column"], Float[Tensor, "image label"]]


def mixup(
    images: Float[Tensor, "image 3 row column"],
    labels: Float[Tensor, "image label"],
    alpha: float,
    chance: np.random.Generator,
) -> Mixed:
    """Each picture blended with another of the batch (Zhang et al. 2018), by one share for all, of Beta(alpha, alpha).

    Partners are a permutation of the batch, so that a batch may be odd, or one picture.
    """
    share, partner = float(chance.beta(alpha, alpha)), torch.from_numpy(chance.permutation(len(images)))
    return (
        share * images + (1 - share) * images[partner],
        share * labels + (1 - share) * labels[partner],
    )


def cutmix(
    images: Float[Tensor, "image 3 row column"],
    labels: Float[Tensor, "image label"],
    alpha: float,
    chance: np.random.Generator,
) -> Mixed:
    """A rectangle of each picture replaced by that of another (Yun et al. 2019).

    Labels are mixed by the area that was really replaced, after the rectangle was rounded to pixels and cut at the
    border, not by the share that was drawn.
    """
    drawn, partner = float(chance.beta(alpha, alpha)), torch.from_numpy(chance.permutation(len(images)))
    height, width = images.shape[2:]
    rows, columns = height * np.sqrt(1 - drawn), width * np.sqrt(1 - drawn)
    middle = chance.uniform(0, height), chance.uniform(0, width)
    top, bottom = (int(np.clip(round(middle[0] + sign * rows / 2), 0, height)) for sign in (-1, 1))
    left, right = (int(np.clip(round(middle[1] + sign * columns / 2), 0, width)) for sign in (-1, 1))
    images = images.clone()
    images[:, :, top:bottom, left:right] = images[partner, :, top:bottom, left:right]
    kept = 1 - (bottom - top) * (right - left) / (height * width)
    return images, kept * labels + (1 - kept) * labels[partner]
