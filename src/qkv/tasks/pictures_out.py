"""Answers to pictures as rows of a file that is gone on with after a kill."""

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from qkv.errors import ConfigError
from qkv.store import free_disk_told, new_file
from qkv.tasks.picture_classifier import PictureAnswer, PictureClassifier

__all__ = ["Rows", "answer_into", "csv_row", "json_row", "rows_of", "terminal_row"]

FORMATS = (".csv", ".jsonl")


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
    row: dict = {"picture": _plain(answer.name)}
    if answer.mark:
        row["error"] = answer.mark
    elif answer.number is not None:
        row["number"] = answer.number
    else:
        row["labels" if answer.several else "label"] = list(answer.labels) if answer.several else answer.label
        row["probabilities"] = {name: round(chance, 6) for name, chance in answer.top(top or len(answer.classes))}
    return json.dumps(row, ensure_ascii=False)


def csv_row(answer: PictureAnswer) -> str:
    """A line of CSV: picture, why there is no answer, and the answer."""
    name, mark = _plain(answer.name), _plain(answer.mark)
    if answer.number is not None:
        return _csv([name, mark, f"{answer.number:.9g}"])
    chances = [] if answer.probabilities is None else [f"{chance:.6f}" for chance in answer.probabilities]
    return _csv([name, mark, _plain(answer.label), *chances])


def csv_head(classifier: PictureClassifier) -> str:
    """The line above all: with classes, a column of probabilities for each."""
    if classifier.codec.labels == "number":
        return _csv(["picture", "error", "number"])
    return _csv(["picture", "error", "label", *(f"p({_plain(name)})" for name in classifier.codec.classes)])


class Rows:
    """A file of rows that becomes whole in one step, and is gone on with if the process before was killed.

    Until then it lies beside its place with ``.partial`` after its name, its first line saying what it belongs to; what
    it holds of whole lines is done already.

    Args:
        belongs: what decides the rows: a partial file of something else is refused.

    Raises:
        ConfigError: the file is there already, or a partial one that belongs to something else.
    """

    def __init__(self, path: Path, belongs: str, head: str = ""):
        if path.suffix not in FORMATS:
            raise ConfigError(f"--out is {path}", expected="a name that ends in " + " or ".join(FORMATS))
        if path.exists():
            raise ConfigError("it is there already", file=path, remedy="remove it, or name another --out")
        self.path, self.partial = path, path.with_name(path.name + ".partial")
        first = json.dumps({"belongs": belongs}) + "\n"
        self.done: set[str] = set()
        start = (first + (head + "\n" if head else "")).encode()
        self.skip = len(first.encode())
        if not (self.partial.exists() and self._go_on(start)):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.partial.unlink(missing_ok=True)
            self._write(start.decode())

    def _go_on(self, start: bytes) -> bool:
        """Know what is done, and cut off the line that a kill cut short; false if that was the very first."""
        whole = self.partial.read_bytes()
        if start.startswith(whole):
            return False
        if not whole.startswith(start):
            raise ConfigError(
                "it was begun by another run or with other options",
                file=self.partial,
                remedy="give the same command again, or remove it to begin anew",
            )
        whole = whole[: whole.rindex(b"\n") + 1]
        lines = whole[len(start) :].decode().split("\n")[:-1]
        names = _names_in_json if self.path.suffix == ".jsonl" else _names_in_csv
        self.done = set(names(lines))
        with open(self.partial, "r+b") as file:
            file.truncate(len(whole))
        return True

    def left(self, pictures: Sequence[str]) -> list[str]:
        """The pictures that are not done yet."""
        return [picture for picture in pictures if _plain(picture) not in self.done]

    def add(self, rows: Sequence[str]) -> None:
        """Some more rows, at once in the file."""
        self._write("".join(row + "\n" for row in rows))

    def finish(self) -> None:
        """All is done: the rows without the first line become the file."""
        with (
            new_file(self.path, self.partial.stat().st_size) as final,
            open(self.partial, "rb") as rows,
            open(final, "wb") as file,
        ):
            rows.seek(self.skip)
            shutil.copyfileobj(rows, file)
        self.partial.unlink()

    def _write(self, text: str) -> None:
        with free_disk_told(self.partial, len(text)), open(self.partial, "ab") as file:
            file.write(text.encode())


def rows_of(classifier: PictureClassifier, path: Path, top: int | None = None) -> Rows:
    """The file of a model's answers, new or gone on with."""
    digest = hashlib.blake2b(classifier.codec.fingerprint().encode(), digest_size=16)
    for tensor in classifier.model.state_dict().values():
        digest.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy())
    return Rows(path, f"{digest.hexdigest()} {top or 0}", csv_head(classifier) if path.suffix == ".csv" else "")


def answer_into(
    classifier: PictureClassifier, pictures: Sequence[str], rows: Rows, top: int | None = None, batch: int = 64
) -> Iterator[PictureAnswer]:
    """Answer pictures, each batch at once into the file, and at the end make the file whole."""
    write = csv_row if rows.path.suffix == ".csv" else lambda answer: json_row(answer, top)
    some: list[str] = []
    for answer in classifier.answers(pictures, batch):
        some.append(write(answer))
        if len(some) == batch:
            rows.add(some)
            some = []
        yield answer
    rows.add(some)
    rows.finish()


def _names_in_json(lines: Sequence[str]) -> Iterator[str]:
    return (json.loads(line)["picture"] for line in lines)


def _names_in_csv(lines: Sequence[str]) -> Iterator[str]:
    return (row[0] for row in csv.reader(lines))


def _csv(values: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _plain(text: str) -> str:
    """A file's name may be no text, and may hold line ends: a row has one line."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\r", "\\r").replace("\n", "\\n")
