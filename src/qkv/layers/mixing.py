"""Token mixing: every cell of a grid made of all others by a fixed MLP (Tolstikhin et al. 2021, eq. 1)."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.layers.block import FeedForward

__all__ = ["MixingTap", "TokenMixing"]


@runtime_checkable
class MixingTap(Protocol):
    """What a trace sets on a mixing layer."""

    def mixed(self, matrix: Float[Tensor, "batch token token"]) -> None: ...


class TokenMixing(nn.Module):
    """W2 gelu(W1 x) over the tokens, the same for every channel; the number of tokens is fixed.

    **What a trace is told.** An MLP of two layers has no mixing matrix of its own: W2 W1 would be one, but for the gelu
    between. What is true of it is its derivative. The matrix reported of an example is how much output token i moves
    with input token j, averaged over channels: W2 diag(mean over channels of gelu'(W1 x + b1)) W1. It is signed, and
    its rows do not sum to one; if gelu were linear, it would be W2 W1 exactly, for every example.

    Args:
        tokens: how many there are, always.
        hidden: width between the two layers.
        between: the stream whose tokens are mixed, twice (see `Attention`).
    """

    heads = 1

    def __init__(self, tokens: int, hidden: int, between: tuple[str, str] = ("tokens", "tokens")):
        super().__init__()
        self.tokens, self.between = tokens, between
        self.mlp = FeedForward(tokens, hidden, "gelu")
        self.tap: MixingTap | None = None

    def forward(self, states: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch token dim"]:
        if self.tap is not None:
            self.tap.mixed(self.matrix(states))
        return self.mlp(states.transpose(1, 2)).transpose(1, 2)

    def matrix(self, states: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch token token"]:
        """The derivative of each output token by each input token, averaged over channels."""
        with torch.no_grad():
            before = self.mlp.expand(states.transpose(1, 2))
        with torch.inference_mode(False), torch.enable_grad():  # for the slope of the activation, whichever it is
            before = before.clone().requires_grad_()
            (slope,) = torch.autograd.grad(self.mlp.activation(before).sum(), before)
        with torch.no_grad():
            return (self.mlp.reduce.weight * slope.mean(1)[:, None]) @ self.mlp.expand.weight
