"""Scores: how well a query and a key agree, before the softmax.

A score says whether it *folds*, that is, whether it is a dot product of a transformed query and key; then attention
runs in one fused kernel and the matrix of scores never exists. Only the MLP score does not.

==============  ==========================  ======  =============================================
score           of a query q and a key k    folds   paper
==============  ==========================  ======  =============================================
`ScaledDot`     q·k / sqrt(depth)           yes     Vaswani et al. 2017, eq. 1
`Dot`           q·k                         yes     Luong et al. 2015, eq. 8 (dot)
`Bilinear`      q W k                       yes     Luong et al. 2015, eq. 8 (general)
`Cosine`        cos(q, k) / temperature     yes     Graves et al. 2014, eq. 6; Liu et al. 2022, eq. 2
`Additive`      v·tanh(W q + U k)           no      Bahdanau et al. 2015, appendix A.1.2
==============  ==========================  ======  =============================================
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["SCORES", "Additive", "Bilinear", "Cosine", "Dot", "ScaledDot", "Score"]


class Score(nn.Module):
    """How a query and a key agree. A subclass gives `fold`, or `scores` where it cannot fold.

    Both are given keys as `remember` leaves them.
    """

    def remember(self, key: Float[Tensor, "*batch key key_depth"]) -> Float[Tensor, "*batch key depth"]:
        """A key, with what can be computed of it once, however many queries come."""
        return key

    def fold(
        self, query: Float[Tensor, "*batch query query_depth"], key: Float[Tensor, "*batch key key_depth"]
    ) -> tuple[Tensor, Tensor, float] | None:
        """``(query', key', scale)`` with score = scale * query'·key'; None if this score is no dot product."""
        return None

    def scores(
        self, query: Float[Tensor, "*batch query query_depth"], key: Float[Tensor, "*batch key key_depth"]
    ) -> Float[Tensor, "*batch query key"]:
        """The matrix of scores itself, for a folded score too: what a trace and a law's test compare with.

        In float32 whatever comes in, as the fused kernels sum: in half precision a product may be too large to store.
        """
        query, key, scale = self.fold(query, key)
        return (query.float() * scale) @ key.float().transpose(-1, -2)


class ScaledDot(Score):
    """q·k / sqrt(depth): keeps the variance of a score at one, and so the softmax out of its flat ends (eq. 1)."""

    def fold(self, query, key):
        return query, key, 1 / math.sqrt(query.shape[-1])


class Dot(Score):
    """q·k."""

    def fold(self, query, key):
        return query, key, 1.0


class Bilinear(Score):
    """q W k, which is the dot product of (q W) and k; it also joins widths that differ."""

    def __init__(self, query_depth: int, key_depth: int | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(query_depth, key_depth or query_depth))
        nn.init.xavier_uniform_(self.weight)

    def fold(self, query, key):
        return query @ self.weight, key, 1.0


class Cosine(Score):
    """cos(q, k) / temperature; the temperature is learned, since a cosine alone cannot make a sharp softmax."""

    def __init__(self, temperature: float = 0.1):
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(math.log(1 / temperature)))

    def fold(self, query, key):
        return functional.normalize(query, dim=-1) * self.sharpness.exp(), functional.normalize(key, dim=-1), 1.0


class Additive(Score):
    """v·tanh(W q + U k): a small MLP over each pair; it needs the pairs one by one and cannot fold."""

    def __init__(self, query_depth: int, key_depth: int | None = None, hidden: int | None = None):
        super().__init__()
        hidden = hidden or query_depth
        self.query = nn.Linear(query_depth, hidden, bias=False)
        self.key = nn.Linear(key_depth or query_depth, hidden)
        self.value = nn.Linear(hidden, 1, bias=False)

    def remember(self, key):
        return self.key(key)

    def scores(self, query, key):
        pairs = self.query(query).unsqueeze(-2) + key.unsqueeze(-3)
        return self.value(pairs.tanh()).squeeze(-1)


SCORES = {"scaled": ScaledDot, "dot": Dot, "cosine": Cosine}  # those that need no sizes; a config names one of them
