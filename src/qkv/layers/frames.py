"""Frames of a clip as the vectors that a model works on."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.layers.dropout import Dropout
from qkv.layers.embed import ExtraTokens
from qkv.layers.linear import Linear
from qkv.layers.position import Learned

__all__ = ["FrameEmbedding", "Pixels"]


class Pixels(nn.Module):
    """A whole image as one patch: flattened and projected (Dosovitskiy et al. 2021, eq. 1, with N = 1)."""

    def __init__(self, height: int, width: int, dim: int):
        super().__init__()
        self.projection = Linear(3 * height * width, dim)
        nn.init.trunc_normal_(self.projection.weight, std=(3 * height * width) ** -0.5)
        nn.init.zeros_(self.projection.bias)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch dim"]:
        return self.projection(image.flatten(1))


class FrameEmbedding(nn.Module):
    """Extra tokens, if any, and the vector of each frame, with positions added (Arnab et al. 2021, eq. 1)."""

    def __init__(self, position: Learned, first: ExtraTokens | None = None, dropout: float = 0.0):
        super().__init__()
        self.position, self.first, self.dropout = position, first, Dropout(dropout)

    def forward(self, vectors: Float[Tensor, "batch frame dim"]) -> Float[Tensor, "batch token dim"]:
        if self.first is not None:
            vectors = torch.cat([self.first(len(vectors)).to(vectors.dtype), vectors], 1)
        return self.dropout(vectors + self.position(0, vectors.shape[1]))
