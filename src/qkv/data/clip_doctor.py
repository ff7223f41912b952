"""The clip doctor: decodes every frame of every clip once, says what is wrong by name, and which clips may stay."""

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkv.data.classes import judge
from qkv.data.clip_files import ClipFiles
from qkv.data.clip_listing import ClipExample, list_clips
from qkv.data.clip_sources import why
from qkv.data.frame_labels import BACKGROUND, frame_labels
from qkv.data.image_doctor import LOOK as PICTURE
from qkv.data.image_repeats import compare
from qkv.data.notes import DROPPED, KEPT
from qkv.data.pictures import PictureError
from qkv.data.report import Report
from qkv.errors import DataError

__all__ = ["LOOK", "Examined", "examine_all"]

LOOK = np.dtype([*PICTURE.descr, ("frames", "<i4")])  # as of a picture, over all frames; and how many there are
EMPTY, SINGLE, MISFIT = "clips without a frame", "clips of one frame", "clips whose frame labels do not fit"
UNEVEN, ODD = "clips whose frames differ in size", "clips of another size than most"


@dataclass(frozen=True)
class Examined:
    """The clips of a part: as listed, what was seen of each (`LOOK`), and the class of each frame where it is told."""

    examples: list[ClipExample]
    look: np.ndarray
    marks: list[tuple[str, ...] | None]


class _Seen(NamedTuple):
    look: tuple
    sizes: tuple[tuple[int, int], ...] = ()
    times: tuple[float, ...] = ()
    wrong: PictureError | None = None


def examine_all(data: ClipFiles, scratch: Path, every: bool = False) -> tuple[Report, dict[str, Examined]]:
    """The report, and what was seen of each part.

    Args:
        scratch: where a packed tar is unpacked.
        every: name every clip in the report, not only the first few of each kind.
    """
    report = Report(unit="clips", every=every)
    parts = {part: _examine(part, some, report) for part, some in list_clips(data, scratch, report).items()}
    looks = {part: seen.look for part, seen in parts.items()}
    examples = {part: seen.examples for part, seen in parts.items()}
    compare(examples, looks, report, data.keep_duplicates)
    for part, look in looks.items():
        report.kept[part] = int(np.count_nonzero(look["state"] == KEPT))
    judge({part: _kept(examples[part], look) for part, look in looks.items()}, data.labels, report)
    _judge_marks(parts, report)
    for part in parts:
        if not report.kept[part]:
            reasons = "; ".join(str(finding) for finding in report.findings if finding.part == part)
            wrong = f"no clip of {part} is left" + (f" ({reasons})" if reasons else "")
            report.refused.append(DataError(wrong, remedy="mend them", file=report.files[part][0]))
    return report, parts


def _kept(examples: list[ClipExample], look: np.ndarray) -> list:
    return [examples[i].label for i in np.flatnonzero(look["state"] != DROPPED)]


def _examine(part: str, examples: list[ClipExample], report: Report) -> Examined:
    look, labelled, marks = np.zeros(len(examples), LOOK), [], []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        every = list(pool.map(_look, examples))
    usual = Counter(size for seen in every for size in set(seen.sizes)).most_common(1)
    for i, (example, seen) in enumerate(zip(examples, every, strict=True)):
        look[i], own = seen.look, None
        if seen.wrong:
            told = why(seen.wrong, example.clip.path)
            report.add(part, seen.wrong.kind.replace("pictures", "clips"), "dropped", f"{example.where}: {told}")
        elif not seen.times:
            report.add(part, EMPTY, "dropped", example.where)
        else:
            _note_sizes(part, example, seen, usual[0][0], report)
            if example.marks is not None:
                try:
                    own = frame_labels(example.marks, seen.times)
                except ValueError as error:
                    report.add(part, MISFIT, "dropped", f"{example.where}: {error}")
                    look["state"][i] = DROPPED
        label = example.label
        if label is None:  # no column says the class of the whole clip: it is what most marked frames are
            label = next((name for name, _ in Counter(own or ()).most_common() if name != BACKGROUND), BACKGROUND)
        labelled.append(replace(example, label=label))
        marks.append(own)
    return Examined(labelled, look, marks)


def _note_sizes(part: str, example: ClipExample, seen: _Seen, usual: tuple[int, int], report: Report) -> None:
    """What may be meant but seldom is."""
    if len(seen.times) == 1:
        report.add(part, SINGLE, "noted", example.where)
    sizes = " and ".join(f"{width} x {height}" for height, width in seen.sizes)
    if len(seen.sizes) > 1:
        report.add(part, UNEVEN, "noted", f"{example.where}: {sizes}")
    elif seen.sizes[0] != usual:
        report.add(part, ODD, "noted", f"{example.where}: {sizes}, most are {usual[1]} x {usual[0]}")


def _look(example: ClipExample) -> _Seen:
    """Every frame decoded once, one in memory at a time."""
    digest, sizes, count = hashlib.blake2b(digest_size=8), {}, 0
    mean, square = np.zeros(3), np.zeros(3)
    try:
        times = tuple(example.clip.times)
        for pixels in example.clip.frames(range(len(times))):
            sizes[pixels.shape[:2]] = None
            digest.update(repr(pixels.shape).encode())
            digest.update(pixels)
            values = pixels.reshape(-1, 3).astype(np.float32) / 255
            mean += values.mean(0)
            square += np.square(values).mean(0)
            count += 1
    except PictureError as error:
        return _Seen((0, 0, 0, 0.0, 0.0, DROPPED, 0), wrong=error)
    if not count:
        return _Seen((0, 0, 0, 0.0, 0.0, DROPPED, 0))
    content = int.from_bytes(digest.digest(), "little")
    first = next(iter(sizes))
    return _Seen((content, *first, mean / count, square / count, KEPT, count), tuple(sizes), times)


def _judge_marks(parts: dict[str, Examined], report: Report) -> None:
    """What the labels of frames are like; classes of frames that only a held-out part has are refused by name."""
    counts = {part: _marks_of(seen) for part, seen in parts.items()}
    for part, found in counts.items():
        if found:
            shares = ", ".join(f"{name} ({n:,})" for name, n in sorted(found.items()))
            report.remarks.append(f"{part}: classes of frames: {shares}")
    known = counts.get("train")
    for part, found in counts.items():
        if known and (missing := sorted(set(found) - set(known))):
            report.refused.append(
                DataError(
                    f"frames of {part} have the class {missing[0]!r}, which those of train have not",
                    expected=", ".join(sorted(known)),
                    file=report.files[part][0],
                )
            )


def _marks_of(seen: Examined) -> Counter[str]:
    rows: Sequence[int] = np.flatnonzero(seen.look["state"] != DROPPED)
    return Counter(name for i in rows for name in seen.marks[i] or ())
