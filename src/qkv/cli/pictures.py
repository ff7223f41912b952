"""Answers to pictures on the terminal or into a file, with a line on stderr that says how far it is."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.errors import ConfigError

if TYPE_CHECKING:
    from qkv.tasks.picture_classifier import PictureAnswer, PictureClassifier

__all__ = ["answer_all"]

TOP = 5
SECONDS = 0.5  # between looks at a terminal; 20 times that where there is none


def answer_all(
    classifier: "PictureClassifier", paths: list[str], top: int | None, out: Path | None, batch: int
) -> bool:
    """Answer all pictures that are named, each on a line, or into ``out``; whether all could be read.

    Raises:
        ConfigError: ``top`` or ``batch`` is less than 1, or ``out`` cannot be.
    """
    from qkv.data.picture_paths import find_pictures
    from qkv.tasks.pictures_out import answer_into, rows_of, terminal_row

    for name, value in (("top", top), ("batch", batch)):
        if value is not None and value < 1:
            raise ConfigError(f"--{name} is {value}", expected="a whole number from 1")
    rows = rows_of(classifier, out, top) if out else None
    pictures = find_pictures(paths)
    if rows is None:
        width = min(max(map(len, pictures)), 60)
        # Lines on a terminal are their own progress.
        answers, broken = classifier.answers(pictures, batch), 0
        for answer in answers if sys.stdout.isatty() else _watched(answers, len(pictures)):
            print(terminal_row(answer, top or TOP, width).encode("utf-8", "backslashreplace").decode())
            broken += bool(answer.mark)
        return not broken
    left = rows.left(pictures)
    if len(left) < len(pictures):
        print(f"qkv: {len(pictures) - len(left):,} of {len(pictures):,} are done already", file=sys.stderr)
    return not sum(bool(answer.mark) for answer in _watched(answer_into(classifier, left, rows, top, batch), len(left)))


def _watched(answers: "Iterable[PictureAnswer]", total: int) -> "Iterator[PictureAnswer]":
    """The same, with a line on stderr now and then, and one at the end."""
    moving, begun = sys.stderr.isatty(), time.monotonic()
    shown, done, broken = begun, 0, 0
    for answer in answers:
        yield answer
        done, broken, now = done + 1, broken + bool(answer.mark), time.monotonic()
        if now - shown > (SECONDS if moving else 20 * SECONDS):
            left = (now - begun) / done * (total - done)
            _say(f"{done:,} of {total:,} pictures, {left:,.0f} s left", "\r" if moving else "\n")
            shown = now
    rate = f", {done / max(time.monotonic() - begun, 1e-3):,.1f} a second" if done else ""
    _say(f"{done:,} pictures{rate}" + (f"; {broken:,} could not be read" if broken else ""), "\n")


def _say(text: str, end: str) -> None:
    print(f"qkv: {text:60}".rstrip() if end == "\n" else f"qkv: {text:60}", end=end, file=sys.stderr, flush=True)
