"""Stochastic depth: a layer that is skipped now and then in training."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["StochasticDepth", "skip_rates"]


class StochasticDepth(nn.Module):
    """What a layer adds is left out for an example with chance ``p`` in training, and else scaled up by 1 / (1 - p), so
    that nothing changes in evaluation (Huang et al. 2016, section 3)."""

    def __init__(self, p: float = 0.0):
        super().__init__()
        self.p = p

    def forward(self, added: Float[Tensor, "batch *token dim"]) -> Float[Tensor, "batch *token dim"]:
        if not self.training or self.p == 0:
            return added
        kept = torch.rand(len(added), *[1] * (added.ndim - 1), device=added.device) >= self.p
        return added * (kept.to(added.dtype) / (1 - self.p))


def skip_rates(last: float, depth: int) -> list[float]:
    """The chance of each of ``depth`` layers: from 0 for the first to ``last`` (Huang et al. 2016, eq. 4)."""
    return [last * layer / max(depth - 1, 1) for layer in range(depth)]
