"""Answers as rows of a file that is gone on with after a kill."""

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from qkv.errors import ConfigError
from qkv.store import free_disk_told, new_file

__all__ = ["Rows", "as_csv", "as_text", "state_of", "written"]

FORMATS = {".csv": "csv", ".jsonl": "jsonl"}
Answer = TypeVar("Answer")


class Rows:
    """A file of rows that becomes whole in one step, and is gone on with if the process before was killed.

    Until then it lies beside its place with ``.partial`` after its name, its first line saying what it belongs to; what
    it holds of whole lines is done already.

    Args:
        belongs: what decides the rows: a partial file of something else is refused.
        key: what a row of JSON calls the name of what it answers; a row of CSV begins with it.
        head: the line above all.
        format: csv, jsonl or text (the name, a tab, and what is said of it); by the path's end if not given.
        several: a name may have several rows, one after the other: after a kill those of the last one are made again.

    Raises:
        ConfigError: the file is there already, or a partial one that belongs to something else.
    """

    def __init__(self, path: Path, belongs: str, key: str, head: str = "", format: str = "", several: bool = False):
        if not format and path.suffix not in FORMATS:
            raise ConfigError(f"--out is {path}", expected="a name that ends in " + " or ".join(FORMATS))
        if path.exists():
            raise ConfigError("it is there already", file=path, remedy="remove it, or name another file")
        self.path, self.partial, self.key = path, path.with_name(path.name + ".partial"), key
        self.format, self.several = format or FORMATS[path.suffix], several
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
        names = self._names(lines)
        if self.several and names:
            again = names[names.index(names[-1]) :]
            names = names[: -len(again)]
            whole = start + "".join(line + "\n" for line in lines[: len(names)]).encode()
        self.done = set(names)
        with open(self.partial, "r+b") as file:
            file.truncate(len(whole))
        return True

    def _names(self, lines: Sequence[str]) -> list[str]:
        if self.format == "jsonl":
            return [json.loads(line)[self.key] for line in lines]
        return [row[0] for row in csv.reader(lines)] if self.format == "csv" else [n.rpartition("\t")[0] for n in lines]

    def left(self, names: Sequence[str]) -> list[str]:
        """Those that are not done yet."""
        return [name for name in names if as_text(name) not in self.done]

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


def written(answers: Iterable[Answer], rows: Rows, row: Callable[[Answer], str], batch: int) -> Iterator[Answer]:
    """The same answers, each batch of them at once in the file, and at the end the file is whole."""
    some: list[str] = []
    for answer in answers:
        some.append(row(answer))
        if len(some) == batch:
            rows.add(some)
            some = []
        yield answer
    rows.add(some)
    rows.finish()


def state_of(model: nn.Module, codec: Any) -> str:
    """Equal for models that give the same answers: a hash of the weights and of how they are fed."""
    digest = hashlib.blake2b(codec.fingerprint().encode(), digest_size=16)
    for tensor in model.state_dict().values():
        digest.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def as_csv(values: Sequence) -> str:
    """A line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def as_text(name: str) -> str:
    """A file's name may be no text, and may hold line ends: a row has one line."""
    return name.encode("utf-8", "backslashreplace").decode().replace("\r", "\\r").replace("\n", "\\n")
