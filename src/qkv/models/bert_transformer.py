"""A BERT that reads and a Transformer's decoder that writes: BERT2RND of Rothe et al. 2020.

"Leveraging Pre-trained Checkpoints for Sequence Generation Tasks", section 3: the encoder is a BERT, which has learned
from text alone; the decoder and its looks at the encoder are new. (Theirs is as large as the BERT, ours any size.)
"""

import json
from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.layers.block import DecoderBlock, FeedForward, Residual
from qkv.layers.embed import TokenEmbedding, word_table
from qkv.layers.linear import Linear
from qkv.layers.mask import Mask, padding
from qkv.layers.norm import LayerNorm
from qkv.layers.position import Sinusoidal
from qkv.models.bert import Bert, BertConfig
from qkv.models.checks import check_config
from qkv.models.transformer import Transformer

__all__ = ["SIZES", "BertTransformer", "BertTransformerConfig"]


@dataclass(frozen=True)
class BertTransformerConfig:
    """What a translator is made of that reads with a BERT.

    Attributes:
        target_words: words the decoder knows (the codec says).
        encoder: the whole config of the BERT as JSON, words among it (the run that it comes from says).
        dim: width of a target token's vector; the BERT has its own.
        decoder_depth: decoder blocks.
        heads: attention heads of each layer of the decoder; they share the width.
        hidden: width inside the decoder's feed-forward layers.
        dropout: in the decoder, of embeddings and of each layer's output, in training; the BERT has its own.
        order: Add & Norm of the decoder with the norm after the sum ("post", the paper) or before the layer ("pre").
        tie: one table for target embeddings and output: "output" (the paper) or "none".
    """

    target_words: int = 0
    encoder: str = ""
    dim: int = 512
    decoder_depth: int = 6
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    order: str = "post"
    tie: str = "output"

    def __post_init__(self):
        check_config(self, "dim", "decoder_depth", "heads", "hidden", order=("post", "pre"), tie=("output", "none"))

    @property
    def bert(self) -> BertConfig:
        """The encoder's own config, without a head.

        Raises:
            ConfigError: ``encoder`` is no such thing.
        """
        try:
            config = BertConfig(**json.loads(self.encoder))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"size.encoder is no config of a BERT ({error})") from None
        return replace(config, head="none", outputs=0, next=False, pooler=False)


SIZES = {  #         dim       decoder_depth    heads    hidden       dropout
    "nano":  dict(dim=64,   decoder_depth=1, heads=2,  hidden=128,  dropout=0.0),
    "tiny":  dict(dim=128,  decoder_depth=2, heads=4,  hidden=256,  dropout=0.1),
    "small": dict(dim=256,  decoder_depth=3, heads=4,  hidden=1024, dropout=0.2),
    "base":  dict(dim=512,  decoder_depth=6, heads=8,  hidden=2048, dropout=0.1),
    "big":   dict(dim=1024, decoder_depth=6, heads=16, hidden=4096, dropout=0.3),
}  # fmt: skip


class BertTransformer(nn.Module):
    """A translator whose source is read by a BERT, both ways at once, as one text of one segment."""

    Config, SIZES = BertTransformerConfig, SIZES

    def __init__(self, config: BertTransformerConfig):
        super().__init__()
        self.config = c = config
        self.encoder = Bert(c.bert)
        for block in self.encoder.blocks:
            block.attention.between = ("source", "source")  # what a trace calls what it reads
        self.target = TokenEmbedding(word_table(c.target_words, c.dim), Sinusoidal(c.dim), c.dropout)
        self.decoder = nn.ModuleList(
            DecoderBlock(
                Attention(c.dim, c.heads, between=("target", "target")),
                Attention(c.dim, c.heads, memory_width=c.bert.dim, between=("target", "source")),
                FeedForward(c.dim, c.hidden),
                lambda: Residual(c.dim, c.order, dropout=c.dropout),
            )
            for _ in range(c.decoder_depth)
        )
        self.decoder_norm = LayerNorm(c.dim) if c.order == "pre" else None
        self.output = Linear(c.dim, c.target_words)
        if c.tie == "output":
            self.output.weight = self.target.words.weight

    @property
    def source(self) -> nn.Module:
        """What makes vectors of the source's tokens."""
        return self.encoder.tokens

    @property
    def longest_source(self) -> int:
        """Tokens of the longest source, marks counted."""
        return self.encoder.config.longest

    def layers(self) -> list[nn.Module]:
        """What runs one after the other, first to last."""
        return [*self.encoder.layers(), *self.decoder]

    def encode(
        self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch source width"], Mask]:
        """The BERT's states, and the mask that hides its padding."""
        return self.encoder(source, lengths), padding(lengths, source.shape[1])

    # What is done with the encoder's states is what any Transformer does.
    forward, start, step, select = Transformer.forward, Transformer.start, Transformer.step, Transformer.select
