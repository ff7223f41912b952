"""An image model without its head, for models that tell about images: what it sees at each cell of its last grid."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv import models
from qkv.axis import Grid
from qkv.errors import ConfigError, nearest
from qkv.layers.position import LearnedGrid
from qkv.models.saved import fill
from qkv.store import read_tensors

__all__ = ["ENCODERS", "ImageEncoder", "SeesImage"]

ENCODERS = ("resnet", "vit", "swin", "efficientnet")
HEADS = ("head", "distilled_head", "pool")  # what only classes are read with


class ImageEncoder(nn.Module):
    """Cells of an image, row by row.

    Args:
        name: one of `ENCODERS`.
        size: one of the model's sizes, or its whole config as JSON.

    Attributes:
        width: of a cell's vector.
    """

    def __init__(self, name: str, size: str):
        super().__init__()
        if name not in ENCODERS:
            raise ConfigError(f"size.encoder is {name!r}", remedy=nearest(name, ENCODERS))
        self.model = models.find(name)(_config(name, size))
        head = self.model.head
        self.width = (head.hidden or head.output).in_features
        for part in HEADS:
            if hasattr(self.model, part):
                setattr(self.model, part, None)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch cell {self.width}"]:
        return self.model.cells(image).flatten(1, 2)

    def axis(self, image: Float[Tensor, "batch 3 height width"]) -> list[Grid]:
        """What each cell is, for each image of a batch."""
        grids = [axes for axes in self.model.axes(image).values() if isinstance(axes[0], Grid)]
        return [replace(grid, prefix=()) for grid in grids[-1]]

    def grid(self, size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of the cells of an image of that height and width."""
        axis = self.axis(torch.empty(1, 3, *size, device="meta"))[0]
        return axis.rows, axis.columns

    def load(self, folder: Path) -> None:
        """Take the weights of a run of the same image model; its head is left out.

        Raises:
            RunError: it is another model.
        """
        file = folder / "model.safetensors"
        tensors, metadata = read_tensors(file)
        tensors |= {alias: tensors[name] for alias, name in json.loads(metadata.get("tied", "{}")).items()}
        kept = {name: tensor for name, tensor in tensors.items() if name.split(".")[0] not in HEADS}
        fill(self.model, kept, file)


class SeesImage(nn.Module):
    """What models have in common that see the cells of an image, and then tell about it word by word (``tell``)."""

    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.encoder = ImageEncoder(config.encoder, config.encoder_size)
        learned = config.positions == "learned"
        self.position = LearnedGrid(self.encoder.width, self.encoder.grid(config.image)) if learned else None

    def forward(
        self,
        image: Float[Tensor, "batch 3 height width"],
        target: Int[Tensor, "batch target"],
        target_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch target dim"]:
        """What each next word is predicted from, having read the words up to it; `output` makes logits of it.

        Padded on the right, padded words come after every real one, and none looks back at them.
        """
        return self.tell(self.encode(image), target)

    def encode(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch cell seen"]:
        """What is seen at each cell (Xu et al. 2015, section 3.1.1)."""
        return self.encoder(image)

    def placed(self, cells: Float[Tensor, "batch cell seen"]) -> Float[Tensor, "batch cell seen"]:
        """What is seen at each cell, and where that is."""
        return cells if self.position is None else cells + self.position(*self.encoder.grid(self.config.image))

    def axes(self, image: Float[Tensor, "batch 3 height width"]) -> dict[str, list[Grid]]:
        """The grid of the cells, for each image of a batch."""
        return {"cells": self.encoder.axis(image)}


def _config(name: str, size: str):
    """The config of the image model; its one class is for a head that is not kept."""
    cls = models.find(name)
    if not size.startswith("{"):
        if size not in cls.SIZES:
            raise ConfigError(f"size.encoder_size is {size!r}", remedy=nearest(size, cls.SIZES))
        return cls.Config(**{**cls.SIZES[size], "classes": 1})
    try:
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(size).items()}
        return cls.Config(**{**values, "classes": 1})
    except (ValueError, TypeError) as error:
        raise ConfigError(f"size.encoder_size is no config of {name} ({error})") from None
