"""Rows of a table that names pictures and their labels: .csv, .tsv, .jsonl and .parquet, one at a time."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qkv.data.formats import TABLES
from qkv.data.lines import open_lines, raw_lines
from qkv.errors import DataError, nearest

__all__ = ["LABEL", "PART", "PATH", "Row", "choose", "column_names", "is_table", "read_rows"]

PATH = ("path", "file", "filename", "file_name", "filepath", "image", "image_path")
LABEL = ("label", "labels", "class", "category", "target")
PART = ("split", "part")


class Row(NamedTuple):
    """A row: its line (or number) from 1, and its fields, or ``broken``: why there are none."""

    line: int
    fields: dict[str, Any]
    broken: str = ""


def is_table(path: Path) -> bool:
    return path.is_file() and path.name.removesuffix(".gz").endswith(TABLES)


def choose(names: list[str], usual: tuple[str, ...], asked: str = "") -> str | None:
    """The column of a table: the one asked for, else the first usual name that it has (capitals do not matter)."""
    if asked:
        return asked if asked in names else None
    lower = {name.lower().strip(): name for name in reversed(names)}
    return next((lower[name] for name in usual if name in lower), None)


def column_names(path: Path) -> list[str]:
    """The columns of a table; none if its first line is no header.

    Raises:
        DataError: it cannot be read.
    """
    kind = _kind(path)
    try:
        if kind == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_schema(path).names
        with open_lines(path) as stream:
            text = (next(raw_lines(stream), None) or b"").decode("utf-8-sig", errors="replace").rstrip("\r")
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"the table cannot be read ({error})", remedy="copy or download it again", file=path) from error
    if kind != ".jsonl":
        return next(csv.reader([text], delimiter="\t" if kind == ".tsv" else ","), [])
    try:
        record = json.loads(text)
    except ValueError:
        return []
    return list(record) if isinstance(record, dict) else []


def read_rows(path: Path, needed: tuple[str, ...]) -> Iterator[Row]:
    """Every row of a table, good or not.

    Raises:
        DataError: it cannot be read, or has not the columns needed.
    """
    names = column_names(path)
    for name in needed:
        if name not in names:
            raise DataError(
                f"there is no column {name!r}",
                remedy=nearest(name, names) + " (--data.path, --data.label)",
                file=path,
                line=1,
            )
    try:
        yield from {".parquet": _parquet, ".jsonl": _jsonl}.get(_kind(path), _separated)(path)
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise DataError(f"the table cannot be read ({error})", remedy="copy or download it again", file=path) from error


def _kind(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _separated(path: Path) -> Iterator[Row]:
    # A path may hold bytes that are not UTF-8: they come through, and lead to the file.
    with (
        open_lines(path) as stream,
        io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="") as text,
    ):
        rows = csv.reader(text, delimiter="\t" if _kind(path) == ".tsv" else ",")
        names = next(rows)
        line = rows.line_num + 1
        for row in rows:
            if row and len(row) != len(names):
                yield Row(line, {}, f"{len(row)} columns where {len(names)} are expected")
            elif row:
                yield Row(line, dict(zip(names, row, strict=True)))
            line = rows.line_num + 1


def _jsonl(path: Path) -> Iterator[Row]:
    with open_lines(path) as stream:
        for number, raw in enumerate(raw_lines(stream), start=1):
            if raw is not None and not raw.strip():
                continue
            try:
                record = json.loads((raw or b"").removeprefix(b"\xef\xbb\xbf"))
            except (ValueError, RecursionError) as error:
                yield Row(number, {}, f"no JSON ({error})")
            else:
                yield Row(number, record) if isinstance(record, dict) else Row(number, {}, "no JSON object")


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        number = 0
        for batch in file.iter_batches(batch_size=4096):
            for record in batch.to_pylist():
                number += 1
                yield Row(number, record)
