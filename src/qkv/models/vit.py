"""The Vision Transformer: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words".

With a distillation token (Touvron et al. 2021, "Training data-efficient image transformers") and registers (Darcet et
al. 2024, "Vision Transformers Need Registers") as published weights have them.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Grid, Tokens
from qkv.errors import ConfigError
from qkv.layers.aggregate import AttentionPool, FirstToken, Head, MeanToken
from qkv.layers.attention import Attention
from qkv.layers.block import EncoderBlock, FeedForward, Residual
from qkv.layers.embed import ExtraTokens, PatchEmbedding, Patches
from qkv.layers.norm import LayerNorm
from qkv.layers.position import RESAMPLING, LearnedGrid
from qkv.layers.stochastic_depth import skip_rates
from qkv.models.checks import check_config, check_image

__all__ = ["SIZES", "ViT", "ViTConfig"]


@dataclass(frozen=True)
class ViTConfig:
    """What a Vision Transformer is made of.

    Attributes:
        classes: how many (the codec says).
        image: height and width in pixels that positions are learned for; other sizes are resampled to.
        patch: side of a patch in pixels.
        dim: width of a token's vector.
        depth: blocks.
        heads: attention heads of each block; they share the width.
        hidden: width inside the feed-forward layers.
        dropout: of embeddings and of each layer's output, in training.
        stochastic_depth: chance that the last block's layers are skipped in training; less for those before it.
        pool: what the head reads: class (a token that looks at all others, the paper), mean (of all patches) or
            attention (one learned query looks at all tokens).
        class_token: there is a class token, also where the head does not read it.
        distilled: a second token with a head of its own; the answer is the mean of both heads.
        registers: tokens that only the blocks use.
        prelogits: width of a tanh layer in the head; 0: there is none.
        resampling: how positions are read on another grid: timm, hf, torchvision, linear (the original) or bilinear.
        eps: of the norms.
    """

    classes: int = 0
    image: tuple[int, int] = (224, 224)
    patch: int = 16
    dim: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    dropout: float = 0.0
    stochastic_depth: float = 0.0
    pool: str = "class"
    class_token: bool = True
    distilled: bool = False
    registers: int = 0
    prelogits: int = 0
    resampling: str = "timm"
    eps: float = 1e-6

    def __post_init__(self):
        pools = ("class", "mean", "attention")
        check_config(self, "dim", "depth", "heads", "hidden", pool=pools, resampling=RESAMPLING)
        check_image(self)
        if (self.pool == "class" or self.distilled) and not self.class_token:
            raise ConfigError("there is no class token to read", remedy="--size.class_token true, or --size.pool mean")
        if self.distilled and self.pool != "class":
            raise ConfigError(f"size.pool is {self.pool!r}, and size.distilled reads two tokens", expected="class")


SIZES = {  #         dim       depth     heads     hidden
    "nano":  dict(dim=64,   depth=4,  heads=2,  hidden=128),
    "tiny":  dict(dim=192,  depth=12, heads=3,  hidden=768),
    "small": dict(dim=384,  depth=12, heads=6,  hidden=1536),
    "base":  dict(dim=768,  depth=12, heads=12, hidden=3072),
    "large": dict(dim=1024, depth=24, heads=16, hidden=4096),
}  # fmt: skip


class ViT(nn.Module):
    """Patches of an image as the words of a Transformer's encoder (figure 1)."""

    Config, SIZES = ViTConfig, SIZES

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = c = config
        first = c.class_token + c.distilled
        self.prefix = ("[CLS]", "[DIST]")[:first] + tuple(f"[REG {i}]" for i in range(c.registers))
        self.patches = PatchEmbedding(
            Patches(c.patch, c.dim),
            LearnedGrid(c.dim, (c.image[0] // c.patch, c.image[1] // c.patch), first, c.resampling),
            ExtraTokens(first, c.dim) if first else None,
            ExtraTokens(c.registers, c.dim) if c.registers else None,
            c.dropout,
        )
        self.blocks = nn.ModuleList(
            EncoderBlock(
                Attention(c.dim, c.heads, between=("patches", "patches")),
                FeedForward(c.dim, c.hidden, "gelu"),
                lambda skip=skip: Residual(c.dim, "pre", dropout=c.dropout, eps=c.eps, skip=skip),
            )
            for skip in skip_rates(c.stochastic_depth, c.depth)
        )
        if c.pool == "attention":
            self.pool = AttentionPool(Attention(c.dim, c.heads, between=("pool", "patches")), c.dim)
        else:
            self.pool = FirstToken() if c.pool == "class" else MeanToken(skip=len(self.prefix))
        self.read = 1 + c.distilled if c.pool == "class" else None  # tokens that the heads read; None: all
        self.norm = LayerNorm(c.dim, c.eps)
        self.head = Head(c.dim, c.classes, c.prelogits)
        self.distilled_head = Head(c.dim, c.classes) if c.distilled else None

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch class"]:
        """Logits of each class, of a normalised image."""
        states = self._states(image, self.read)
        # The norm is token by token: of one that is picked it is the same before and after. A mean is normed after.
        logits = self.head(self.norm(self.pool(states)))
        if self.distilled_head is None:
            return logits
        return (logits + self.distilled_head(self.norm(states[:, 1]))) / 2

    def layers(self) -> list[nn.Module]:
        """The blocks, from the image to the head."""
        return list(self.blocks)

    def cells(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch row column dim"]:
        """What is seen at each patch, extra tokens apart."""
        states = self.norm(self._states(image)[:, len(self.prefix) :])
        return states.unflatten(1, self.patches.patch.grid(*image.shape[-2:]))

    def _states(self, image: Tensor, first: int | None = None) -> Float[Tensor, "batch token dim"]:
        """All tokens after the last block, or only so many of the first."""
        states = self.patches(image)
        for block in self.blocks[:-1]:
            states = block(states)
        return self.blocks[-1](states, first=first)

    def axes(self, image: Float[Tensor, "batch 3 height width"]) -> dict[str, list[Grid | Tokens]]:
        """What each position of each stream is, for each image of a batch."""
        size = tuple(image.shape[-2:])
        grid = Grid(*self.patches.patch.grid(*size), size, self.prefix)
        pool = {"pool": [Tokens(("[pool]",), ((0, 0),), "")] * len(image)} if self.config.pool == "attention" else {}
        return {"patches": [grid] * len(image), **pool}
