"""From a picture of any size to what a model reads: resized, cropped, scaled by mean and deviation.

Fixed when a run begins, saved in its ``codec/`` and never typed again; published weights bring their own.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from qkv.data.image_files import Interpolation
from qkv.errors import ConfigError, RunError, refuse_wrong

__all__ = ["IMAGENET", "Box", "Preprocess", "resize"]

FILE = "preprocess.json"
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}

Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels of the picture

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Preprocess:
    """How a picture becomes numbers.

    Args:
        size: height and width of what the model reads, in pixels.
        crop: share of the shorter side that the centre crop keeps; 1 crops only what does not fit the shape.
        mean, std: of red, green and blue, for values from 0 to 1.
        interpolation: how pixels between pixels are made.
        antialias: average over what a pixel covers when a picture is made smaller.
        stretch: fit both sides and lose the picture's shape, as some published models do; else what is too long is cut.
    """

    size: tuple[int, int] = (224, 224)
    crop: float = 1.0
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    interpolation: Interpolation = "bicubic"
    antialias: bool = True
    stretch: bool = False

    def __post_init__(self):
        refuse_wrong(
            "preprocess",
            (len(self.size) != 2 or min(self.size) < 1, "size", self.size, "a height and a width of 1 or more"),
            (not 0 < self.crop <= 1, "crop", self.crop, "more than 0, at most 1"),
            (len(self.mean) != 3, "mean", self.mean, "three numbers"),
            (len(self.std) != 3 or min(self.std) <= 0, "std", self.std, "three numbers above 0"),
            (self.interpolation not in _FILTERS, "interpolation", repr(self.interpolation), ", ".join(_FILTERS)),
            (
                self.interpolation == "lanczos" and not self.antialias,
                "antialias",
                False,
                "true: lanczos is defined with it",
            ),
        )

    def __call__(self, pixels: UInt8[np.ndarray, "row column 3"]) -> Float[Tensor, "3 height width"]:
        """What the model reads of a picture, as it is evaluated: the centre crop, normalised."""
        return self.normalise(torch.from_numpy(np.array(self.shown(pixels))))

    def shown(self, pixels: UInt8[np.ndarray, "row column 3"]) -> UInt8[np.ndarray, "height width 3"]:
        """The centre crop as 8-bit pixels: what maps are laid over."""
        return resize(pixels, self.size, self.region(*pixels.shape[:2]), self.interpolation, self.antialias)

    def region(self, height: int, width: int) -> Box:
        """Which part of a picture of that size the centre crop shows.

        The picture is resized so that ``size / crop`` just fits into it (or to it, where it may be stretched), and
        ``size`` is cut out of the middle, both in whole pixels, as the published models do it; the answer leads back
        into the picture as it was.
        """
        rows, columns = self.size
        wanted = (int(rows / self.crop), int(columns / self.crop))
        if self.stretch:
            resized = wanted
        elif wanted[0] * width >= wanted[1] * height:  # the height decides
            resized = (wanted[0], max(wanted[0] * width // height, columns))
        else:
            resized = (max(wanted[1] * height // width, rows), wanted[1])
        top, left = round((resized[0] - rows) / 2), round((resized[1] - columns) / 2)
        down, across = height / resized[0], width / resized[1]
        return (left * across, top * down, min(width, (left + columns) * across), min(height, (top + rows) * down))

    def normalise(self, pixels: UInt8[Tensor, "*batch row column 3"]) -> Float[Tensor, "*batch 3 row column"]:
        """8-bit pixels, channels last, to ``(x / 255 - mean) / std``, channels first."""
        mean, std = (torch.tensor(values, device=pixels.device) for values in (self.mean, self.std))
        return ((pixels.float() / 255 - mean) / std).movedim(-1, -3).contiguous()

    def __str__(self) -> str:
        smooth = "" if self.antialias else " without antialias"
        mean, std = (", ".join(f"{value:.4g}" for value in some) for some in (self.mean, self.std))
        stretched = " stretched," if self.stretch else ""
        shape = f"{self.size[0]} x {self.size[1]} pixels,{stretched} centre crop {self.crop:g}"
        return f"{shape}, {self.interpolation}{smooth}, mean {mean}, std {std}"

    def save(self, folder: Path) -> None:
        (Path(folder) / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Preprocess":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        file = Path(folder) / FILE
        try:
            plain = json.loads(file.read_text(encoding="utf-8"))
            return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()})
        except (OSError, ValueError, TypeError, AttributeError, ConfigError) as error:
            raise RunError(
                f"the preprocessing cannot be read ({error})", remedy="copy the whole run folder again", file=file
            ) from error


def resize(
    pixels: UInt8[np.ndarray, "row column 3"],
    size: tuple[int, int],
    box: Box | None = None,
    interpolation: Interpolation = "bicubic",
    antialias: bool = True,
) -> UInt8[np.ndarray, "height width 3"]:
    """A part of a picture (all of it without ``box``) at another size, by pillow.

    Only ``size`` pixels are made, whatever the shape: a picture of one row does not grow before it is cropped.
    """
    height, width = pixels.shape[:2]
    box = box or (0, 0, width, height)
    if (height, width) == tuple(size) and tuple(box) == (0, 0, width, height):
        return pixels
    image, shape, method = Image.fromarray(pixels), (size[1], size[0]), _FILTERS[interpolation]
    if antialias:
        return np.array(image.resize(shape, method, box))
    return np.array(image.transform(shape, Image.Transform.EXTENT, box, method))
