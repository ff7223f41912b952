"""Small clips and folders of them, for the tests of the clip room."""

import io
from pathlib import Path

import numpy as np
from photos import noise, packed, png, write
from PIL import Image


def flat(*values: int, height: int = 8, width: int = 12) -> list[np.ndarray]:
    """Frames of one grey each."""
    return [np.full((height, width, 3), value, np.uint8) for value in values]


def animation(frames: list[np.ndarray], form: str = "GIF", milliseconds=40, **how) -> bytes:
    images, stream = [Image.fromarray(frame) for frame in frames], io.BytesIO()
    how = {"duration": milliseconds, "loop": 0, **({"lossless": True} if form == "WEBP" else {}), **how}
    images[0].save(stream, form, save_all=True, append_images=images[1:], **how)
    return stream.getvalue()


def frames(folder: Path, *seeds: int, first: int = 1, **size) -> Path:
    """A folder of noise, a frame a seed: 1.png, 2.png ... 10.png."""
    return write(folder, {f"{first + i}.png": png(seed, **size) for i, seed in enumerate(seeds)})


def scenes(folder: Path, count: int = 6, length: int = 4, first: int = 0, classes=("calm", "wild")) -> Path:
    """``count`` clips of each class as folders of frames, all different."""
    seed = first
    for name in classes:
        for i in range(count):
            frames(folder / name / f"{i:02}", *range(seed, seed + length))
            seed += length
    return folder


__all__ = ["animation", "flat", "frames", "noise", "packed", "png", "scenes", "write"]
