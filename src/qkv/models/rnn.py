"""A recurrent encoder of texts: a sequence to one vector, or to one answer a token.

Elman 1990, "Finding Structure in Time"; Hochreiter and Schmidhuber 1997, "Long Short-Term Memory"; Cho et al. 2014 (the
GRU); Schuster and Paliwal 1997 (both ways). With attention pooling it is the word level of Yang et al. 2016,
"Hierarchical Attention Networks for Document Classification" (eqs. 5 to 7); one answer a token is the tagger of Huang
et al. 2015, "Bidirectional LSTM-CRF Models for Sequence Tagging", without its CRF.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.layers.aggregate import AttentionPool, Head, LastToken, MaxToken, MeanToken
from qkv.layers.attention import Attention
from qkv.layers.dropout import Dropout
from qkv.layers.embed import TokenEmbedding, word_table
from qkv.layers.mask import real_places
from qkv.layers.recurrent import CELLS, RecurrentEncoder
from qkv.layers.score import Additive
from qkv.models.checks import check_config

__all__ = ["POOLS", "SIZES", "Rnn", "RnnConfig"]

POOLS = ("attention", "last", "mean", "max")


@dataclass(frozen=True)
class RnnConfig:
    """What a recurrent encoder is made of.

    Attributes:
        words: words it knows (the codec says).
        dim: width of a token's vector and of a state.
        depth: layers.
        cell: lstm, gru or rnn.
        both_ways: half of each state reads from the right.
        dropout: of embeddings, between layers and before the head, in training.
        head: class (one answer a text), tag (one a token) or none.
        outputs: classes, tags or numbers of the head (the codec says).
        pool: what a text's one vector is: last (where each direction ended), mean or max (of all states), or attention
            (one learned query looks at all states).
    """

    words: int = 0
    dim: int = 256
    depth: int = 1
    cell: str = "lstm"
    both_ways: bool = True
    dropout: float = 0.3
    head: str = "class"
    outputs: int = 0
    pool: str = "attention"

    def __post_init__(self):
        check_config(self, "dim", "depth", cell=CELLS, head=("class", "tag", "none"), pool=POOLS)


SIZES = {  #         dim       depth     dropout
    "nano":  dict(dim=64,   depth=1, dropout=0.0),
    "tiny":  dict(dim=128,  depth=1, dropout=0.3),
    "small": dict(dim=256,  depth=1, dropout=0.3),
    "base":  dict(dim=512,  depth=2, dropout=0.3),
}  # fmt: skip


class Rnn(nn.Module):
    """Token vectors, a recurrent network over them, one vector of its states, and a head."""

    Config, SIZES = RnnConfig, SIZES

    def __init__(self, config: RnnConfig):
        super().__init__()
        self.config = c = config
        self.tokens = TokenEmbedding(word_table(c.words, c.dim), None, c.dropout)
        self.encoder = RecurrentEncoder(c.dim, c.depth, c.cell, c.both_ways, backward=False, dropout=c.dropout)
        self.pools = None
        if c.head != "tag":
            match c.pool:
                case "attention":
                    look = Attention(c.dim, score=Additive(c.dim), project=False, between=("pool", "tokens"))
                    self.pools = AttentionPool(look, c.dim)
                case "last":
                    self.pools = LastToken(c.both_ways)
                case "mean":
                    self.pools = MeanToken()
                case "max":
                    self.pools = MaxToken()
        self.dropout = Dropout(c.dropout)
        self.head = Head(c.dim, c.outputs) if c.head != "none" else None

    def layers(self) -> list[nn.Module]:
        """What runs one after the other, first to last."""
        return [self.encoder]

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        lengths: Int[Tensor, "batch"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """The state at each token; padding has zeros. Two texts are told apart by the mark between them alone."""
        return self.encoder(self.tokens(tokens), lengths)[0] * real_places(lengths, tokens.shape[1])[..., None]

    def pool(
        self, states: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch dim"]:
        """One vector a text, of its real tokens alone."""
        return self.pools(states, real_places(lengths, states.shape[1]))

    def classify(
        self, states: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch *token output"]:
        """Logits of each text, or with a head for tags of each token."""
        return self.head(self.dropout(states if self.config.head == "tag" else self.pool(states, lengths)))
