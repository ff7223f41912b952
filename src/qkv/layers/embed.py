"""Embeddings: what turns token ids, or the patches of an image, into the vectors that a model works on."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.errors import DataError
from qkv.layers.dropout import Dropout
from qkv.layers.linear import Linear
from qkv.layers.norm import LayerNorm
from qkv.layers.position import Learned, LearnedGrid

__all__ = [
    "ExtraTokens", "PatchEmbedding", "PatchMerging", "Patches", "SegmentEmbedding", "TokenEmbedding", "word_table",
]  # fmt: skip


def word_table(words: int, dim: int) -> nn.Embedding:
    """A new table of token vectors, of variance one after `TokenEmbedding`'s sqrt(dim)."""
    table = nn.Embedding(words, dim)
    nn.init.normal_(table.weight, std=dim**-0.5)
    return table


class TokenEmbedding(nn.Module):
    """Token vectors times sqrt(dim), with positions added (Vaswani et al. 2017, sections 3.4 and 3.5).

    Args:
        words: the table of token vectors; models that tie their tables pass the same one twice.
        position: rows for positions, or None for a model that sees a set.
        dropout: of the sum.
        join: "added", or "concatenated" and projected back to the width.
    """

    def __init__(self, words: nn.Embedding, position: nn.Module | None, dropout: float = 0.0, join: str = "added"):
        super().__init__()
        dim = words.embedding_dim
        self.words, self.position, self.dropout = words, position, Dropout(dropout)
        self.scale = math.sqrt(dim)
        self.join = nn.Linear(2 * dim, dim) if join == "concatenated" else None

    def forward(
        self, tokens: Int[Tensor, "batch token"], first: int = 0, abreast: bool = False
    ) -> Float[Tensor, "batch token dim"]:
        """Vectors of tokens, the first at position ``first``; ``abreast``: all there (the hypotheses of a search)."""
        vectors = self.words(tokens) * self.scale
        if self.position is not None:
            rows = self.position(first, 1 if abreast else tokens.shape[1])
            if self.join is None:
                vectors = vectors + rows
            else:
                vectors = self.join(torch.cat([vectors, rows.expand_as(vectors)], -1))
        return self.dropout(vectors)


class SegmentEmbedding(nn.Module):
    """The vectors of a token, of its position and of its segment, added and normed (Devlin et al. 2019, figure 2).

    Args:
        words: how many token vectors.
        dim: width of a vector.
        longest: how many positions are learned.
        segments: how many kinds of segment; 0 for a model that knows none.
        dropout: of the normed sum.
        eps: of the norm.
    """

    def __init__(self, words: int, dim: int, longest: int, segments: int, dropout: float = 0.0, eps: float = 1e-12):
        super().__init__()
        self.words, self.position = nn.Embedding(words, dim), Learned(dim, longest)
        self.segments = nn.Embedding(segments, dim) if segments else None
        self.norm, self.dropout = LayerNorm(dim, eps), Dropout(dropout)
        for table in (self.words, self.segments):
            if table is not None:
                nn.init.normal_(table.weight, std=0.02)

    def forward(
        self, tokens: Int[Tensor, "batch token"], segments: Int[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token dim"]:
        """Vectors of tokens; they are of the first segment where none is said."""
        vectors = self.words(tokens) + self.position(0, tokens.shape[1])
        if self.segments is not None:
            vectors = vectors + (self.segments.weight[0] if segments is None else self.segments(segments))
        return self.dropout(self.norm(vectors))


class Patches(nn.Module):
    """An image cut into squares, each flattened and projected: what a convolution does that strides by its own size.

    Args:
        patch: side of a square in pixels.
        dim: width of a patch's vector.
        pad: zeros fill up the last patches of an image that patches do not divide; else it is refused.
    """

    def __init__(self, patch: int, dim: int, pad: bool = False):
        super().__init__()
        self.patch, self.pad = patch, pad
        self.projection = nn.Conv2d(3, dim, patch, patch)
        nn.init.trunc_normal_(self.projection.weight, std=(3 * patch * patch) ** -0.5)
        nn.init.zeros_(self.projection.bias)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the patches of an image.

        Raises:
            DataError: patches do not divide the image, and it is not to be padded.
        """
        rows, columns = -(-height // self.patch), -(-width // self.patch)
        if not self.pad and (rows * self.patch, columns * self.patch) != (height, width):
            near = " x ".join(str(max(self.patch, round(side / self.patch) * self.patch)) for side in (height, width))
            raise DataError(
                f"an image of {height} x {width} pixels cannot be cut into patches of {self.patch} x {self.patch}",
                remedy=f"resize or crop it, to {near} for example",
            )
        return rows, columns

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch row column dim"]:
        height, width = image.shape[-2:]
        rows, columns = self.grid(height, width)
        missing = (0, columns * self.patch - width, 0, rows * self.patch - height)
        if any(missing):
            image = nn.functional.pad(image, missing)
        return self.projection(image).permute(0, 2, 3, 1)


class ExtraTokens(nn.Module):
    """Learned tokens that are no patch: the class token (Dosovitskiy et al. 2021), registers (Darcet et al. 2024)."""

    def __init__(self, count: int, dim: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, count, dim) * 0.02)

    def forward(self, batch: int) -> Float[Tensor, "batch token dim"]:
        return self.table.expand(batch, -1, -1)


class PatchEmbedding(nn.Module):
    """Extra tokens and patches, with positions added (Dosovitskiy et al. 2021, eq. 1).

    Args:
        patches: what makes vectors of an image.
        position: a vector for each of ``first``, then for each patch.
        first: tokens before the patches that have a position (class, distillation), if any.
        registers: tokens after those of ``first`` that have none, if any.
        dropout: of the sum.
    """

    def __init__(
        self,
        patches: Patches,
        position: LearnedGrid,
        first: ExtraTokens | None = None,
        registers: ExtraTokens | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.patch, self.position, self.first, self.registers = patches, position, first, registers
        self.dropout = Dropout(dropout)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch token dim"]:
        cells = self.patch(image)
        positions, batch = self.position(*cells.shape[1:3]), len(image)
        # Sums are made apart and joined once: the tokens of a batch are copied one time, not three.
        parts = [cells.flatten(1, 2) + positions[:, self.position.prefix :]]
        if self.registers is not None:
            parts.insert(0, self.registers(batch))
        if self.first is not None:
            parts.insert(0, self.first(batch) + positions[:, : self.position.prefix])
        return self.dropout(torch.cat(parts, 1))


class PatchMerging(nn.Module):
    """Each 2 x 2 cells become one of twice the width (Liu et al. 2021, section 3.1); an odd side is padded with zeros.

    The four lie one after the other, column by column, are normed, and projected from 4C to 2C without a bias.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = Linear(4 * dim, 2 * dim, bias=False)

    def forward(
        self, states: Float[Tensor, "batch row column dim"]
    ) -> Float[Tensor, "batch half_row half_column two_dim"]:
        rows, columns = states.shape[1:3]
        if rows % 2 or columns % 2:
            states = nn.functional.pad(states, (0, 0, 0, columns % 2, 0, rows % 2))
        four = states.unflatten(2, (-1, 2)).unflatten(1, (-1, 2)).permute(0, 1, 3, 4, 2, 5).flatten(3)
        return self.reduction(self.norm(four))
