"""The encoder-decoder Transformer: Vaswani et al. 2017, "Attention Is All You Need", figure 1."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from qkv.layers.attention import Attention, KeyValue
from qkv.layers.block import ACTIVATIONS, DecoderBlock, EncoderBlock, FeedForward, Past, Residual
from qkv.layers.embed import TokenEmbedding, word_table
from qkv.layers.linear import Linear
from qkv.layers.mask import EVERYTHING, Mask, padding, real_places
from qkv.layers.norm import NORMS
from qkv.layers.position import Learned, Sinusoidal
from qkv.layers.score import SCORES
from qkv.models.checks import check_config, check_tie

__all__ = ["SIZES", "State", "Transformer", "TransformerConfig"]


@dataclass(frozen=True)
class TransformerConfig:
    """What a Transformer is made of.

    Attributes:
        source_words: words the encoder knows (the codec says).
        target_words: words the decoder knows (the codec says).
        dim: width of a token's vector.
        encoder_depth: encoder blocks.
        decoder_depth: decoder blocks.
        heads: attention heads of each layer; they share the width.
        hidden: width inside the feed-forward layers.
        dropout: of embeddings and of each layer's output, in training.
        order: Add & Norm with the norm after the sum ("post", the paper) or before the layer ("pre").
        norm: "layer", or "batch" (over real tokens; in training it sees neighbours).
        activation: of the feed-forward layers: relu (the paper), gelu or swish.
        score: scaled (the paper), dot or cosine.
        positions: sinusoidal (the paper), learned, sinusoidal-halves (Marian's layout) or none.
        join: positions are added (the paper) or concatenated.
        tie: one table for embeddings and output: "all" (needs a joint vocabulary), "output" (target side) or "none".
        longest: longest text in tokens, for learned positions only.
        output_bias: a bias for each word of the output layer.
    """

    source_words: int = 0
    target_words: int = 0
    dim: int = 512
    encoder_depth: int = 6
    decoder_depth: int = 6
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    order: str = "post"
    norm: str = "layer"
    activation: str = "relu"
    score: str = "scaled"
    positions: str = "sinusoidal"
    join: str = "added"
    tie: str = "all"
    longest: int = 1024
    output_bias: bool = False

    def __post_init__(self):
        check_config(
            self, "dim", "encoder_depth", "decoder_depth", "heads", "hidden", "longest",
            order=("post", "pre"), norm=NORMS, activation=ACTIVATIONS, score=SCORES,
            positions=("sinusoidal", "learned", "sinusoidal-halves", "none"), join=("added", "concatenated"),
            tie=("all", "output", "none"),
        )  # fmt: skip
        if self.positions != "learned" and self.longest != type(self).longest:
            raise ConfigError(
                f"size.longest is {self.longest}, and {self.positions} positions have no longest text",
                remedy="leave it out, or set --size.positions learned",
            )
        check_tie(self)


SIZES = {  #         dim       encoder_depth    decoder_depth    heads    hidden       dropout
    "nano":  dict(dim=64,   encoder_depth=1, decoder_depth=1, heads=2,  hidden=128,  dropout=0.0),
    "tiny":  dict(dim=128,  encoder_depth=2, decoder_depth=2, heads=4,  hidden=256,  dropout=0.1),
    "small": dict(dim=256,  encoder_depth=3, decoder_depth=3, heads=4,  hidden=1024, dropout=0.2),
    "base":  dict(dim=512,  encoder_depth=6, decoder_depth=6, heads=8,  hidden=2048, dropout=0.1),
    "big":   dict(dim=1024, encoder_depth=6, decoder_depth=6, heads=16, hidden=4096, dropout=0.3),
}  # fmt: skip


ENOUGH = 256  # tokens of a group that are worth a pass of their own


@dataclass(frozen=True)
class State:
    """Where a search stands: everything that the next step needs, for every sentence and its hypotheses.

    The hypotheses of a sentence share one past: each step appends one token a hypothesis, nothing is ever moved, and
    ``own`` remembers which of those tokens lie on whose way. A beam that changes parents changes a few booleans.
    """

    memory: tuple[KeyValue, ...]  # of each decoder block: the encoder's keys and values, computed once
    memory_mask: Mask
    past: tuple[KeyValue | None, ...]
    own: Bool[Tensor, "sentence beam slot"]
    position: int


class Transformer(nn.Module):
    """Encoder and decoder of attention and feed-forward blocks (figure 1)."""

    Config, SIZES = TransformerConfig, SIZES

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = c = config

        def attention(query_stream: str, key_stream: str) -> Attention:
            return Attention(c.dim, c.heads, score=SCORES[c.score](), between=(query_stream, key_stream))

        def feed_forward() -> FeedForward:
            return FeedForward(c.dim, c.hidden, c.activation)

        def residual() -> Residual:
            return Residual(c.dim, c.order, c.norm, c.dropout)

        self.source = TokenEmbedding(word_table(c.source_words, c.dim), self._position(), c.dropout, c.join)
        target_words = self.source.words if c.tie == "all" else word_table(c.target_words, c.dim)
        self.target = TokenEmbedding(target_words, self._position(), c.dropout, c.join)
        self.encoder = nn.ModuleList(
            EncoderBlock(attention("source", "source"), feed_forward(), residual) for _ in range(c.encoder_depth)
        )
        self.decoder = nn.ModuleList(
            DecoderBlock(attention("target", "target"), attention("target", "source"), feed_forward(), residual)
            for _ in range(c.decoder_depth)
        )
        # With the norm before each layer, nothing has normed the last block's sum yet.
        self.encoder_norm = NORMS[c.norm](c.dim) if c.order == "pre" else None
        self.decoder_norm = NORMS[c.norm](c.dim) if c.order == "pre" else None
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
        """The decoder's state at each target position, having read the targets up to it; `output` makes logits of it.

        Padded on the right, padded targets come after every real one: the causal mask is all that they need.
        """
        memory, mask = self.encode(source, source_lengths)
        real = None if target_lengths is None else real_places(target_lengths, target.shape[1])
        states = self.target(target)
        for block in self.decoder:
            states = block(states, memory, mask, real=real)
        return states if self.decoder_norm is None else self.decoder_norm(states, real)

    def encode(
        self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch source dim"], Mask]:
        """The encoder's states, and the mask that hides its padding."""
        mask, real = padding(lengths, source.shape[1]), real_places(lengths, source.shape[1])
        states = self.source(source)
        for block in self.encoder:
            states = block(states, mask, real)
        return (states if self.encoder_norm is None else self.encoder_norm(states, real)), mask

    def start(self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, "batch"]) -> State:
        """Read the source once; one empty hypothesis for each sentence."""
        parts: list[list[KeyValue]] = [[] for _ in self.decoder]
        groups = _alike(lengths)
        for rows in groups:  # padding costs as much as words: sentences of about one length are read together
            memory, _ = self.encode(source[rows, : int(lengths[rows].max())], lengths[rows])
            for block, kept in zip(self.decoder, parts, strict=True):
                kept.append(block.cross.remember(memory))
        memories = tuple(KeyValue.together(kept, groups, source.shape[1]) for kept in parts)
        own = torch.empty(len(source), 1, 0, dtype=torch.bool, device=source.device)
        return State(memories, padding(lengths, source.shape[1]), (None,) * len(self.decoder), own, 0)

    def step(
        self, state: State, tokens: Int[Tensor, "sentence beam"]
    ) -> tuple[Float[Tensor, "sentence beam word"], State]:
        """Logits of the word after ``tokens``, the newest of each hypothesis."""
        sentences, beams = tokens.shape
        itself = torch.eye(beams, dtype=torch.bool, device=tokens.device).expand(sentences, beams, beams)
        own = torch.cat([state.own, itself], -1)
        mask = EVERYTHING if beams == 1 else Mask(own[:, None])
        past = [Past(tokens) for tokens in state.past]
        states = self.target(tokens, first=state.position, abreast=True)
        for block, memory, tokens_so_far in zip(self.decoder, state.memory, past, strict=True):
            states = block(states, memory, state.memory_mask, mask=mask, past=tokens_so_far)
        if self.decoder_norm is not None:
            states = self.decoder_norm(states)
        grown = replace(state, past=tuple(p.tokens for p in past), own=own, position=state.position + 1)
        return self.output(states), grown

    def select(
        self, state: State, parents: Int[Tensor, "sentence beam"], sentences: Int[Tensor, "kept"] | None = None
    ) -> State:
        """Each new hypothesis goes on from its parent; then, if given, only ``sentences`` stay. Uses ``state`` up."""
        own = state.own.gather(1, parents[:, :, None].expand(-1, -1, state.own.shape[2]))
        if sentences is None:
            return replace(state, own=own)
        return State(
            tuple(memory.shrink(sentences) for memory in state.memory),
            Mask(state.memory_mask.keep.index_select(0, sentences)),
            tuple(past and past.shrink(sentences) for past in state.past),
            own.index_select(0, sentences),
            state.position,
        )

    def _position(self) -> nn.Module | None:
        c = self.config
        match c.positions:
            case "learned":
                return Learned(c.dim, c.longest)
            case "sinusoidal":
                return Sinusoidal(c.dim)
            case "sinusoidal-halves":
                return Sinusoidal(c.dim, "halves")
        return None


def _alike(lengths: Int[Tensor, "batch"]) -> list[Int[Tensor, "_"]]:
    """Groups of the batch of which none is much longer than another; one group on a GPU, where many small ones cost."""
    ordered = lengths.sort(descending=True, stable=True)
    groups, begin, sizes = [], 0, ordered.values.tolist()
    for i, size in enumerate(sizes):
        if lengths.device.type == "cpu" and size < 0.8 * sizes[begin] and (i - begin) * sizes[begin] >= ENOUGH:
            groups.append(ordered.indices[begin:i])
            begin = i
    return [*groups, ordered.indices[begin:]]
