"""Small picture models and what they looked at, for the tests of looking into pictures."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from qkv import models
from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.models.saved import build

SIZES = {
    "vit": dict(image=(32, 48), patch=8, dim=16, depth=2, heads=4, hidden=32),
    "swin": dict(patch=2, window=4, dim=8, depths=(2, 2), heads=(2, 4), ratio=2),
    "mixer": dict(image=(32, 48), patch=8, dim=16, depth=2, token_hidden=6, channel_hidden=32),
    "resnet": dict(stem="small", stem_width=8, widths=(8, 12), depths=(1, 1)),
}


@dataclass(frozen=True)
class Opened:
    """What looking needs of an opened run."""

    model: nn.Module
    codec: ImageCodec
    device: str = "cpu"
    folder: Path | None = Path("runs/shapes")


def opened(name: str, labels: str = "class", classes=("cat", "dog", "bird"), size=(32, 48), **changes) -> Opened:
    """A random model, sharp enough that what is taken away shows."""
    torch.manual_seed(0)
    classes = () if labels == "number" else tuple(classes)
    codec = ImageCodec(Preprocess(size=size), classes, labels)
    config = models.find(name).Config(classes=codec.outputs, **{**SIZES[name], **changes})
    model = build(name, config)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return Opened(model.eval(), codec)


def pixels(rows: int = 40, columns: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, columns, 3), dtype=np.uint8)
