"""A Transformer's decoder that tells about an image: Vaswani et al. 2017 over the grid of Xu et al. 2015.

As Cornia et al. 2020, "Meshed-Memory Transformer", section 2, describe the usual form of it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.layers.attention import Attention
from qkv.layers.block import DecoderBlock, FeedForward, Residual
from qkv.layers.embed import TokenEmbedding, word_table
from qkv.layers.linear import Linear
from qkv.layers.mask import Mask
from qkv.layers.norm import LayerNorm
from qkv.layers.position import Sinusoidal
from qkv.models.checks import check_config
from qkv.models.image_encoder import ENCODERS, SeesImage
from qkv.models.transformer import State, Transformer

__all__ = ["SIZES", "CaptionTransformer", "CaptionTransformerConfig"]


@dataclass(frozen=True)
class CaptionTransformerConfig:
    """What a Transformer that tells about an image is made of.

    Attributes:
        words: words it knows (the codec says).
        image: height and width in pixels of what it reads (the codec says).
        encoder: the image model: resnet, vit, swin or efficientnet.
        encoder_size: one of its sizes, or its whole config as JSON.
        positions: learned: a vector a cell, added to what is seen there; or none.
        dim: width of a word's vector.
        depth: decoder blocks.
        heads: attention heads of each layer; they share the width.
        hidden: width inside the feed-forward layers.
        dropout: of embeddings and of each layer's output, in training.
        order: Add & Norm with the norm before the layer ("pre") or after the sum ("post").
        tie: one table for embeddings and output: "output", or "none".
    """

    words: int = 0
    image: tuple[int, int] = (224, 224)
    encoder: str = "resnet"
    encoder_size: str = "18"
    positions: str = "learned"
    dim: int = 512
    depth: int = 3
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    order: str = "pre"
    tie: str = "output"

    def __post_init__(self):
        check_config(
            self, "image", "dim", "depth", "heads", "hidden",
            encoder=ENCODERS, positions=("none", "learned"), order=("pre", "post"), tie=("output", "none"),
        )  # fmt: skip


SIZES = {  #         dim       depth    heads    hidden       dropout
    "nano":  dict(dim=64,  depth=1, heads=2, hidden=128,  dropout=0.0),
    "tiny":  dict(dim=128, depth=2, heads=4, hidden=256,  dropout=0.1),
    "small": dict(dim=256, depth=2, heads=4, hidden=1024, dropout=0.2),
    "base":  dict(dim=512, depth=3, heads=8, hidden=2048, dropout=0.1),
}  # fmt: skip


class CaptionTransformer(SeesImage):
    """An image model sees cells, and the blocks of a Transformer's decoder look at them."""

    Config, SIZES = CaptionTransformerConfig, SIZES

    def __init__(self, config: CaptionTransformerConfig):
        super().__init__(config)
        c, width = config, self.encoder.width
        self.target = TokenEmbedding(word_table(c.words, c.dim), Sinusoidal(c.dim), c.dropout)
        self.decoder = nn.ModuleList(
            DecoderBlock(
                Attention(c.dim, c.heads, between=("target", "target")),
                Attention(c.dim, c.heads, memory_width=width, between=("target", "cells")),
                FeedForward(c.dim, c.hidden),
                lambda: Residual(c.dim, c.order, dropout=c.dropout),
            )
            for _ in range(c.depth)
        )
        self.decoder_norm = LayerNorm(c.dim) if c.order == "pre" else None
        self.output = Linear(c.dim, c.words)
        if c.tie == "output":
            self.output.weight = self.target.words.weight

    def tell(
        self, cells: Float[Tensor, "batch cell seen"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target dim"]:
        """What each next word is predicted from, having read the words up to it."""
        cells, states = self.placed(cells), self.target(target)
        for block in self.decoder:
            states = block(states, cells)
        return states if self.decoder_norm is None else self.decoder_norm(states)

    def start(self, cells: Float[Tensor, "batch cell seen"]) -> State:
        """One empty hypothesis for each image."""
        cells = self.placed(cells)
        batch, keys = cells.shape[:2]
        memory = tuple(block.cross.remember(cells) for block in self.decoder)
        own = torch.empty(batch, 1, 0, dtype=torch.bool, device=cells.device)
        every = Mask(torch.ones(batch, 1, 1, keys, dtype=torch.bool, device=cells.device))
        return State(memory, every, (None,) * len(self.decoder), own, 0)

    # A search goes on as any Transformer's does.
    step, select = Transformer.step, Transformer.select
