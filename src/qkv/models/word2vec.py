"""word2vec (Mikolov et al. 2013a, "Efficient Estimation of Word Representations in Vector Space", and 2013b,
"Distributed Representations of Words and Phrases and their Compositionality").

A word has two vectors: one as a context that predicts, one as the word that is predicted. Skip-gram lets each word of a
window predict the centre by itself, CBOW all of them together. What is predicted are rows of a second table: the words
themselves (softmax over all, or against drawn negatives), or the inner nodes of a tree on the way to the word.

Training runs in `qkv.kernels.word2vec`, the same update in compiled code; this is what it is checked against.
"""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from qkv.errors import ConfigError
from qkv.layers.mask import real_places
from qkv.models.checks import check_config

__all__ = ["CBOW", "CBOWConfig", "SkipGram", "Word2VecConfig"]

SIZES = {
    "tiny":  dict(dim=50),
    "small": dict(dim=100),
    "base":  dict(dim=300),
}  # fmt: skip


WIDEST = 1000  # words on either side


@dataclass(frozen=True)
class Word2VecConfig:
    """What a word2vec model is, and what it predicts."""

    words: int = 1
    """Words that have vectors; only the codec knows."""

    dim: int = 100
    """Width of a vector."""

    output: Literal["negative", "hierarchical", "softmax"] = "negative"
    """Negative sampling (2013b, eq. 4), a Huffman tree (2013b, eq. 3), or all words, for small vocabularies (eq. 2)."""

    negatives: int = 5
    """Words drawn against each centre, shared by its window (Ji et al. 2016)."""

    power: float = 0.75
    """Negatives are drawn by frequency to this power (2013b, section 2.2)."""

    window: int = 5
    """Widest window on either side; each centre's own is drawn from 1 to this (2013a, section 3.2)."""

    sample: float = 1e-3
    """Frequent words are dropped at random above this share of the text (2013b, eq. 5, as published); 0 drops none."""

    def __post_init__(self):
        check_config(self, "words", "dim", "negatives", "window", output=("negative", "hierarchical", "softmax"))
        if self.window > WIDEST:
            raise ConfigError(f"size.window is {self.window}", expected=f"at most {WIDEST}: a window is held in memory")
        if not 0 <= self.sample <= 1:
            raise ConfigError(f"size.sample is {self.sample}", expected="a share of the text, from 0 to 1")
        if not 0 <= self.power <= 4:
            raise ConfigError(f"size.power is {self.power}", expected="from 0 to 4")


@dataclass(frozen=True)
class CBOWConfig(Word2VecConfig):
    """As of skip-gram, and how a window's vectors become one."""

    combine: Literal["mean", "sum", "undivided"] = "mean"
    """The window's vectors are averaged (2013a, section 3.1), or added; or averaged, and each moves by the whole error
    and not by its share, as in the published program and gensim."""

    def __post_init__(self):
        super().__post_init__()
        check_config(self, combine=("mean", "sum", "undivided"))


class SkipGram(nn.Module):
    """Each context word by itself predicts the centre word (2013b, eq. 1)."""

    Config, SIZES = Word2VecConfig, SIZES
    together = ""

    def __init__(self, config: Word2VecConfig):
        super().__init__()
        self.input = nn.Embedding(config.words, config.dim)
        rows = config.words - 1 if config.output == "hierarchical" else config.words
        self.output = nn.Embedding(max(rows, 1), config.dim)
        nn.init.uniform_(self.input.weight, -0.5 / config.dim, 0.5 / config.dim)
        nn.init.zeros_(self.output.weight)

    def forward(
        self,
        contexts: Int[Tensor, "batch place"],
        lengths: Int[Tensor, "batch"],
        rows: Int[Tensor, "batch row"] | None = None,
    ) -> Float[Tensor, "batch head row"]:
        """How much each context (CBOW: all of a window together) speaks for each row: all rows if none are given."""
        heads = self.combined(self.input(contexts), real_places(lengths, contexts.shape[1]))
        if rows is None:
            return heads @ self.output.weight.T
        return heads @ self.output(rows).mT

    def combined(
        self, vectors: Float[Tensor, "batch place dim"], real: Bool[Tensor, "batch place"]
    ) -> Float[Tensor, "batch head dim"]:
        """What predicts, of a window's vectors."""
        return vectors


class CBOW(SkipGram):
    """The mean (or sum) of a window's vectors predicts the centre word (2013a, section 3.1)."""

    Config, SIZES = CBOWConfig, SIZES

    def __init__(self, config: CBOWConfig):
        super().__init__(config)
        self.together = config.combine

    def combined(
        self, vectors: Float[Tensor, "batch place dim"], real: Bool[Tensor, "batch place"]
    ) -> Float[Tensor, "batch one dim"]:
        total = (vectors * real[..., None]).sum(1, keepdim=True)
        if self.together == "sum":
            return total
        mean = total / real.sum(1)[:, None, None].clamp_min(1)
        return mean if self.together == "mean" else total + (mean - total).detach()


def binary_loss(
    logits: Float[Tensor, "batch head row"],
    labels: Float[Tensor, "batch row"],
    heads: Bool[Tensor, "batch head"],
    rows: Bool[Tensor, "batch row"],
) -> Float[Tensor, ""]:
    """-log sigmoid of every row that is true and of every other one's opposite, summed (2013b, eqs. 3 and 4)."""
    every = functional.binary_cross_entropy_with_logits(logits, labels[:, None, :].expand_as(logits), reduction="none")
    return every[(heads[:, :, None] & rows[:, None, :]).expand_as(every)].sum()


def softmax_loss(
    logits: Float[Tensor, "batch head word"], centres: Int[Tensor, "batch"], heads: Bool[Tensor, "batch head"]
) -> Float[Tensor, ""]:
    """-log of the probability of each window's centre under the softmax over all words (2013b, eq. 2), summed."""
    chances = logits.log_softmax(-1)
    return -chances.gather(-1, centres[:, None, None].expand(-1, logits.shape[1], 1))[..., 0][heads].sum()
