"""Answers to pictures or clips on the terminal or into a file, with a line on stderr that says how far it is."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from qkv.cli.verb import check_positive
from qkv.data.archives import ARCHIVES
from qkv.errors import ConfigError, DataError

if TYPE_CHECKING:
    from qkv.tasks.captioner import Caption
    from qkv.tasks.clip_classifier import ClipAnswer, ClipClassifier
    from qkv.tasks.picture_classifier import PictureAnswer, PictureClassifier
    from qkv.tasks.rows_out import Rows

    Answer = TypeVar("Answer", PictureAnswer, ClipAnswer, Caption)

__all__ = ["answer_all", "left_of", "named", "watched"]

SECONDS = 0.5  # between looks at a terminal; 20 times that where there is none


def answer_all(
    kind: Literal["pictures", "clips"],
    classifier: "PictureClassifier | ClipClassifier",
    paths: list[str],
    top: int | None,
    out: Path | None,
    batch: int,
    json: bool = False,
) -> bool:
    """Answer all that is named, each on a line, of JSON if so asked, or into ``out``; whether all could be read.

    Raises:
        ConfigError: ``top`` or ``batch`` is less than 1, or ``out`` cannot be.
        DataError: as of `named`.
    """
    ways = import_module(f"qkv.tasks.{kind}_out")
    check_positive(top=top, batch=batch)
    if json and out:
        raise ConfigError("--json is of what is printed", remedy=f"leave it out, or --out {out.with_suffix('.jsonl')}")
    names = ways.find(named(paths, kind))
    rows = ways.rows_of(classifier, out, top) if out else None
    if rows is None:
        width = min(max(map(len, names)), 60)
        # Lines on a terminal are their own progress.
        answers, broken = classifier.answers(names, batch), 0
        for answer in answers if sys.stdout.isatty() else watched(answers, len(names), kind):
            line = ways.json_row(answer, top) if json else ways.terminal_row(answer, top or ways.TOP, width)
            print(line.encode("utf-8", "backslashreplace").decode())
            broken += bool(answer.mark)
        return not broken
    left = left_of(rows, names)
    answers = ways.answer_into(classifier, left, rows, top, batch)
    return not sum(bool(answer.mark) for answer in watched(answers, len(left), kind))


def named(paths: Sequence[str], kind: str) -> list[str]:
    """What a command line names: for ``-`` the lines of standard input.

    Raises:
        DataError: standard input is no text, an archive is named, or, on the command line itself, a folder that is
            not there. A missing file is no mistake here: its row says so.
    """
    found = []
    for path in paths:
        if path == "-":
            found += [line for line in _lines_piped().split("\n") if line]
        elif not os.path.splitext(path)[1] and not os.path.exists(path):
            raise DataError("there is no such file or folder", file=path)
        else:
            found.append(path)
    for path in found:
        if path.lower().endswith(ARCHIVES):
            raise DataError("this is an archive", expected=f"{kind} or folders of them", remedy="unpack it", file=path)
    return found


def _lines_piped() -> str:
    names = os.fsdecode(sys.stdin.buffer.read())  # a name of a file need not be UTF-8
    if "\0" in names:
        raise DataError("standard input holds no lines of text", expected="names of files, one a line")
    return names


def left_of(rows: "Rows", names: list[str]) -> list[str]:
    """What is not in the file yet; how much is there is said."""
    left = rows.left(names)
    if len(left) < len(names):
        print(f"qkv: {len(names) - len(left):,} of {len(names):,} are done already", file=sys.stderr)
    return left


def watched(answers: "Iterable[Answer]", total: int, kind: str) -> "Iterator[Answer]":
    """The same, with a line on stderr now and then, and one at the end."""
    moving, begun = sys.stderr.isatty(), time.monotonic()
    shown, done, broken = begun, 0, 0
    for answer in answers:
        yield answer
        done, broken, now = done + 1, broken + bool(answer.mark), time.monotonic()
        if now - shown > (SECONDS if moving else 20 * SECONDS):
            left = (now - begun) / done * (total - done)
            _say(f"{done:,} of {total:,} {kind}, {left:,.0f} s left", "\r" if moving else "\n")
            shown = now
    rate = f", {done / max(time.monotonic() - begun, 1e-3):,.1f} a second" if done else ""
    _say(f"{done:,} {kind}{rate}" + (f"; {broken:,} could not be read" if broken else ""), "\n")


def _say(text: str, end: str) -> None:
    print(f"qkv: {text:60}".rstrip() if end == "\n" else f"qkv: {text:60}", end=end, file=sys.stderr, flush=True)
