"""What an answer hangs on, for any model that reads and writes: gradients. And the states of one that has no attention.

A model without attention looks at nothing. What can be said of it is how much the chance of each word it wrote would
change with each word it read (Simonyan et al. 2014, section 3), and how its states grow on the way.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Axis
from qkv.layers.recurrent import RecurrentDecoder, RecurrentEncoder
from qkv.look.record import Map

__all__ = ["NAME", "gradient_lengths", "saliency", "state_norms"]

NAME = "gradient"  # of the map, where layers have their module's
ROOM = 8192  # tokens that are run at once


def saliency(
    embedding: nn.Module, chances: Callable[[int, int, int], Float[Tensor, "row"]], query: Axis, key: Axis
) -> Map:
    """How much the log-probability of each written word depends on each word read: the length of its gradient.

    A map of one head. Each row is divided by its sum, so that rows compare as attention's do; a row without any
    gradient is zero.

    Args:
        embedding: the module that makes vectors of the words read; its output is what is differentiated by.
        chances: ``chances(first, last, copies)`` runs the model on so many copies of the example and gives, of copy i,
            the log-probability of written word ``first + i``.
        query: the words written; row t is the step that reads word t and predicts what comes after it.
        key: the words read.
    """
    rows = []
    at_once = max(1, ROOM // max(1, len(query) + len(key)))
    for first in range(0, len(query), at_once):
        last = min(first + at_once, len(query))
        rows.append(gradient_lengths(embedding, lambda: chances(first, last, last - first).sum()))  # noqa: B023
    lengths = torch.cat(rows)[:, : len(key)]
    weights = lengths / lengths.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
    return Map(NAME, "gradient", weights[None], query, key, (0,), tuple(range(len(query))))


def gradient_lengths(embedding: nn.Module, total: Callable[[], Float[Tensor, ""]]) -> Float[Tensor, "batch token"]:
    """Length of the gradient of ``total()`` at each vector that ``embedding`` makes meanwhile."""
    vectors: list[Tensor] = []

    def keep(module: nn.Module, given: Any, made: Tensor) -> Tensor:
        vectors.append(made.detach().requires_grad_())
        return vectors[-1]

    handle = embedding.register_forward_hook(keep)
    try:
        # cuDNN's recurrent kernels have no backward pass in evaluation mode; torch's own have.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            (gradient,) = torch.autograd.grad(total(), vectors[-1:])
    finally:
        handle.remove()
    return gradient.norm(dim=-1).float().cpu()


def state_norms(model: nn.Module, run: Callable[[], Any]) -> dict[str, list[float]]:
    """Length of the state at each step of the recurrent encoder ("source") and decoder ("target") while ``run`` runs.

    Of the first example; empty for a model that is not recurrent.
    """
    norms: dict[str, list[float]] = {}

    def listener(stream: str) -> Callable:
        def hear(module: nn.Module, given: Any, made: Any) -> None:
            states = made[0] if isinstance(made, tuple) else made
            norms[stream] = states[0].norm(dim=-1).tolist()

        return hear

    streams = {RecurrentEncoder: "source", RecurrentDecoder: "target"}
    handles = [m.register_forward_hook(listener(streams[type(m)])) for m in model.modules() if type(m) in streams]
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    return norms
