"""Embeddings: what turns token ids into the vectors that a model works on."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.layers.dropout import Dropout

__all__ = ["TokenEmbedding"]


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
