"""What training does to one picture so that it is never quite the same twice: parts, each drawing from the generator
that it is given."""

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor, from_numpy

from qkv.data.image_files import Augment
from qkv.data.preprocess import Box, Preprocess, resize
from qkv.data.randaugment import randaugment

__all__ = ["augmented", "erase", "flip", "random_box", "shift"]

ATTEMPTS = 10  # at a box that fits, as in the paper


def augmented(
    settings: Augment, preprocess: Preprocess, pixels: UInt8[np.ndarray, "row column 3"], chance: np.random.Generator
) -> UInt8[np.ndarray, "height width 3"]:
    """A picture as a training step sees it, but for `erase`, which comes after it is normalised."""
    height, width = pixels.shape[:2]
    wanted = (preprocess.size, settings.scale, settings.ratio)
    box = random_box(height, width, *wanted, chance) if settings.scale < 1 else None
    box = box or preprocess.region(height, width)
    pixels = resize(pixels, preprocess.size, box, preprocess.interpolation, preprocess.antialias)
    if settings.shift:
        pixels = shift(pixels, settings.shift, chance)
    pixels = flip(pixels, settings.flip, chance)
    if settings.randaugment:
        pixels = randaugment(pixels, settings.randaugment, settings.magnitude, chance)
    return pixels


def random_box(
    height: int, width: int, size: tuple[int, int], scale: float, ratio: float, chance: np.random.Generator
) -> Box | None:
    """A part of a picture, of a random area (at least ``scale`` of it) and shape, somewhere inside; None if none fits.

    ``ratio`` is relative to the shape of ``size``, which the part will be stretched to.
    """
    for _ in range(ATTEMPTS):
        area = chance.uniform(scale, 1) * height * width
        stretched = np.exp(chance.uniform(-np.log(ratio), np.log(ratio))) * size[1] / size[0]
        columns, rows = round(np.sqrt(area * stretched)), round(np.sqrt(area / stretched))
        if 0 < columns <= width and 0 < rows <= height:
            left, top = int(chance.integers(width - columns + 1)), int(chance.integers(height - rows + 1))
            return (left, top, left + columns, top + rows)
    return None


def shift(
    pixels: UInt8[np.ndarray, "row column 3"], most: int, chance: np.random.Generator
) -> UInt8[np.ndarray, "row column 3"]:
    """The picture moved by up to ``most`` pixels each way, what comes in mirrored at the border."""
    height, width = pixels.shape[:2]
    down, right = chance.integers(0, 2 * most + 1, 2)
    wider = np.pad(pixels, ((most, most), (most, most), (0, 0)), mode="symmetric")
    return wider[down : down + height, right : right + width]


def flip(
    pixels: UInt8[np.ndarray, "row column 3"], how_often: float, chance: np.random.Generator
) -> UInt8[np.ndarray, "row column 3"]:
    """Left and right change places, now and then."""
    return pixels[:, ::-1] if chance.random() < how_often else pixels


def erase(
    image: Float[Tensor, "3 row column"], how_often: float, chance: np.random.Generator
) -> Float[Tensor, "3 row column"]:
    """A rectangle of 2 to 33 % of the area becomes noise, now and then (Zhong et al. 2020, algorithm 1); in place."""
    if chance.random() >= how_often:
        return image
    height, width = image.shape[1:]
    box = None
    while box is None:  # a tiny picture may take some tries; one pixel always fits in the end
        area = chance.uniform(0.02, 1 / 3) * height * width
        stretched = np.exp(chance.uniform(-1, 1) * np.log(0.3))
        rows, columns = max(1, round(np.sqrt(area * stretched))), max(1, round(np.sqrt(area / stretched)))
        box = (rows, columns) if rows <= height and columns <= width else None
    rows, columns = box
    top, left = int(chance.integers(height - rows + 1)), int(chance.integers(width - columns + 1))
    noise = chance.standard_normal((3, rows, columns), dtype=np.float32)
    image[:, top : top + rows, left : left + columns] = from_numpy(noise)
    return image
