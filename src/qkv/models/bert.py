"""BERT: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding".

Smaller sizes are those of Turc et al. 2019. DistilBERT (Sanh et al. 2019) is one without segments, whose pooler has a
relu; sentence encoders such as MiniLM (Wang et al. 2020) are ones without a head that take the mean of all tokens.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.errors import ConfigError
from qkv.layers.aggregate import FirstToken, Head, MaxToken, MeanToken, Pooler, WordHead
from qkv.layers.attention import Attention
from qkv.layers.block import ACTIVATIONS, EncoderBlock, FeedForward, Residual
from qkv.layers.dropout import Dropout
from qkv.layers.embed import SegmentEmbedding
from qkv.layers.mask import padding, real_places
from qkv.models.checks import check_config

__all__ = ["POOLS", "SIZES", "Bert", "BertConfig"]

POOLS = {"cls": FirstToken, "mean": MeanToken, "max": MaxToken}


@dataclass(frozen=True)
class BertConfig:
    """What a BERT is made of.

    Attributes:
        words: words it knows (the codec says).
        segments: kinds of segment, two for pairs of texts; 0: it is told of none (DistilBERT).
        longest: positions that are learned: the longest text in tokens, marks counted.
        dim: width of a token's vector.
        depth: blocks.
        heads: attention heads of each block; they share the width.
        hidden: width inside the feed-forward layers.
        dropout: of embeddings, of each layer's output and before a classifier, in training.
        attention_dropout: of the attention weights, in training (the paper's 0.1 rules out the fast kernels of a CPU).
        activation: of the feed-forward layers and the word head: gelu (the paper), relu or swish.
        head: pretrain (words, and the next sentence), class (one answer a text), tag (one a token) or none.
        outputs: classes, tags or numbers of the head (the codec says).
        next: whether a pretraining head also tells if the second text follows the first.
        pool: what a text's one vector is: cls (its first token, the paper), mean or max (of all its tokens).
        pooler: a layer between that vector and the head.
        pooler_activation: of the pooler: tanh (the paper) or relu (DistilBERT).
        eps: of the norms.
    """

    words: int = 0
    segments: int = 2
    longest: int = 512
    dim: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation: str = "gelu"
    head: str = "pretrain"
    outputs: int = 0
    next: bool = True
    pool: str = "cls"
    pooler: bool = True
    pooler_activation: str = "tanh"
    eps: float = 1e-12

    def __post_init__(self):
        check_config(
            self, "dim", "depth", "heads", "hidden", "longest",
            activation=ACTIVATIONS, head=("pretrain", "class", "tag", "none"), pool=POOLS,
            pooler_activation=("tanh", "relu"),
        )  # fmt: skip
        if self.head == "pretrain" and self.next and not self.pooler:
            raise ConfigError("size.next reads the pooler, and size.pooler is false", remedy="set one of them")


SIZES = {  #          dim       depth     heads     hidden
    "tiny":   dict(dim=128, depth=2,  heads=2,  hidden=512),
    "mini":   dict(dim=256, depth=4,  heads=4,  hidden=1024),
    "small":  dict(dim=512, depth=4,  heads=8,  hidden=2048),
    "medium": dict(dim=512, depth=8,  heads=8,  hidden=2048),
    "base":   dict(dim=768, depth=12, heads=12, hidden=3072),
}  # fmt: skip


class Bert(nn.Module):
    """An encoder that reads a text from both sides, and a head for what is asked of it (figure 1)."""

    Config, SIZES = BertConfig, SIZES

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = c = config
        self.tokens = SegmentEmbedding(c.words, c.dim, c.longest, c.segments, c.dropout, c.eps)
        self.blocks = nn.ModuleList(
            EncoderBlock(
                Attention(c.dim, c.heads, dropout=c.attention_dropout),
                FeedForward(c.dim, c.hidden, c.activation),
                lambda: Residual(c.dim, "post", dropout=c.dropout, eps=c.eps),
            )
            for _ in range(c.depth)
        )
        self.pools = nn.ModuleDict({name: pool() for name, pool in POOLS.items()})
        self.dropout = Dropout(c.dropout)
        self.pooler = Pooler(c.dim, c.pooler_activation) if c.pooler else None
        match c.head:
            case "pretrain":
                self.head = nn.ModuleDict({"words": WordHead(c.dim, c.words, c.activation, c.eps)})
                self.head["words"].output.weight = self.tokens.words.weight
                if c.next:
                    self.head["next"] = Head(c.dim, 2)
            case "class" | "tag":
                self.head = Head(c.dim, c.outputs)
            case "none":
                self.head = None

    def layers(self) -> list[nn.Module]:
        """What runs one after the other, first to last."""
        return list(self.blocks)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        lengths: Int[Tensor, "batch"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """The state of each token; those past a text's length say nothing."""
        mask, states = padding(lengths, tokens.shape[1]), self.tokens(tokens, segments)
        for block in self.blocks:
            states = block(states, mask)
        return states

    def pool(
        self, states: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"], how: str = ""
    ) -> Float[Tensor, "batch dim"]:
        """One vector a text, of its real tokens alone: as the config says, or "cls", "mean" or "max"."""
        return self.pools[how or self.config.pool](states, real_places(lengths, states.shape[1]))

    def classify(
        self, states: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch *token output"]:
        """Logits of each text, or with a head for tags of each token."""
        return self.head(self.dropout(states if self.config.head == "tag" else self._pooled(states, lengths)))

    def words(self, states: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch word"]:
        """Logits of which word stands there, of a pretraining head."""
        return self.head["words"](states)

    def follows(
        self, states: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch two"]:
        """Logits of 0: the second text follows the first; and of 1: it is a random one (as in the paper's release)."""
        return self.head["next"](self._pooled(states, lengths))

    def _pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        vector = self.pool(states, lengths)
        return vector if self.pooler is None else self.pooler(vector)
