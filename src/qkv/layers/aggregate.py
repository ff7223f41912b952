"""Aggregation: what a model makes of all its tokens, and the head that reads classes or numbers from it."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.layers.attention import Attention
from qkv.layers.block import ACTIVATIONS
from qkv.layers.linear import Linear
from qkv.layers.mask import EVERYTHING, Mask
from qkv.layers.norm import LayerNorm

__all__ = [
    "AttentionPool",
    "EachToken",
    "FirstToken",
    "Head",
    "LastToken",
    "MaxToken",
    "MeanToken",
    "Pooler",
    "WordHead",
]


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


class MaxToken(nn.Module):
    """The largest number of each channel over the real tokens; zeros where none is real."""

    def forward(
        self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch dim"]:
        if real is None:
            return states.amax(1)
        return states.masked_fill(~real[:, :, None], float("-inf")).amax(1).masked_fill(~real.any(1)[:, None], 0)


class LastToken(nn.Module):
    """Where a recurrent network ended: the state of the last real token; zeros where none is real.

    Args:
        both_ways: the second half of each state was read from the right, and ended at the first token.
    """

    def __init__(self, both_ways: bool):
        super().__init__()
        self.both_ways = both_ways

    def forward(
        self, states: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch dim"]:
        lengths = real.sum(1)
        ended = states[torch.arange(len(states), device=states.device), (lengths - 1).clamp_min(0)]
        if self.both_ways:
            half = states.shape[-1] // 2
            ended = torch.cat([ended[:, :half], states[:, 0, half:]], 1)
        return ended * (lengths > 0)[:, None]


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


class WordHead(nn.Module):
    """Which word stands at a place: a layer with a norm, and an output for each word (Devlin et al. 2019, task 1).

    ``output.weight`` is meant to be tied to the table of token vectors. A loss uses `transform` and `output` apart.
    """

    def __init__(self, dim: int, words: int, activation: str = "gelu", eps: float = 1e-12):
        super().__init__()
        self.hidden, self.activation, self.norm = Linear(dim, dim), ACTIVATIONS[activation](), LayerNorm(dim, eps)
        self.output = Linear(dim, words)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)
        nn.init.zeros_(self.output.bias)

    def transform(self, states: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """What the output layer reads."""
        return self.norm(self.activation(self.hidden(states)))

    def forward(self, states: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch word"]:
        return self.output(self.transform(states))


class Pooler(nn.Module):
    """A layer that readies the one vector of a text for a head (Devlin et al. 2019; DistilBERT's has a relu)."""

    def __init__(self, dim: int, activation: str = "tanh"):
        super().__init__()
        self.layer = Linear(dim, dim)
        self.activation = {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]()
        nn.init.xavier_uniform_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, vector: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim"]:
        return self.activation(self.layer(vector))
