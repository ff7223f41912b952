"""Norms: layer normalisation, and batch normalisation over real tokens only."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

__all__ = ["NORMS", "LayerNorm", "TokenBatchNorm"]


class LayerNorm(nn.LayerNorm):
    """Each token normalised by its own mean and variance (Ba et al. 2016, eq. 4): neighbours cannot matter."""

    def forward(self, states: Float[Tensor, "batch *token dim"], real: Bool[Tensor, "batch token"] | None = None):
        """Normalise over the width; which tokens are real makes no difference."""
        return super().forward(states)


class TokenBatchNorm(nn.Module):
    """Each channel normalised over all real tokens of the batch (Ioffe & Szegedy 2015, algorithm 1).

    In training a token's output then depends on its neighbours, even on later tokens of its own sentence: what one
    sees at training time leaks through the statistics. In evaluation the running statistics are constants and every
    law holds. Padding never enters the statistics.
    """

    def __init__(self, dim: int, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))

    def forward(self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"] | None = None):
        """Normalise each channel; ``real`` says which tokens count (all if None)."""
        mean, variance = self.mean, self.variance
        if self.training:
            tokens = states.flatten(0, 1) if real is None else states[real]
            variance, mean = torch.var_mean(tokens.to(self.mean.dtype), 0, correction=0)  # float32 under autocast too
            with torch.no_grad():
                count = tokens.shape[0]
                self.mean.lerp_(mean, self.momentum)
                self.variance.lerp_(variance * (count / max(count - 1, 1)), self.momentum)
        scaled = (states - mean) * (variance + self.eps).rsqrt()
        return (scaled * self.weight + self.bias).to(states.dtype)


NORMS = {"layer": LayerNorm, "batch": TokenBatchNorm}
