"""RandAugment (Cubuk et al. 2020): a few operations drawn from one list, all at one strength."""

from collections.abc import Callable

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageEnhance, ImageOps

__all__ = ["OPERATIONS", "randaugment"]

GREY = (128, 128, 128)  # what comes in from outside of the picture
SHEAR, SHIFT, TURN, CHANGE = 0.3, 0.45, 30.0, 0.9  # at full strength: slope, share of a side, degrees, factor - 1

Operation = Callable[[Image.Image, float], Image.Image]  # the strength is from -1 to 1


def _affine(image: Image.Image, *matrix: float) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR, fillcolor=GREY)


def _enhance(kind: type) -> Operation:
    return lambda image, strength: kind(image).enhance(1 + CHANGE * strength)


# Operations without a direction take the size of the strength.
OPERATIONS: dict[str, Operation] = {
    "identity": lambda image, _: image,
    "auto contrast": lambda image, _: ImageOps.autocontrast(image),
    "equalise": lambda image, _: ImageOps.equalize(image),
    "rotate": lambda image, s: image.rotate(TURN * s, Image.Resampling.BILINEAR, fillcolor=GREY),
    "posterise": lambda image, s: ImageOps.posterize(image, 8 - round(4 * abs(s))),
    "solarise": lambda image, s: ImageOps.solarize(image, 256 - round(256 * abs(s))),
    "colour": _enhance(ImageEnhance.Color),
    "contrast": _enhance(ImageEnhance.Contrast),
    "brightness": _enhance(ImageEnhance.Brightness),
    "sharpness": _enhance(ImageEnhance.Sharpness),
    "shear across": lambda image, s: _affine(image, 1, SHEAR * s, -SHEAR * s * image.height / 2, 0, 1, 0),
    "shear down": lambda image, s: _affine(image, 1, 0, 0, SHEAR * s, 1, -SHEAR * s * image.width / 2),
    "shift across": lambda image, s: _affine(image, 1, 0, SHIFT * s * image.width, 0, 1, 0),
    "shift down": lambda image, s: _affine(image, 1, 0, 0, 0, 1, SHIFT * s * image.height),
}


def randaugment(
    pixels: UInt8[np.ndarray, "row column 3"], count: int, magnitude: float, chance: np.random.Generator
) -> UInt8[np.ndarray, "row column 3"]:
    """``count`` operations drawn with replacement, each of ``magnitude`` (0 to 10) in a random direction."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    names = list(OPERATIONS)
    for _ in range(count):
        operation = OPERATIONS[names[int(chance.integers(len(names)))]]
        image = operation(image, magnitude / 10 * (1 if chance.random() < 0.5 else -1))
    return np.array(image)
