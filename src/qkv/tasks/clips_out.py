"""Which clips are meant, and their answers as lines for people or rows of a file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from qkv.data.clip_listing import clips_below
from qkv.errors import DataError
from qkv.store import json_text
from qkv.tasks.clip_classifier import ClipAnswer, ClipClassifier
from qkv.tasks.rows_out import Rows, as_csv, as_text, state_of, written

__all__ = ["TOP", "answer_into", "csv_row", "find", "json_row", "rows_of", "terminal_row"]

TOP = 3  # on the terminal


def find(paths: Sequence[str]) -> list[str]:
    """The clips that are named, and all in the folders that are named; a folder that holds frames is a clip itself.

    One that holds nothing is named too, and its row says so.

    Raises:
        DataError: nothing is there.
    """
    below = {path: clips_below(path) if path.is_dir() else [path] for path in map(Path, paths)}
    if not any(below.values()):
        raise DataError(
            f"there is no clip in {', '.join(paths) or 'nothing'}", expected="folders of frames, GIFs or videos"
        )
    return list(dict.fromkeys(str(clip) for path, clips in below.items() for clip in clips or [path]))


def terminal_row(answer: ClipAnswer, top: int, width: int = 0) -> str:
    """A line for people: the clip, its likeliest classes and its marked stretches."""
    if answer.mark or not answer.probabilities:
        return f"{answer.clip:{width}}  {answer}"
    said = "  ".join(f"{name} {chance:.3f}" for name, chance in list(answer.probabilities.items())[:top])
    spans = ", ".join(f"{name} at {begin:g} to {end:g} s" for begin, end, name in answer.spans)
    still = "  (one frame)" if len(answer.times) == 1 else ""  # a picture, or a folder with one, was taken for a clip
    return f"{answer.clip:{width}}  {said}" + (f"  ({spans})" if spans else "") + still


def json_row(answer: ClipAnswer, top: int | None = None) -> str:
    """A line of JSON: all that is known of an answer, or why there is none."""
    row = answer.to_json() | {"clip": as_text(answer.clip)}
    if row.pop("mark", ""):
        row["error"] = as_text(answer.mark)
    if answer.probabilities:
        row["probabilities"] = dict(list(answer.probabilities.items())[:top])
    return json_text(row)


def csv_row(answer: ClipAnswer, classes: Sequence[str]) -> str:
    """A line of CSV: clip, why there is no answer, the answer, the chance of each class, marked stretches."""
    label = "" if answer.label is None else answer.label
    chances = [f"{answer.probabilities[name]:.6f}" if answer.probabilities else "" for name in classes]
    spans = " ".join(f"{name}:{begin:g}-{end:g}s" for begin, end, name in answer.spans)
    return as_text(as_csv([as_text(answer.clip), as_text(answer.mark), label, *chances, spans]))


def rows_of(classifier: ClipClassifier, path: Path, top: int | None = None) -> Rows:
    """The file of a model's answers, new or gone on with."""
    head = as_text(as_csv(["clip", "error", "label", *(f"p({n})" for n in classifier.codec.images.classes), "marked"]))
    belongs = f"{state_of(classifier.model, classifier.codec)} {top or 0}"
    return Rows(path, belongs, "clip", head if path.suffix == ".csv" else "")


def answer_into(
    classifier: ClipClassifier, clips: Sequence[str], rows: Rows, top: int | None = None, batch: int = 8
) -> Iterator[ClipAnswer]:
    """Answer clips, each batch at once into the file, and at the end make the file whole."""
    classes = classifier.codec.images.classes
    row = (lambda one: csv_row(one, classes)) if rows.path.suffix == ".csv" else (lambda one: json_row(one, top))
    return written(classifier.answers(clips, batch), rows, row, batch)
