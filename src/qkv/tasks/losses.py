"""Losses of classes and numbers, the same for pictures, clips and texts: each summed over the examples of a batch."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

__all__ = ["balanced", "class_loss", "number_loss", "several_loss"]


def class_loss(
    logits: Float[Tensor, "example class"],
    shares: Float[Tensor, "example class"],
    smoothing: float = 0.0,
    weights: Float[Tensor, "class"] | None = None,
) -> Float[Tensor, ""]:
    """Cross entropy with shares of classes: ``- sum_c w_c y_c log p_c``.

    Args:
        shares: of each class, summing to 1: a mixture where examples were mixed.
        smoothing: this part of the shares is spread evenly over all classes (Szegedy et al. 2016, section 7).
        weights: of each class, see `balanced`.
    """
    shares = shares * (1 - smoothing) + smoothing / shares.shape[1]
    if weights is not None:
        shares = shares * weights
    return -(shares * logits.float().log_softmax(1)).sum()


def several_loss(
    logits: Float[Tensor, "example class"],
    labels: Float[Tensor, "example class"],
    smoothing: float = 0.0,
    weights: Float[Tensor, "class"] | None = None,
) -> Float[Tensor, ""]:
    """Binary cross entropy of each class for itself, its mean over classes.

    Args:
        labels: 1 and 0, between them where examples were mixed.
        smoothing: labels are moved by half of this towards 0.5.
        weights: of each class where it is there.
    """
    labels = labels * (1 - smoothing) + smoothing / 2
    losses = functional.binary_cross_entropy_with_logits(logits.float(), labels, pos_weight=weights, reduction="none")
    return losses.mean(1).sum()


def number_loss(
    outputs: Float[Tensor, "example 1"], targets: Float[Tensor, "example 1"], huber: float = 0.0
) -> Float[Tensor, ""]:
    """Squared error; or, if ``huber`` is not 0, half of it up to there and linear from there on (Huber 1964)."""
    outputs = outputs.float()
    if huber:
        return functional.huber_loss(outputs, targets, reduction="sum", delta=huber)
    return functional.mse_loss(outputs, targets, reduction="sum")


def balanced(labels: Float[Tensor, "example class"], several: bool = False) -> Float[Tensor, "class"]:
    """Weights of classes under which all count alike; 1 for a class without examples.

    Of one label: n / (classes * n_c), whose mean over the examples is 1. Of several: those without over those with it.
    """
    have, examples = labels.sum(0), len(labels)
    weights = (examples - have) / have if several else examples / ((have > 0).sum() * have)
    return torch.where((have > 0) & (weights > 0), weights, torch.ones_like(have))
