"""The figure of Show, Attend and Tell: a picture again and again, each time with the heat of one word over it.

A sheet (``.png``), an animation (``.gif``, ``.webp``), or the numbers (``.npz``).
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image

from qkv.axis import Grid
from qkv.errors import ConfigError
from qkv.look.draw import FAINT, INK, _style
from qkv.look.record import Trace
from qkv.look.told import Word, picture_note, picture_of, told_words
from qkv.store import new_file

__all__ = ["heat_over", "pixel_heat", "save_look", "sheet"]

SUFFIXES = (".html", ".png", ".gif", ".webp", ".npz", ".safetensors", ".json")
MILLISECONDS = 900  # a word of an animation
SIDE = 336  # pixels of the longer side of a frame


def save_look(seen: Trace, path: str | Path, *, smooth: bool = True, layer: str | None = None) -> None:
    """Write a look at a picture by what the suffix says: the page, a sheet, an animation, numbers, or the record.

    Args:
        smooth: heat flows from cell to cell; else each cell is a square of one heat (sheet and animation).
        layer: whose map is drawn; the last that looks at the picture, if not given.
    """
    path = Path(path)
    match path.suffix:
        case ".html":
            from qkv.look.told_page import write_page

            write_page([seen], path)
        case ".png":
            with new_file(path) as partial:
                partial.write_bytes(sheet(seen, smooth=smooth, layer=layer))
        case ".gif" | ".webp":
            first, *rest = _frames(seen, smooth, layer)
            kind = path.suffix[1:].upper()
            file = io.BytesIO()
            first.save(file, kind, save_all=True, append_images=rest, duration=MILLISECONDS, loop=0)
            with new_file(path) as partial:
                partial.write_bytes(file.getvalue())
        case ".npz":
            _save_numbers(seen, path, layer)
        case ".safetensors" | ".json":
            seen.save(path)
        case other:
            raise ConfigError(
                f"a look at a picture cannot be written as {other!r}" if other else "the name has no suffix",
                expected=", ".join(SUFFIXES),
                file=path,
            )


def sheet(seen: Trace, *, smooth: bool = True, layer: str | None = None, across: int = 5) -> bytes:
    """The picture, and once for each word the picture under its heat, as a PNG."""
    from matplotlib.figure import Figure

    words, picture = told_words(seen, layer), picture_of(seen)
    grid = _grid(seen, layer)
    titles = ["", *(_title(word) for word in words)]
    shown = [np.asarray(picture), *(heat_over(picture, word.heat, grid, smooth) for word in words)]
    columns = min(across, len(shown))
    rows = -(-len(shown) // columns)
    tall = picture.height / picture.width
    with _style([word.text for word in words]):
        figure = Figure(figsize=(1.7 * columns, (1.7 * tall + 0.34) * rows), layout="constrained")
        for axes, pixels, title in zip(figure.subplots(rows, columns, squeeze=False).flat, shown, titles, strict=False):
            axes.imshow(pixels)
            axes.set_title(title, fontsize=8.5, color=INK, pad=3).set_parse_math(False)
        for axes in figure.axes:
            axes.set_axis_off()
        beta = "β: how much of what was seen the gate let through" if words[0].beta is not None else ""
        if beta:
            figure.text(0.995, 0.002, beta, fontsize=6, color=FAINT, ha="right")
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=130, facecolor="white")
    return file.getvalue()


def heat_over(
    picture: Image.Image, heat: Float[np.ndarray, "row column"], grid: Grid, smooth: bool = True
) -> np.ndarray:
    """A picture that is bright where the heat is, on the scale of this heat's own largest cell, and dark elsewhere."""
    warm = pixel_heat(heat, grid, (picture.height, picture.width), smooth)
    warm = warm / max(float(warm.max()), 1e-12)
    pixels = np.asarray(picture, np.float32)
    return np.clip(pixels * (0.25 + 0.75 * warm[:, :, None]), 0, 255).astype(np.uint8)


