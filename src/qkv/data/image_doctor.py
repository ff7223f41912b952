"""The picture doctor: decodes every picture once, says what is wrong with it by name, and which ones may stay."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from qkv.data.classes import judge
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import Example, list_examples
from qkv.data.image_repeats import compare
from qkv.data.lines import windows
from qkv.data.notes import DROPPED, KEPT
from qkv.data.pictures import PictureError, decode
from qkv.data.report import Report
from qkv.errors import DataError

__all__ = ["LOOK", "MENDED", "examine", "examine_all"]

# What is remembered of every picture: 48 bytes.
LOOK = np.dtype(
    [
        ("content", "<u8"),  # hash of its pixels: two files of the same picture share it, whatever their format
        ("height", "<i4"),
        ("width", "<i4"),
        ("mean", "<f4", 3),  # of red, green and blue, from 0 to 1
        ("square", "<f4", 3),  # mean of their squares
        ("state", "u1"),
    ]
)
MENDED = {
    "turned": "pictures turned by EXIF",
    "16-bit": "16-bit pictures",
    "palette": "palette pictures",
    "transparent": "transparent pictures, laid on white",
    "CMYK": "CMYK pictures",
    "grey": "grey pictures",
    "animated": "animated or paged pictures, first frame taken",
}
SMALL = 1 << 20  # pixels: a picture of more is not handed on, since many are in work at once

Keep = Callable[[UInt8[np.ndarray, "row column 3"] | None], None]


class _Seen(NamedTuple):
    look: tuple
    mended: tuple[str, ...] = ()
    wrong: PictureError | None = None
    pixels: UInt8[np.ndarray, "row column 3"] | None = None


def examine_all(
    data: ImageFiles, scratch: Path, keep: Callable[[str], Keep] | None = None, every: bool = False
) -> tuple[Report, dict[str, list[Example]], dict[str, np.ndarray]]:
    """The report, all pictures listed, and what was seen of each (`LOOK`), by part.

    Args:
        keep: given the name of a part, a function that takes the pixels of each of its pictures in order, or None for
            one that cannot be used or is large.
        every: name every file in the report, not only the first few of each kind.
    """
    report = Report(unit="pictures", every=every)
    examples = list_examples(data, scratch, report)
    looks = {}
    for part, some in examples.items():
        looks[part] = examine(part, some, report, keep(part) if keep else None)
    compare(examples, looks, report, data.keep_duplicates)
    for part, look in looks.items():
        report.kept[part] = int(np.count_nonzero(look["state"] == KEPT))
    labels = {part: kept_labels(some, looks[part]) for part, some in examples.items()}
    judge(labels, data.labels, report)
    for part in examples:
        if not report.kept[part]:
            reasons = "; ".join(str(finding) for finding in report.findings if finding.part == part)
            wrong = f"no picture of {part} is left" + (f" ({reasons})" if reasons else "")
            report.refused.append(DataError(wrong, remedy="mend them", file=report.files[part][0]))
    return report, examples, looks


def kept_labels(examples: list[Example], look: np.ndarray) -> list:
    """The labels of the pictures that stay."""
    return [examples[i].label for i in np.flatnonzero(look["state"] != DROPPED)]


def examine(part: str, examples: list[Example], report: Report, keep: Keep | None = None) -> np.ndarray:
    """`LOOK` of each picture of a part; faults are counted, and what cannot be decoded is dropped."""
    looks = np.zeros(len(examples), LOOK)
    for i, (example, seen) in enumerate(zip(examples, _decoded(examples, keep is not None), strict=True)):
        looks[i] = seen.look
        if seen.wrong:
            told = str(seen.wrong).removeprefix(f"{seen.wrong.file}: ")
            report.add(part, seen.wrong.kind, "dropped", f"{example.where}: {told}")
        for fault in seen.mended:
            report.add(part, MENDED[fault], "mended", example.where)
        if keep:
            keep(seen.pixels)
    return looks


def _decoded(examples: Iterable[Example], with_pixels: bool) -> Iterator[_Seen]:
    """Each picture looked at once, in order, some at a time: pillow decodes beside other threads."""
    workers = min(8, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        yield from chain.from_iterable(
            pool.map(lambda example: _look(example, with_pixels), some) for some in windows(examples, 16 * workers)
        )


def _look(example: Example, with_pixels: bool) -> _Seen:
    try:
        pixels, mended = decode(example.read(), example.where)
    except PictureError as error:
        return _Seen((0, 0, 0, 0.0, 0.0, DROPPED), wrong=error)
    height, width = pixels.shape[:2]
    digest = hashlib.blake2b(f"{height} {width} ".encode(), digest_size=8)
    digest.update(pixels)
    shares, values = _histogram(pixels) / (height * width), np.arange(256) / 255
    mean, square = shares @ values, shares @ values**2
    look = (int.from_bytes(digest.digest(), "little"), height, width, mean, square, KEPT)
    return _Seen(look, mended, pixels=pixels if with_pixels and height * width <= SMALL else None)


def _histogram(pixels: UInt8[np.ndarray, "row column 3"]) -> Int[np.ndarray, "3 256"]:
    """How often each value occurs; some rows at a time, since numpy counts in eight bytes a value."""
    counts, rows = np.zeros((3, 256), np.int64), max(1, SMALL // pixels.shape[1])
    for begin in range(0, len(pixels), rows):
        for channel in range(3):
            counts[channel] += np.bincount(pixels[begin : begin + rows, :, channel].ravel(), minlength=256)
    return counts
