"""GloVe (Pennington, Socher and Manning 2014, "GloVe: Global Vectors for Word Representation").

The dot product of a word's vector and a context's vector, with a bias of each, is the logarithm of how often they occur
together. The vectors that are used are the sums of both (section 4.2).

Training runs in `qkv.kernels.glove`, which makes the same AdaGrad update in compiled code.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.errors import ConfigError
from qkv.models.checks import check_config

__all__ = ["GloVe", "GloVeConfig", "weight"]


@dataclass(frozen=True)
class GloVeConfig:
    """What a GloVe model is, and what of its counts it believes."""

    words: int = 1
    """Words that have vectors; only the codec knows."""

    dim: int = 100
    """Width of a vector."""

    window: int = 10
    """Words on either side that are counted, each as 1 / its distance (section 4.2)."""

    symmetric: bool = True
    """Whether words on both sides are contexts, or those before only."""

    x_max: float = 100.0
    """Pairs seen at least so often have weight 1 (eq. 9)."""

    alpha: float = 0.75
    """Rarer ones have (x / x_max) to this power."""

    def __post_init__(self):
        check_config(self, "words", "dim", "window")
        for key in ("x_max", "alpha"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"size.{key} is {getattr(self, key)}", expected="a number above 0")


SIZES = {"tiny": dict(dim=50), "small": dict(dim=100), "base": dict(dim=300)}


class GloVe(nn.Module):
    """Two tables of vectors and two of biases (eq. 7)."""

    Config, SIZES = GloVeConfig, SIZES

    def __init__(self, config: GloVeConfig):
        super().__init__()
        self.input, self.output = nn.Embedding(config.words, config.dim), nn.Embedding(config.words, config.dim)
        self.input_bias, self.output_bias = nn.Embedding(config.words, 1), nn.Embedding(config.words, 1)
        for table in (self.input, self.output, self.input_bias, self.output_bias):
            nn.init.uniform_(table.weight, -0.5 / config.dim, 0.5 / config.dim)

    def forward(
        self,
        words: Int[Tensor, "batch place"],
        lengths: Int[Tensor, "batch"],
        rows: Int[Tensor, "batch row"] | None = None,
    ) -> Float[Tensor, "batch place row"]:
        """w . c + b + b', the logarithm of each word's expected count with each context (all if none are given)."""
        own = self.input_bias(words)
        if rows is None:
            return self.input(words) @ self.output.weight.T + own + self.output_bias.weight[:, 0]
        return self.input(words) @ self.output(rows).mT + own + self.output_bias(rows).mT


def weight(counts: Float[Tensor, "*any"], x_max: float = 100.0, alpha: float = 0.75) -> Float[Tensor, "*any"]:
    """f(x) of eq. 9: 1 from x_max on, (x / x_max) ** alpha below."""
    return torch.clamp(counts / x_max, max=1.0) ** alpha


def squared_loss(
    estimates: Float[Tensor, "*any"], counts: Float[Tensor, "*any"], x_max: float, alpha: float
) -> Float[Tensor, ""]:
    """Eq. 8, summed over pairs, halved as the published program does (its gradient has no 2)."""
    return (weight(counts, x_max, alpha) * (estimates - counts.log()) ** 2).sum() / 2
