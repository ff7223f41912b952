"""Show, Attend and Tell: Xu et al. 2015, "Neural Image Caption Generation with Visual Attention"."""

from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor

from qkv.errors import ConfigError
from qkv.layers.attention import Attention, KeyValue
from qkv.layers.dropout import Dropout
from qkv.layers.embed import TokenEmbedding, word_table
from qkv.layers.gated import FixedContext, GatedDecoder
from qkv.layers.linear import Linear
from qkv.layers.recurrent import Carried
from qkv.layers.score import Additive, Bilinear, Dot
from qkv.models.checks import check_config
from qkv.models.image_encoder import ENCODERS, SeesImage

__all__ = ["SIZES", "Captioner", "CaptionerConfig", "State"]

SCORES = {
    "additive": lambda dim, width: Additive(dim, width),
    "dot": lambda dim, width: Dot(),
    "bilinear": lambda dim, width: Bilinear(dim, width),
}


@dataclass(frozen=True)
class CaptionerConfig:
    """What a model that tells about an image is made of.

    Attributes:
        words: words it knows (the codec says).
        image: height and width in pixels of what it reads (the codec says).
        encoder: the image model: resnet, vit, swin or efficientnet.
        encoder_size: one of its sizes, or its whole config as JSON.
        positions: none (the paper), or learned: a vector a cell, added to what is seen there.
        attention: how a state is compared with a cell: additive (the paper's MLP), dot or bilinear; or none: the mean
            of all cells at every step (Vinyals et al. 2015, "Show and Tell", but for its one look at the start).
        gated: what is seen is weighed against what was written (section 4.2.1).
        dim: width of a word's vector and of a state.
        dropout: of embeddings and of what words are predicted from, in training.
        tie: one table for embeddings and output: "output", or "none" (the paper).
    """

    words: int = 0
    image: tuple[int, int] = (224, 224)
    encoder: str = "resnet"
    encoder_size: str = "18"
    positions: str = "none"
    attention: str = "additive"
    gated: bool = True
    dim: int = 512
    dropout: float = 0.3
    tie: str = "none"

    def __post_init__(self):
        check_config(
            self, "image", "dim",
            encoder=ENCODERS, positions=("none", "learned"), attention=("none", *SCORES), tie=("output", "none"),
        )  # fmt: skip


SIZES = {  #         dim       dropout
    "nano":  dict(dim=64,  dropout=0.0),
    "tiny":  dict(dim=128, dropout=0.1),
    "small": dict(dim=256, dropout=0.3),
    "base":  dict(dim=512, dropout=0.3),
}  # fmt: skip


@dataclass(frozen=True)
class State:
    """Where a search stands: the cells of each image, and what each of its hypotheses carries."""

    memory: KeyValue
    carried: Carried


class Captioner(SeesImage):
    """An image model sees cells, and an LSTM looks at them, word by word (figure 1)."""

    Config, SIZES = CaptionerConfig, SIZES

    def __init__(self, config: CaptionerConfig):
        super().__init__(config)
        c, width = config, self.encoder.width
        if c.attention == "dot" and width != c.dim:
            raise ConfigError(
                f"size.attention is 'dot', a state has {c.dim} numbers and a cell of the encoder has {width}",
                remedy=f"choose --size.dim {width}, or --size.attention bilinear",
            )
        attention: Attention | FixedContext = FixedContext()
        if c.attention != "none":
            score = SCORES[c.attention](c.dim, width)
            attention = Attention(c.dim, memory_width=width, score=score, project=False, between=("target", "cells"))
        self.target = TokenEmbedding(word_table(c.words, c.dim), None, c.dropout)
        self.decoder = GatedDecoder(c.dim, width, attention, c.gated)
        self.dropout = Dropout(c.dropout)
        self.output = Linear(c.dim, c.words)
        if c.tie == "output":
            self.output.weight = self.target.words.weight

    def tell(
        self, cells: Float[Tensor, "batch cell seen"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target dim"]:
        """What each next word is predicted from, having read the words up to it; no state runs backwards."""
        state = self.start(cells)
        return self.dropout(self.decoder(self.target(target), state.memory, state.carried))

    def start(self, cells: Float[Tensor, "batch cell seen"]) -> State:
        """One empty hypothesis for each image, which begins at the mean of its cells."""
        cells = self.placed(cells)
        return State(self.decoder.attention.remember(cells), self.decoder.begin(cells))

    def step(self, state: State, tokens: Int[Tensor, "image beam"]) -> tuple[Float[Tensor, "image beam word"], State]:
        """Logits of the word after ``tokens``, the newest of each hypothesis."""
        carried = self.decoder.step(self.target(tokens), state.memory, state.carried)
        return self.output(self.dropout(carried.said)), replace(state, carried=carried)

    def select(
        self, state: State, parents: Int[Tensor, "image beam"], images: Int[Tensor, "kept"] | None = None
    ) -> State:
        """Each new hypothesis goes on from its parent; then, if given, only ``images`` stay."""
        state = replace(state, carried=state.carried.select(parents))
        if images is None:
            return state
        return State(state.memory.select(images), state.carried.keep(images))
