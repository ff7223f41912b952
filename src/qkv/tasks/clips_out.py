"""Which clips are meant, and their answers as lines for people or rows of a file."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from qkv.data.clip_listing import clips_below
from qkv.errors import ConfigError, DataError
from qkv.store import new_file
from qkv.tasks.clip_classifier import ClipAnswer, ClipClassifier

__all__ = ["answer_clips", "find_clips", "rows"]


def find_clips(paths: Iterable[str]) -> list[Path]:
    """The clips that are named, and all in the folders that are named; a folder that holds frames is a clip itself.

    Raises:
        DataError: nothing is there.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        found |= dict.fromkeys(clips_below(path) if path.is_dir() else [path])
    if not found:
        raise DataError(
            f"there is no clip in {', '.join(paths) or 'nothing'}", expected="folders of frames, GIFs or videos"
        )
    return list(found)


def answer_clips(
    classifier: ClipClassifier, paths: list[str], top: int = 3, out: Path | None = None, batch: int = 8
) -> None:
    """Answer all clips that are named, each on a line, or into a ``.csv`` or ``.jsonl`` that is whole at the end.

    Raises:
        ConfigError: ``top`` or ``batch`` is less than 1, or ``out`` cannot be.
    """
    for name, value in (("top", top), ("batch", batch)):
        if value < 1:
            raise ConfigError(f"--{name} is {value}", expected="a whole number from 1")
    if out is not None and out.suffix not in (".csv", ".jsonl"):
        raise ConfigError(f"--out is {out}", expected="a name that ends in .csv or .jsonl")
    clips = find_clips(paths)
    answers = classifier.answers(clips, batch)
    if out is None:
        width = min(max(len(str(clip)) for clip in clips), 60)
        for answer in answers:
            print(_plain(f"{answer.clip:{width}}  {_line(answer, top)}"))
    else:
        with new_file(out) as file, open(file, "w", encoding="utf-8", newline="\n") as stream:
            for row in rows(answers, out.suffix, classifier.codec.images.classes):
                print(_plain(row), file=stream)
    unread = classifier.counts["unreadable"]
    print(
        f"qkv: {classifier.counts['clips']:,} clips" + (f"; {unread:,} could not be read" if unread else ""),
        file=sys.stderr,
    )


def rows(answers: Iterable[ClipAnswer], suffix: str, classes: tuple[str, ...]) -> Iterator[str]:
    """Lines of JSON, or of CSV with a column for each class: clip, why there is no answer, the answer, marked spans."""
    if suffix == ".jsonl":
        yield from (json.dumps(answer.to_json(), ensure_ascii=False) for answer in answers)
        return
    yield _csv(["clip", "error", "label", *(f"p({name})" for name in classes), "marked"])
    for answer in answers:
        label = "" if answer.label is None else answer.label
        chances = [f"{answer.probabilities[name]:.6f}" if answer.probabilities else "" for name in classes]
        spans = " ".join(f"{name}:{begin:g}-{end:g}s" for begin, end, name in answer.spans)
        yield _csv([answer.clip, answer.mark, label, *chances, spans])


def _line(answer: ClipAnswer, top: int) -> str:
    if answer.mark or not answer.probabilities:
        return str(answer)
    said = "  ".join(f"{name} {chance:.3f}" for name, chance in list(answer.probabilities.items())[:top])
    spans = ", ".join(f"{name} at {begin:g} to {end:g} s" for begin, end, name in answer.spans)
    return said + (f"  ({spans})" if spans else "")


def _csv(values: list) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _plain(text: str) -> str:
    """A file's name may be no text, and may hold line ends: a row has one line."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\r", "\\r").replace("\n", "\\n")
