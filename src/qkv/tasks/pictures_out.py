"""Which pictures are meant, and their answers as lines for people or rows of a file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from qkv.data.picture_paths import find_pictures
from qkv.store import json_text
from qkv.tasks.picture_classifier import PictureAnswer, PictureClassifier
from qkv.tasks.rows_out import Rows, as_csv, as_text, state_of, written

__all__ = ["TOP", "answer_into", "csv_row", "find", "json_row", "rows_of", "terminal_row"]

TOP = 5  # on the terminal


def terminal_row(answer: PictureAnswer, top: int, width: int = 0) -> str:
    """A line for people: the picture and its likeliest classes."""
    if answer.mark:
        return f"{answer.name:{width}}  ! {answer.mark.removeprefix(answer.name + ': ')}"
    if answer.number is not None:
        return f"{answer.name:{width}}  {answer.number:g}"
    said = "  ".join(f"{name} {chance:.3f}" for name, chance in answer.top(top))
    return f"{answer.name:{width}}  {said}"


def json_row(answer: PictureAnswer, top: int | None = None) -> str:
    """A line of JSON: picture, label or number, probabilities, and why there is none."""
    row: dict = {"picture": as_text(answer.name)}
    if answer.mark:
        row["error"] = as_text(answer.mark)
    elif answer.number is not None:
        row["number"] = answer.number
    else:
        row["labels" if answer.several else "label"] = list(answer.labels) if answer.several else answer.label
        row["probabilities"] = {name: round(chance, 6) for name, chance in answer.top(top or len(answer.classes))}
    return json_text(row)


def csv_row(answer: PictureAnswer) -> str:
    """A line of CSV: picture, why there is no answer, and the answer."""
    name, mark = as_text(answer.name), as_text(answer.mark)
    if answer.number is not None:
        return as_csv([name, mark, f"{answer.number:.9g}"])
    chances = [] if answer.probabilities is None else [f"{chance:.6f}" for chance in answer.probabilities]
    return as_csv([name, mark, as_text(answer.label), *chances])


def csv_head(classifier: PictureClassifier) -> str:
    """The line above all: with classes, a column of probabilities for each."""
    if classifier.codec.labels == "number":
        return as_csv(["picture", "error", "number"])
    return as_csv(["picture", "error", "label", *(f"p({as_text(name)})" for name in classifier.codec.classes)])


def find(paths: Sequence[str]) -> list[str]:
    """The pictures that are meant; see `find_pictures`."""
    return find_pictures(paths)


def rows_of(classifier: PictureClassifier, path: Path, top: int | None = None) -> Rows:
    """The file of a model's answers, new or gone on with."""
    belongs = f"{state_of(classifier.model, classifier.codec)} {top or 0}"
    return Rows(path, belongs, "picture", csv_head(classifier) if path.suffix == ".csv" else "")


def answer_into(
    classifier: PictureClassifier, pictures: Sequence[str], rows: Rows, top: int | None = None, batch: int = 64
) -> Iterator[PictureAnswer]:
    """Answer pictures, each batch at once into the file, and at the end make the file whole."""
    row = csv_row if rows.path.suffix == ".csv" else lambda answer: json_row(answer, top)
    return written(classifier.answers(pictures, batch), rows, row, batch)
