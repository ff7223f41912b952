"""A trained picture model that answers: picture in, classes or a number out."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, nn

from qkv.data.image_codec import ImageCodec
from qkv.data.image_listing import Example
from qkv.data.lines import windows
from qkv.data.pictures import decode, from_image
from qkv.errors import DataError
from qkv.models.saved import load_model
from qkv.tasks.class_scores import CUT

__all__ = ["PictureAnswer", "PictureClassifier", "opened"]

BATCH = 64
MOST_WORKERS = 8

Picture = str | Path | Example | Image.Image | np.ndarray


@dataclass(frozen=True)
class PictureAnswer:
    """What a model says of a picture.

    Attributes:
        name: the picture's path; empty for one that was given as pixels.
        classes: all that the model knows, and ``probabilities`` of each; with ``several`` each for itself.
        number: in the unit of the training targets, for a model that was trained on numbers.
        mark: why there is no answer; empty where there is one.
    """

    name: str
    classes: tuple[str, ...] = ()
    probabilities: Float[np.ndarray, "class"] | None = None
    several: bool = False
    number: float | None = None
    mark: str = ""

    @property
    def label(self) -> str:
        """The likeliest class; of several, all that are likelier than not, with commas between."""
        return ", ".join(self.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        if self.probabilities is None:
            return ()
        if self.several:
            return tuple(self.classes[i] for i in np.flatnonzero(self.probabilities >= CUT))
        return (self.classes[int(self.probabilities.argmax())],)

    def top(self, count: int) -> list[tuple[str, float]]:
        """The likeliest classes with their probabilities, the likeliest first."""
        if self.probabilities is None:
            return []
        order = np.argsort(-self.probabilities, kind="stable")[: max(count, 0)]
        return [(self.classes[i], float(self.probabilities[i])) for i in order]

    def __str__(self) -> str:
        if self.mark or self.number is not None:
            return self.mark or f"{self.number:g}"
        return "  ".join(f"{name} {chance:.3f}" for name, chance in self.top(5))


class PictureClassifier:
    """A picture model with its codec; call it on a picture, or stream many through `answers`.

    A picture is a path, one of the user's data, an image of pillow, or 8-bit pixels (row, column, 3) or (row, column).
    All are decoded, turned and resized as in training.
    """

    def __init__(self, model: nn.Module, codec: ImageCodec, folder: Path | None = None):
        self.model, self.codec, self.folder = model.eval(), codec, folder

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "PictureClassifier":
        """The run in a folder. Raises RunError: it is not whole."""
        folder = Path(folder)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        return cls(load_model(folder, device=device), ImageCodec.load(folder / "codec"), folder)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def __call__(self, picture: Picture) -> PictureAnswer:
        """The answer to one picture. Raises DataError: it cannot be read."""
        name, pixels = opened(picture)
        return self._told([name], self.codec.preprocess(pixels)[None])[0]

    def answers(self, pictures: Iterable[Picture], batch: int = BATCH) -> Iterator[PictureAnswer]:
        """An answer to each picture, in order; one that cannot be read gets a marked one.

        Pictures are read on several threads while the model works, two batches ahead at most.
        """
        with ThreadPoolExecutor(min(MOST_WORKERS, os.cpu_count() or 1)) as pool:
            reading: deque[list[Future]] = deque()
            try:
                for some in windows(pictures, batch):
                    reading.append([pool.submit(self._read, picture) for picture in some])
                    if len(reading) > 2:
                        yield from self._answered(reading.popleft())
                while reading:
                    yield from self._answered(reading.popleft())
            finally:  # whoever asked may have gone
                for future in (future for some in reading for future in some):
                    future.cancel()

    @torch.inference_mode()
    def outputs(self, images: Float[Tensor, "image 3 height width"]) -> Float[Tensor, "image output"]:
        """What the model says of preprocessed images: logits of classes, or a scaled number."""
        return self.model(images.to(self.device)).float().cpu()

    def probabilities(self, outputs: Float[Tensor, "image class"]) -> Float[np.ndarray, "image class"]:
        """Of one class in all, or with several labels of each for itself."""
        outputs = outputs.double()
        return (outputs.sigmoid() if self.codec.labels == "several" else outputs.softmax(1)).numpy()

    def _read(self, picture: Picture) -> tuple[str, Tensor | None, str]:
        try:
            name, pixels = opened(picture)
            return name, self.codec.preprocess(pixels), ""
        except DataError as error:
            return _name(picture), None, str(error)

    def _answered(self, futures: list[Future]) -> Iterator[PictureAnswer]:
        read = [future.result() for future in futures]
        good = [(name, image) for name, image, _ in read if image is not None]
        told = iter(self._told([name for name, _ in good], torch.stack([image for _, image in good])) if good else ())
        for name, image, mark in read:
            yield PictureAnswer(name, mark=mark) if image is None else next(told)

    def _told(self, names: list[str], images: Tensor) -> list[PictureAnswer]:
        outputs, codec = self.outputs(images), self.codec
        if codec.labels == "number":
            return [PictureAnswer(name, number=n) for name, n in zip(names, codec.decode(outputs), strict=True)]
        several, chances = codec.labels == "several", self.probabilities(outputs)
        return [PictureAnswer(name, codec.classes, row, several) for name, row in zip(names, chances, strict=True)]


def opened(picture: Any) -> tuple[str, UInt8[np.ndarray, "row column 3"]]:
    """A picture's name and its pixels, decoded as everywhere.

    Raises:
        DataError: it cannot be read, or it is none.
    """
    if isinstance(picture, (str, Path)):
        return str(picture), decode(picture).pixels
    if isinstance(picture, Example):
        return picture.where, decode(picture.read(), picture.where).pixels
    if isinstance(picture, np.ndarray):
        shaped = picture.ndim in (2, 3) and picture.shape[2:] in ((), (3,)) and picture.size
        if picture.dtype != np.uint8 or not shaped:
            raise DataError(
                f"an array of {picture.dtype} with the shape {list(picture.shape)}",
                expected="uint8 with the shape [row, column, 3] or [row, column], of one pixel or more",
            )
        picture = Image.fromarray(picture)
    if not isinstance(picture, Image.Image):
        raise DataError(f"a {type(picture).__name__}", expected="a path, an image of pillow, or 8-bit pixels")
    return "", from_image(picture).pixels


def _name(picture: Any) -> str:
    return picture.where if isinstance(picture, Example) else str(picture) if isinstance(picture, (str, Path)) else ""
