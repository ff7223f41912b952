"""What makes a vector of one frame of a clip: an image model of ours, or with "linear" the frame as one flat patch."""

from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.layers.frames import Pixels
from qkv.models import resnet, swin, vit
from qkv.models.checks import check_config, check_image

__all__ = ["check_encoder", "frame_encoder", "frame_vectors"]

ENCODERS = {"vit": vit.ViT, "swin": swin.Swin, "resnet": resnet.ResNet, "linear": Pixels}


def check_encoder(config: Any) -> None:
    """ConfigError for an encoder, a size of it or a patch that cannot be."""
    check_config(config, encoder=ENCODERS)
    if config.encoder != "linear":
        check_config(config, encoder_size=ENCODERS[config.encoder].SIZES)
    if config.encoder == "vit":
        check_image(config)


def frame_encoder(config: Any) -> nn.Module:
    """The model that a video's config names; its "classes" are the numbers of a frame's vector."""
    c, cls = config, ENCODERS[config.encoder]
    if cls is Pixels:
        return Pixels(*c.image, c.dim)
    of_patches = {"vit": dict(image=c.image, patch=c.patch), "swin": dict(patch=c.patch), "resnet": {}}[c.encoder]
    return cls(cls.Config(classes=c.dim, **{**cls.SIZES[c.encoder_size], **of_patches}))


def frame_vectors(
    encoder: nn.Module, images: Float[Tensor, "batch frame 3 height width"], real: Bool[Tensor, "batch frame"], dim: int
) -> Float[Tensor, "batch frame {dim}"]:
    """The vector of each real frame, else zeros: padding never reaches an encoder, whose norms may be of a batch."""
    vectors = images.new_zeros(*real.shape, dim)
    if real.any():
        seen = encoder(images[real])
        vectors = vectors.to(seen.dtype).masked_scatter(real[..., None], seen)
    return vectors
