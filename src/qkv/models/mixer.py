"""MLP-Mixer: Tolstikhin et al. 2021, "MLP-Mixer: An all-MLP Architecture for Vision"."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Grid
from qkv.errors import DataError
from qkv.layers.aggregate import Head
from qkv.layers.block import FeedForward, Residual
from qkv.layers.embed import Patches
from qkv.layers.mixing import TokenMixing
from qkv.layers.norm import LayerNorm
from qkv.layers.stochastic_depth import skip_rates
from qkv.models.checks import check_config, check_image

__all__ = ["SIZES", "Mixer", "MixerConfig"]


@dataclass(frozen=True)
class MixerConfig:
    """What an MLP-Mixer is made of.

    Attributes:
        classes: how many (the codec says).
        image: height and width in pixels of every image that the model will ever see.
        patch: side of a patch in pixels.
        dim: width of a token's vector.
        depth: blocks.
        token_hidden: width inside the MLPs that mix tokens.
        channel_hidden: width inside the MLPs that mix channels.
        dropout: of each layer's output, in training.
        stochastic_depth: chance that the last block's layers are skipped in training; less for those before it.
        eps: of the norms.
    """

    classes: int = 0
    image: tuple[int, int] = (224, 224)
    patch: int = 16
    dim: int = 768
    depth: int = 12
    token_hidden: int = 384
    channel_hidden: int = 3072
    dropout: float = 0.0
    stochastic_depth: float = 0.0
    eps: float = 1e-6

    def __post_init__(self):
        check_config(self, "dim", "depth", "token_hidden", "channel_hidden")
        check_image(self)


SIZES = {  #         dim       depth     token_hidden      channel_hidden
    "nano":  dict(dim=64,   depth=4,  token_hidden=32,  channel_hidden=128),
    "tiny":  dict(dim=256,  depth=8,  token_hidden=128, channel_hidden=1024),
    "small": dict(dim=512,  depth=8,  token_hidden=256, channel_hidden=2048),
    "base":  dict(dim=768,  depth=12, token_hidden=384, channel_hidden=3072),
    "large": dict(dim=1024, depth=24, token_hidden=512, channel_hidden=4096),
}  # fmt: skip


class MixerBlock(nn.Module):
    """Mix tokens, then mix channels (figure 1), each with a norm before it and a residual connection."""

    def __init__(self, mixing: TokenMixing, feed_forward: FeedForward, residual):
        super().__init__()
        self.mixing, self.feed_forward = mixing, feed_forward
        self.mixing_residual, self.feed_forward_residual = residual(), residual()

    def forward(self, states: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch token dim"]:
        return self.feed_forward_residual(self.mixing_residual(states, self.mixing), self.feed_forward)


class Mixer(nn.Module):
    """Patches that are mixed by an MLP over tokens; it has no attention, and one grid for ever."""

    Config, SIZES = MixerConfig, SIZES

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.config = c = config
        self.patches = Patches(c.patch, c.dim)
        rows, columns = self.patches.grid(*c.image)
        self.blocks = nn.ModuleList(
            MixerBlock(
                TokenMixing(rows * columns, c.token_hidden, between=("patches", "patches")),
                FeedForward(c.dim, c.channel_hidden, "gelu"),
                lambda skip=skip: Residual(c.dim, "pre", dropout=c.dropout, eps=c.eps, skip=skip),
            )
            for skip in skip_rates(c.stochastic_depth, c.depth)
        )
        self.norm = LayerNorm(c.dim, c.eps)
        self.head = Head(c.dim, c.classes)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch class"]:
        """Logits of each class, of a normalised image.

        Raises:
            DataError: the image has another size than the model was built for.
        """
        self._same_grid(image)
        states = self.patches(image).flatten(1, 2)
        for block in self.blocks:
            states = block(states)
        return self.head(self.norm(states).mean(1))

    def layers(self) -> list[nn.Module]:
        """The blocks, from the image to the head."""
        return list(self.blocks)

    def axes(self, image: Float[Tensor, "batch 3 height width"]) -> dict[str, list[Grid]]:
        """The grid of patches, for each image of a batch."""
        self._same_grid(image)
        return {"patches": [Grid(*self.patches.grid(*self.config.image), self.config.image)] * len(image)}

    def _same_grid(self, image: Tensor) -> None:
        found, wanted = tuple(image.shape[-2:]), self.config.image
        if found != wanted:
            rows, columns = self.patches.grid(*wanted)
            raise DataError(
                f"an image of {found[0]} x {found[1]} pixels",
                expected=f"{wanted[0]} x {wanted[1]}: a Mixer has weights for its grid of {rows} x {columns} patches, "
                "and for no other",
                remedy="resize the image, or use a ViT or Swin",
            )
