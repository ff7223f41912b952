"""A first look at the user's pictures, by names and a few headers: enough to choose a recipe before all are read."""

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import list_examples
from qkv.data.image_prepare import fitting_size
from qkv.data.report import Report

__all__ = ["Glance", "glance", "glance_at"]

HEADERS = 64  # that are read, spread over all pictures


class Glance(NamedTuple):
    """Pictures of train, about; and the side in pixels that a model of them reads."""

    pictures: int
    size: int


def glance(data: ImageFiles) -> Glance:
    """How many pictures there are to train on, and how large they are; nothing is decoded.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or it cannot be understood.
    """
    with tempfile.TemporaryDirectory(prefix="qkv-glance-") as scratch:
        examples = list_examples(data, Path(scratch), Report(unit="pictures"))
        return glance_at(examples, data.hold_out, data.size)


def glance_at(examples: Mapping[str, list], hold_out: float, size: int) -> Glance:
    """The same of pictures that are listed."""
    train = examples.get("train", [])
    sides = [side for example in train[:: len(train) // HEADERS + 1] if (side := _side(example))]
    pictures = len(train) if "dev" in examples else round(len(train) * (1 - hold_out))
    return Glance(pictures, size or fitting_size(sides or [224]))


def _side(example) -> int:
    try:
        with Image.open(io.BytesIO(example.read())) as image:  # the header only
            return min(image.size)
    except Exception:  # the doctor names what is broken
        return 0
