"""Video as frames: the factorised encoder of Arnab et al. 2021, "ViViT: A Video Vision Transformer", section 3.3,
model 2: each frame through an image encoder, then a Transformer over frames.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.axis import Frames, Grid
from qkv.layers.aggregate import EachToken, FirstToken, Head, MaxToken, MeanToken
from qkv.layers.attention import Attention
from qkv.layers.block import EncoderBlock, FeedForward, Residual
from qkv.layers.embed import ExtraTokens
from qkv.layers.frames import FrameEmbedding
from qkv.layers.mask import padding, real_places
from qkv.layers.norm import LayerNorm
from qkv.layers.position import Learned
from qkv.models.checks import check_config
from qkv.models.frame_encoder import check_encoder, frame_encoder, frame_vectors

__all__ = ["SIZES", "Video", "VideoConfig"]


@dataclass(frozen=True)
class VideoConfig:
    """What a video Transformer is made of.

    Attributes:
        classes: of clips, or 1 for a number (the codec says).
        frame_classes: of single frames; 0: there is no head for them (the codec says).
        frames: most frames of a clip (the codec says).
        image: height and width of a frame in pixels (the codec says).
        encoder: what makes a vector of a frame: vit, swin, resnet or linear (all pixels, projected).
        encoder_size: its size, a name in the model's own table.
        patch: side of its patches in pixels (vit, swin).
        dim: width of a frame's vector.
        depth: blocks over frames.
        heads: attention heads of each block; they share the width.
        hidden: width inside the feed-forward layers.
        dropout: of vectors of frames and of each layer's output, in training.
        pool: what the clip's head reads: class (a token that looks at all frames), or of all frames the mean or in each
            channel the max, which learns soonest where a few frames decide and none is labelled.
        eps: of the norms.
    """

    classes: int = 0
    frame_classes: int = 0
    frames: int = 16
    image: tuple[int, int] = (32, 32)
    encoder: str = "vit"
    encoder_size: str = "nano"
    patch: int = 8
    dim: int = 128
    depth: int = 4
    heads: int = 4
    hidden: int = 256
    dropout: float = 0.0
    pool: str = "class"
    eps: float = 1e-6

    def __post_init__(self):
        check_config(self, "frames", "dim", "depth", "heads", "hidden", "image", "patch", pool=POOLS)
        check_encoder(self)


SIZES = {  #        encoder_size         dim       depth     heads     hidden
    "nano":  dict(encoder_size="nano",  dim=64,  depth=2,  heads=2,  hidden=128),
    "small": dict(encoder_size="nano",  dim=128, depth=4,  heads=4,  hidden=256),
    "base":  dict(encoder_size="tiny",  dim=192, depth=4,  heads=3,  hidden=768),
    "large": dict(encoder_size="base",  dim=768, depth=4,  heads=12, hidden=3072),
}  # fmt: skip
POOLS = {"class": FirstToken, "mean": MeanToken, "max": MaxToken}


class Video(nn.Module):
    """Frames as the words of a Transformer's encoder. `forward` gives a state a token; two heads read them."""

    Config, SIZES = VideoConfig, SIZES

    def __init__(self, config: VideoConfig):
        super().__init__()
        self.config = c = config
        self.prefix = ("[CLS]",) if c.pool == "class" else ()
        self.encoder = frame_encoder(c)
        self.frames = FrameEmbedding(
            Learned(c.dim, len(self.prefix) + c.frames), ExtraTokens(1, c.dim) if self.prefix else None, c.dropout
        )
        self.blocks = nn.ModuleList(
            EncoderBlock(
                Attention(c.dim, c.heads, between=("frames", "frames")),
                FeedForward(c.dim, c.hidden, "gelu"),
                lambda: Residual(c.dim, "pre", dropout=c.dropout, eps=c.eps),
            )
            for _ in range(c.depth)
        )
        self.norm = LayerNorm(c.dim, c.eps)
        self.pool = POOLS[c.pool]()
        self.each = EachToken(skip=len(self.prefix))
        self.head = Head(c.dim, c.classes)
        self.frame_head = Head(c.dim, c.frame_classes) if c.frame_classes else None

    def forward(
        self, images: Float[Tensor, "batch frame 3 height width"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch token dim"]:
        """The state of each token: the class token, if any, and each frame; of frames past ``lengths`` mere filling."""
        real = real_places(lengths, images.shape[1])
        states = self.frames(frame_vectors(self.encoder, images, real, self.config.dim))
        mask = padding(lengths + len(self.prefix), states.shape[1])
        for block in self.blocks:
            states = block(states, mask)
        return self.norm(states)

    def layers(self) -> list[nn.Module]:
        """The blocks of the encoder and those over frames, in the order in which they run."""
        return [*getattr(self.encoder, "layers", list)(), *self.blocks]

    def of_clip(
        self, states: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch class"]:
        """Logits of the clip's classes (or its number), of what `forward` gave."""
        return self.head(self.pool(states, real_places(lengths + len(self.prefix), states.shape[1])))

    def of_frames(self, states: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch frame frame_class"]:
        """Logits of each frame's classes, of what `forward` gave."""
        return self.frame_head(self.each(states))

    def axes(
        self,
        images: Float[Tensor, "batch frame 3 height width"],
        lengths: Int[Tensor, "batch"],
        times: Float[Tensor, "batch frame"] | None = None,
    ) -> dict[str, list[Frames | Grid]]:
        """What each position of each stream is: frames of each clip at their times (or numbers), and of the image
        encoder the cells of each real frame, clip after clip."""
        if times is None:
            times = torch.arange(images.shape[1], device=lengths.device).float().expand(images.shape[:2])
        own = [tuple(row[:length]) for row, length in zip(times.tolist(), lengths.tolist(), strict=True)]
        inside = {}
        if self.config.encoder != "linear":
            inside = self.encoder.axes(images[real_places(lengths, images.shape[1])])
        return {"frames": [Frames(some, self.prefix) for some in own], **inside}
