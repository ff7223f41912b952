"""Sequence to sequence with recurrent networks, and the attentions that cured it.

Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks"; Bahdanau et al. 2015, "Neural Machine
Translation by Jointly Learning to Align and Translate"; Luong et al. 2015, "Effective Approaches to Attention-based
Neural Machine Translation".
"""

from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.errors import ConfigError
from qkv.layers.attention import Attention, KeyValue
from qkv.layers.dropout import Dropout
from qkv.layers.embed import TokenEmbedding, word_table
from qkv.layers.linear import Linear
from qkv.layers.mask import Mask, padding
from qkv.layers.recurrent import CELLS, Carried, RecurrentDecoder, RecurrentEncoder
from qkv.layers.score import Additive, Bilinear, Dot
from qkv.models.checks import check_config, check_tie

__all__ = ["SIZES", "Seq2Seq", "Seq2SeqConfig", "State"]

SCORES = {
    "dot": lambda dim: Dot(),
    "bilinear": lambda dim: Bilinear(dim),
    "additive": lambda dim: Additive(dim),
}


@dataclass(frozen=True)
class Seq2SeqConfig:
    """What a recurrent encoder and decoder are made of.

    Attributes:
        source_words: words the encoder knows (the codec says).
        target_words: words the decoder knows (the codec says).
        dim: width of a token's vector and of a state.
        depth: layers of the encoder, and of the decoder.
        cell: lstm, gru or rnn.
        attention: how a decoder's state is compared with the encoder's: dot, bilinear, additive (the MLP); or none:
            a fixed vector carries the whole sentence.
        order: luong (step, then look) or bahdanau (look, then step).
        feed: state: what a word was predicted from enters the next step; none: all steps can be taken at once.
        both_ways: half of the encoder's state reads from the right.
        reverse: the encoder reads from the last word to the first; one that reads both ways does so in any case.
        dropout: of embeddings, between layers and of what words are predicted from, in training.
        tie: one table for embeddings and output: "all" (needs a joint vocabulary), "output" (target side) or "none".
        output_bias: a bias for each word of the output layer.
    """

    source_words: int = 0
    target_words: int = 0
    dim: int = 512
    depth: int = 2
    cell: str = "lstm"
    attention: str = "bilinear"
    order: str = "luong"
    feed: str = "none"
    both_ways: bool = True
    reverse: bool = False
    dropout: float = 0.2
    tie: str = "all"
    output_bias: bool = False

    def __post_init__(self):
        check_config(
            self, "dim", "depth", cell=CELLS, attention=("none", *SCORES), order=("luong", "bahdanau"),
            feed=("none", "state"), tie=("all", "output", "none"),
        )  # fmt: skip
        check_tie(self)
        if self.attention == "none" and (self.order, self.feed) != ("luong", "none"):
            given = f"size.order {self.order}" if self.order != "luong" else f"size.feed {self.feed}"
            raise ConfigError(
                f"{given} says what to do with what attention saw, and size.attention is none",
                remedy="choose an attention (--size.attention dot, bilinear or additive), or leave them out",
            )


SIZES = {  #         dim       depth     dropout
    "nano":  dict(dim=64,   depth=1, dropout=0.0),
    "tiny":  dict(dim=128,  depth=1, dropout=0.1),
    "small": dict(dim=256,  depth=1, dropout=0.2),
    "base":  dict(dim=512,  depth=2, dropout=0.2),
    "big":   dict(dim=1024, depth=4, dropout=0.2),
}  # fmt: skip


@dataclass(frozen=True)
class State:
    """Where a search stands: what each sentence's encoder left, and what each of its hypotheses carries."""

    memory: KeyValue | None
    memory_mask: Mask
    carried: Carried


class Seq2Seq(nn.Module):
    """A recurrent encoder and decoder. Without attention nothing passes between them but the encoder's last state."""

    Config, SIZES = Seq2SeqConfig, SIZES

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = c = config
        attention = None
        if c.attention != "none":
            attention = Attention(c.dim, score=SCORES[c.attention](c.dim), project=False, between=("target", "source"))
        self.source = TokenEmbedding(word_table(c.source_words, c.dim), None, c.dropout)
        target_words = self.source.words if c.tie == "all" else word_table(c.target_words, c.dim)
        self.target = TokenEmbedding(target_words, None, c.dropout)
        self.encoder = RecurrentEncoder(c.dim, c.depth, c.cell, c.both_ways, c.reverse, c.dropout)
        self.decoder = RecurrentDecoder(c.dim, c.depth, c.cell, attention, c.order, c.feed, c.dropout)
        self.dropout = Dropout(c.dropout)
        self.output = Linear(c.dim, c.target_words, bias=c.output_bias)
        if c.tie != "none":
            self.output.weight = self.target.words.weight

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        source_lengths: Int[Tensor, "batch"],
        target: Int[Tensor, "batch target"],
        target_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch target dim"]:
        """What each next word is predicted from, having read the targets up to it; `output` makes logits of it.

        Padded on the right, padded targets come after every real one, and no state runs backwards.
        """
        state = self.start(source, source_lengths)
        return self.dropout(self.decoder(self.target(target), state.memory, state.memory_mask, state.carried))

    def start(self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, "batch"]) -> State:
        """Read the source once; one empty hypothesis for each sentence, which begins where the encoder ended."""
        states, ended = self.encoder(self.source(source), lengths)
        memory = None if self.decoder.attention is None else self.decoder.attention.remember(states)
        return State(memory, padding(lengths, source.shape[1]), Carried.begin(ended))

    def step(
        self, state: State, tokens: Int[Tensor, "sentence beam"]
    ) -> tuple[Float[Tensor, "sentence beam word"], State]:
        """Logits of the word after ``tokens``, the newest of each hypothesis."""
        carried = self.decoder.step(self.target(tokens), state.memory, state.memory_mask, state.carried)
        return self.output(carried.said), replace(state, carried=carried)

    def select(
        self, state: State, parents: Int[Tensor, "sentence beam"], sentences: Int[Tensor, "kept"] | None = None
    ) -> State:
        """Each new hypothesis goes on from its parent; then, if given, only ``sentences`` stay."""
        state = replace(state, carried=state.carried.select(parents))
        if sentences is None:
            return state
        memory = state.memory and state.memory.select(sentences)
        mask = Mask(state.memory_mask.keep.index_select(0, sentences))
        return State(memory, mask, state.carried.keep(sentences))