def pixel_heat(
    heat: Float[np.ndarray, "row column"], grid: Grid, size: tuple[int, int], smooth: bool
) -> Float[np.ndarray, "height width"]:
    """The heat of each pixel of a picture of that height and width; cells lie where `Grid.box` has them."""
    height, width = size
    down, across = height / grid.image[0], width / grid.image[1]
    left, top, right, bottom = grid.box(0)
    tall, wide = (bottom - top) * down, (right - left) * across
    # At the right and the bottom a cell may only begin inside: the picture is cut out of what all cells cover.
    rows, columns = (np.arange(height) + 0.5) / tall - 0.5, (np.arange(width) + 0.5) / wide - 0.5
    if not smooth:
        return heat[_nearest(rows, grid.rows)][:, _nearest(columns, grid.columns)]
    return _between(_between(heat, rows).T, columns).T


def _nearest(places: np.ndarray, count: int) -> np.ndarray:
    return np.clip(np.floor(places + 0.5).astype(int), 0, count - 1)


def _between(heat: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Rows between rows, linearly; beyond the outer ones as they are."""
    places = np.clip(places, 0, len(heat) - 1)
    low = np.minimum(places.astype(int), max(len(heat) - 2, 0))
    share = (places - low)[:, None]
    return heat[low] * (1 - share) + heat[np.minimum(low + 1, len(heat) - 1)] * share


def _frames(seen: Trace, smooth: bool, layer: str | None) -> list[Image.Image]:
    """A frame for each word, the caption under it, what was said so far being dark."""
    from matplotlib.figure import Figure

    picture, grid, words = picture_of(seen), _grid(seen, layer), told_words(seen, layer)
    wide = SIDE / 100
    tall, frames = wide * picture.height / picture.width, []
    texts = [word.text for word in words]
    for number, word in enumerate(words):
        with _style(texts):
            figure = Figure(figsize=(wide, tall + 0.45), dpi=100, facecolor="white")
            axes = figure.add_axes((0, 0.45 / (tall + 0.45), 1, tall / (tall + 0.45)))
            axes.imshow(heat_over(picture, word.heat, grid, smooth))
            axes.set_axis_off()
            said = " ".join(texts[: number + 1]).removesuffix("</s>").rstrip()
            size = min(12, 1.7 * 72 * wide / max(len(" ".join(texts)), 1) + 4)
            figure.text(0.02, 0.12 / (tall + 0.45), said, fontsize=size, color=INK).set_parse_math(False)
            file = io.BytesIO()
            figure.savefig(file, format="png")
            frames.append(Image.open(file).convert("RGB"))
    return frames


def _save_numbers(seen: Trace, path: Path, layer: str | None) -> None:
    """Heat word by word, the boxes of the cells in pixels of the picture's file, and what else is known of a word."""
    words: Sequence[Word] = told_words(seen, layer)
    grid, about = _grid(seen, layer), picture_note(seen.notes)
    left, top, right, bottom = about["region"]
    across, down = (right - left) / grid.image[1], (bottom - top) / grid.image[0]
    boxes = np.array([grid.box(cell) for cell in range(len(grid))])
    arrays = {
        "words": np.array([word.text for word in words]),
        "heat": np.stack([word.heat for word in words]),
        "chance": np.array([word.chance for word in words]),
        "beta": np.array([math.nan if word.beta is None else word.beta for word in words]),
        "boxes": boxes * [across, down, across, down] + [left, top, left, top],
    }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    with new_file(path) as partial:
        partial.write_bytes(file.getvalue())


def _grid(seen: Trace, layer: str | None) -> Grid:
    name = layer or [name for name, maps in seen.items() if maps and isinstance(maps[0].key, Grid)][-1]
    return seen[name][0].key


def _title(word: Word) -> str:
    return word.text if word.beta is None else f"{word.text}  β {word.beta:.2f}"
