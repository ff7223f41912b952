"""What a decoder reads in training: the true words, or some of its own (scheduled sampling, Bengio et al. 2015)."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

__all__ = ["chance_of_truth", "partly_own"]


def chance_of_truth(last: float, steps: int, step: int) -> float:
    """The chance that a word is the true one at a step: from 1 to ``last`` in so many ``steps``, linearly."""
    gone = 1.0 if step >= steps else step / steps
    return 1 - gone * (1 - last)


@torch.no_grad()
def partly_own(
    model: nn.Module, start: Callable[[], Any], true: Int[Tensor, "batch target"], chance: float
) -> Int[Tensor, "batch target"]:
    """What the decoder reads: each word the true one with this chance, else what the model says after those before it.

    To choose a word has no gradient, so the words can be found first, by the steps of a search, and the loss then runs
    over all of them at once, as over given ones.

    Args:
        start: gives the state of a search before its first word.
        true: begins with the start mark.
    """
    keep = torch.rand(true.shape, device=true.device) < chance
    was_training, _ = model.training, model.eval()  # what it would say, not what dropout makes of it
    state = start()
    read = [true[:, :1]]
    for place in range(1, true.shape[1]):
        logits, state = model.step(state, read[-1])
        read.append(torch.where(keep[:, place, None], true[:, place, None], logits.argmax(-1)))
    model.train(was_training)
    return torch.cat(read, 1)
