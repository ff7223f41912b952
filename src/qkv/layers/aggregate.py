"""Aggregation: what a model makes of all its tokens, and the head that reads classes or numbers from it."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.layers.attention import Attention
from qkv.layers.linear import Linear
from qkv.layers.mask import EVERYTHING, Mask

__all__ = ["AttentionPool", "EachToken", "FirstToken", "Head", "MeanToken"]


class FirstToken(nn.Module):
    """The first token, which has looked at all others: CLS (Devlin et al. 2019; Dosovitskiy et al. 2021)."""

    def forward(
        self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch dim"]:
        return states[:, 0]


class MeanToken(nn.Module):
    """The mean of the real tokens, without the first ``skip``; zeros where none is real."""

    def __init__(self, skip: int = 0):
        super().__init__()
        self.skip = skip

    def forward(
        self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch dim"]:
        states = states[:, self.skip :]
        if real is None:
            return states.mean(1)
        real = real[:, self.skip :, None]
        return states.masked_fill(~real, 0).sum(1) / real.sum(1).clamp_min(1)


class AttentionPool(nn.Module):
    """One learned query looks at the real tokens (Lee et al. 2019, eq. 11 with one seed and no feed-forward part)."""

    def __init__(self, attention: Attention, dim: int):
        super().__init__()
        self.attention = attention
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.02)

    def forward(
        self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch dim"]:
        mask = EVERYTHING if real is None else Mask(real[:, None, None, :])
        return self.attention(self.query.expand(len(states), -1, -1), states, mask=mask)[:, 0]


class EachToken(nn.Module):
    """Every token for itself, without the first ``skip``: for prediction cell by cell or frame by frame."""

    def __init__(self, skip: int = 0):
        super().__init__()
        self.skip = skip

    def forward(
        self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch kept dim"]:
        return states[:, self.skip :]


class Head(nn.Module):
    """A linear layer to ``outputs`` numbers; with ``hidden``, one tanh layer before it (ViT's "pre-logits")."""

    def __init__(self, dim: int, outputs: int, hidden: int = 0):
        super().__init__()
        self.hidden = Linear(dim, hidden) if hidden else None
        self.output = Linear(hidden or dim, outputs)
        for layer in (self.hidden, self.output):
            if layer is not None and layer.weight.numel():
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, states: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch output"]:
        return self.output(states if self.hidden is None else self.hidden(states).tanh())
