"""Drawn pictures and clips that the package brings along, with what decides their class: for tests of what a model
looked at, and for studies that need no download.

Every picture is noise, strokes and blobs that all classes share, and one patch, on a grid of patches, that holds the
mark of the class. Every clip is such pictures without a mark, but for one to three frames in a row. All are a pure
function of (seed, number).
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from qkv.data.augment import shift
from qkv.errors import ConfigError

__all__ = ["EVENTS", "MARKS", "Clip", "Shape", "clips", "shapes", "write_clips", "write_shapes"]

FRAMES = 16
MOST_EVENTS = 3  # frames of a clip that hold the event, at most
EVENTS = MARKS = ("checks", "cross", "disc", "frame", "slash", "stripes")  # names of classes


class Shape(NamedTuple):
    """A picture, its class as a place in `MARKS`, and the patch that decides it: left, top, right, bottom in pixels."""

    pixels: UInt8[np.ndarray, "row column 3"]
    label: int
    region: tuple[int, int, int, int]


class Clip(NamedTuple):
    """Frames, the class as a place in `EVENTS`, and which frames hold the event."""

    frames: UInt8[np.ndarray, "frame row column 3"]
    label: int
    events: Bool[np.ndarray, "frame"]


def shapes(seed: int, size: int = 32, patch: int = 8, classes: int = len(MARKS), skip: int = 0) -> Iterator[Shape]:
    """Pictures without end, their classes in turn. ``skip`` begins at a later one: numbers from 0.

    Raises:
        ConfigError: patches do not tile the picture, are too small for a mark, or there are not so many marks.
    """
    _check(size, patch, classes)
    number = skip
    while True:
        chance = np.random.default_rng((seed, number, 0))
        label = number % classes
        pixels = _scene(size, patch, chance)
        left, top = (int(place) * patch for place in chance.integers(size // patch, size=2))
        _put(pixels, MARKS[label], left, top, patch, chance)
        yield Shape(pixels, label, (left, top, left + patch, top + patch))
        number += 1


def clips(seed: int, size: int = 32, patch: int = 8, classes: int = len(EVENTS), skip: int = 0) -> Iterator[Clip]:
    """Clips of 16 frames without end, their classes in turn, 1 to 3 frames in a row holding the mark of the class.

    Raises:
        ConfigError: as for `shapes`.
    """
    _check(size, patch, classes)
    number = skip
    while True:
        chance = np.random.default_rng((seed, number, 1))
        label, count = number % classes, int(chance.integers(1, MOST_EVENTS + 1))
        begin = int(chance.integers(FRAMES - count + 1))
        events = np.zeros(FRAMES, bool)
        events[begin : begin + count] = True
        still = _scene(size, patch, chance)
        left, top = (int(place) * patch for place in chance.integers(size // patch, size=2))
        frames = []
        for event in events:
            # What stands behind wanders by a pixel or so, so that frames differ without the event.
            frame = shift(still, 1, chance)
            frame = np.clip(frame + chance.normal(0, 6, frame.shape), 0, 255).astype(np.uint8)
            if event:
                _put(frame, EVENTS[label], left, top, patch, chance)
            frames.append(frame)
        yield Clip(np.stack(frames), label, events)
        number += 1


def write_shapes(folder: Path, counts: dict[str, int], seed: int = 0, **how: int) -> None:
    """PNG files in ``folder/PART/CLASS`` as ``qkv train`` takes them, and ``regions.PART.jsonl`` beside: file, region.

    Args:
        counts: pictures of each part: ``{"train": 600, "val": 60}``. No picture is in two parts.
        how: size, patch and classes of `shapes`.
    """
    begin = 0
    for part, count in counts.items():
        (folder / part).mkdir(parents=True)
        with open(folder / f"regions.{part}.jsonl", "w", encoding="utf-8") as regions:
            for i, shape in enumerate(islice(shapes(seed, skip=begin, **how), count)):
                file = folder / part / MARKS[shape.label] / f"{i:05}.png"
                file.parent.mkdir(exist_ok=True)
                Image.fromarray(shape.pixels).save(file)
                name = file.relative_to(folder).as_posix()
                regions.write(json.dumps({"picture": name, "region": shape.region}) + "\n")
        begin += count


def write_clips(folder: Path, counts: dict[str, int], seed: int = 0, **how: int) -> None:
    """A folder of PNG frames for each clip, ``folder/PART/CLASS/CLIP/00.png``, and a table ``PART.jsonl`` beside as
    ``qkv train`` takes it: path, label, and which frames hold the event. Arguments as for `write_shapes`."""
    begin = 0
    for part, count in counts.items():
        (folder / part).mkdir(parents=True)
        with open(folder / f"{part}.jsonl", "w", encoding="utf-8") as table:
            for i, clip in enumerate(islice(clips(seed, skip=begin, **how), count)):
                where = folder / part / EVENTS[clip.label] / f"{i:05}"
                where.mkdir(parents=True)
                for j, frame in enumerate(clip.frames):
                    Image.fromarray(frame).save(where / f"{j:02}.png")
                name = where.relative_to(folder).as_posix()
                row = {"path": name, "label": EVENTS[clip.label], "frames": clip.events.astype(int).tolist()}
                table.write(json.dumps(row) + "\n")
        begin += count


def _check(size: int, patch: int, classes: int) -> None:
    if patch < 6 or size % patch:
        raise ConfigError(
            f"patches of {patch} pixels in a picture of {size}", expected="6 or more that tile the picture"
        )
    if not 2 <= classes <= len(MARKS):
        raise ConfigError(f"{classes} classes", expected=f"from 2 to {len(MARKS)}")


def _scene(size: int, patch: int, chance: np.random.Generator) -> UInt8[np.ndarray, "row column 3"]:
    """What all classes share: a slope of two colours, some blobs, noise."""
    ends = chance.uniform(60, 160, (2, 3))
    slope = np.linspace(0, 1, size)[:, None, None]
    scene = np.broadcast_to(ends[0] * (1 - slope) + ends[1] * slope, (size, size, 3)).copy()
    rows, columns = np.mgrid[:size, :size]
    for _ in range(size // patch):
        middle, radius = chance.uniform(0, size, 2), chance.uniform(patch / 4, patch)
        far = np.hypot(rows - middle[0], columns - middle[1])
        # Soft edges: no blob has the hard edges of a mark.
        weight = 0.7 / (1 + np.exp((far - radius) / (patch / 8)))
        scene += weight[:, :, None] * (chance.uniform(40, 180, 3) - scene)
    scene += chance.normal(0, 8, scene.shape)
    return np.clip(scene, 0, 255).astype(np.uint8)


def _put(pixels: np.ndarray, mark: str, left: int, top: int, patch: int, chance: np.random.Generator) -> None:
    """Draw a mark into a patch, bright on dark, in a colour that says nothing of the class."""
    bright, dark = chance.uniform(200, 255, 3), chance.uniform(0, 40, 3)
    shape = _mark(mark, patch)[:, :, None]
    pixels[top : top + patch, left : left + patch] = np.where(shape, bright, dark).astype(np.uint8)


def _mark(mark: str, patch: int) -> Bool[np.ndarray, "row column"]:
    rows, columns = np.mgrid[:patch, :patch]
    middle, thick = (patch - 1) / 2, max(1, patch // 6)
    across, down = columns - middle, rows - middle
    cell = patch // 4 or 1
    return {
        "checks": (rows // cell + columns // cell) % 2 == 0,
        "cross": (abs(across) <= thick) | (abs(down) <= thick),
        "disc": np.hypot(across, down) <= patch * 0.4,
        "frame": np.maximum(abs(across), abs(down)) > middle - thick,
        "slash": abs(across - down) <= thick,
        "stripes": rows // cell % 2 == 0,
    }[mark]
