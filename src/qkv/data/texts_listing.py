"""Labelled texts as they lie in the user's files: tables, class folders of .txt files, datasets.

Texts are cleaned as they are read; one that cannot be used is put into the report with its file and line, and left out.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qkv.data.class_folders import is_hidden, part_of
from qkv.data.classes import Label
from qkv.data.discover import find_parts
from qkv.data.formats import load_dataset
from qkv.data.formats import part_of as part_in
from qkv.data.image_listing import as_label
from qkv.data.image_tables import LABEL, PART, Row, choose, column_names, is_table
from qkv.data.image_tables import read_rows as read_records
from qkv.data.lines import decode_line, open_lines, raw_lines
from qkv.data.pairs import PARTS
from qkv.data.report import Report
from qkv.data.texts import TextFiles
from qkv.errors import ConfigError, DataError, nearest

__all__ = ["LABELS", "PAIR", "TEXT", "LabelledText", "has_class_folders", "list_texts", "names_texts", "read_fields"]

TEXT = ("text", "sentence", "document", "review", "content", "utterance", "sentence1", "text1", "premise", "question1")
PAIR = ("text2", "sentence2", "hypothesis", "question2", "text_pair")
LABELS = (*LABEL, "intent", "sentiment", "score", "rating", "value")
NO_LABEL, BROKEN = "texts without a usable label", "broken records"
UNUSABLE = {"blank": "empty texts", "undecodable": "texts that are not UTF-8", "over-long": "over-long lines"}


class LabelledText(NamedTuple):
    """One text, or two side by side, with its label; ``where`` is what messages say."""

    where: str
    texts: tuple[str, ...]
    label: Label


def list_texts(data: TextFiles, report: Report) -> dict[str, list[LabelledText]]:
    """The usable texts of train, dev and test, in the order of their files.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or a column is missing.
    """
    if not any((data.folder, data.train, data.dev, data.test)):
        raise ConfigError("no data is named", remedy="say --data FOLDER or --data FILE")
    found: dict[str, list[LabelledText]] = {}
    if data.folder:
        found = _place(data.folder, None, data, report)
    for part in PARTS:
        if where := getattr(data, part):
            report.read.pop(part, None)
            found[part] = _place(where, part, data, report).get(part, [])
    return {part: found[part] for part in PARTS if part in found}


def names_texts(table: Path, named: Mapping[str, str]) -> bool:
    """Whether a table has a column of texts, by a usual name or the user's, and another: of labels, or of what is said
    to be one."""
    names = column_names(table)
    text, label = choose(names, TEXT, named.get("text", "")), choose(names, LABELS, named.get("label", ""))
    return bool(text and (label or len(names) == 2))


def has_class_folders(folder: Path) -> bool:
    """Whether .txt files lie in folders of a folder, as classes do."""
    return any(not is_hidden(file.parent.name) for file in [*folder.glob("*/*.txt"), *folder.glob("*/*/*.txt")])


def _place(where: str, part: str | None, data: TextFiles, report: Report) -> dict[str, list[LabelledText]]:
    """The texts at one place; all are of ``part``, or the parts are found inside by their names."""
    path = Path(where).expanduser()
    if path.is_dir():
        tables = {name: Path(file) for name, file in find_parts(path).items() if is_table(Path(file))}
        if part is None and tables:
            return {name: _table(file, name, data, report)[name] for name, file in tables.items()}
        return _class_folders(path, part, data, report)
    if is_table(path):
        return _table(path, part, data, report)
    if path.exists() or path.suffix or where.startswith((".", "/", "~")) or where.count("/") > 1:
        what = "this is no folder and no table" if path.exists() else "there is no such file or folder"
        raise DataError(what, expected="a folder, a .tsv, .csv, .jsonl or .parquet file (.gz too)", file=path)
    return _dataset(where, part, data, report)


def _table(path: Path, part: str | None, data: TextFiles, report: Report) -> dict[str, list[LabelledText]]:
    names = column_names(path)
    numbered = data.text.isdecimal() and data.text not in names  # a table without a header
    columns = _columns([str(i + 1) for i in range(len(names))] if numbered else names, data, path)
    split = None if numbered or part else choose(names, PART)
    report.remarks.append(
        f"{part or 'all'}: texts are taken from {path}, column {' and '.join(columns[:-1])}, labels from {columns[-1]}"
    )
    listed = ((f"{path}:{row.line}", row) for row in read_fields(path, not numbered))
    return _examples(listed, columns, part or "train", split, str(path), data, report)


def _columns(names: list[str], data: TextFiles, where: Path | str) -> tuple[str, ...]:
    """The columns of the texts, one or two, and of the label."""
    wanted = [("text", TEXT, data.text), ("label", LABELS, data.label)]
    if data.pair not in ("", "none"):
        wanted.insert(1, ("pair", PAIR, data.pair))
    found = []
    for option, usual, asked in wanted:
        column = choose(names, usual, asked)
        if column is None:
            wrong = (
                f"there is no column {asked!r}" if asked else f"none of the columns {', '.join(names)} is a {option}"
            )
            remedy = nearest(asked, names) if asked else f"say which with --data.{option}"
            raise DataError(wrong, expected=f"a column such as {usual[0]}", remedy=remedy, file=where, line=1)
        found.append(column)
    if not data.pair and (second := choose(names, PAIR)) and second not in found:
        found.insert(1, second)
    return tuple(found)


def _examples(
    listed, columns: tuple[str, ...], part: str, split: str | None, file: str, data: TextFiles, report: Report
) -> dict[str, list[LabelledText]]:
    """The rows that can be used, by part; the others are told."""
    *of_texts, of_label = columns
    found: dict[str, list[LabelledText]] = {part: []}
    for where, row in listed:
        belongs = part
        if split and not row.broken and (belongs := part_of(_text(row.fields.get(split)))) is None:
            report.add(
                "train", BROKEN, "dropped", f"{where}: {split} is {row.fields.get(split)!r}, no part of the data"
            )
            continue
        report.read[belongs] = report.read.get(belongs, 0) + 1
        report.files[belongs] = [file]
        missing = next((name for name in of_texts if not isinstance(row.fields.get(name), (str, bytes))), None)
        if row.broken or missing:
            report.add(belongs, BROKEN, "dropped", f"{where}: {row.broken or f'{missing} is no text'}")
            continue
        lines = [decode_line(row.line, row.fields[name]) for name in of_texts]
        if unusable := next((line.unusable for line in lines if line.unusable), None):
            report.add(belongs, UNUSABLE[unusable], "dropped", where)
            continue
        raw = row.fields.get(of_label)
        label = as_label(raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw, data)
        if label is None:
            report.add(belongs, NO_LABEL, "dropped", f"{where}: {of_label} is {_text(raw)!r}")
            continue
        found.setdefault(belongs, []).append(LabelledText(where, tuple(line.text for line in lines), label))
    report.read.setdefault(part, 0)
    report.files.setdefault(part, [file])
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else "" if value is None else str(value)


def read_fields(path: Path, header: bool = True) -> Iterator[Row]:
    """Every row of a table, good or not; fields of .tsv and .csv are undecoded, columns without a header are "1" ...

    A .tsv has no quotes: a text may begin with one, and its line ends where it ends.
    """
    match path.name.removesuffix(".gz").rpartition(".")[2]:
        case "tsv":
            with open_lines(path) as stream:
                yield from _fields(((line, raw and raw.removesuffix(b"\r").split(b"\t"), "") for line, raw in
                                    enumerate(raw_lines(stream), 1)), header)  # fmt: skip
        case "csv":
            with open_lines(path) as stream:
                yield from _fields(_separated(stream), header)
        case _:
            yield from read_records(path, ())


def _fields(rows, header: bool) -> Iterator[Row]:
    names: list[str] = []
    for line, cells, broken in rows:
        if cells is None:
            yield Row(line, {}, broken or "the line is over-long")
        elif not names:
            cells[0] = cells[0].removeprefix(b"\xef\xbb\xbf")
            names = [cell.decode("utf-8", errors="replace").strip() for cell in cells]
            if not header:
                names = [str(i + 1) for i in range(len(cells))]
                yield Row(line, dict(zip(names, cells, strict=True)))
        elif len(cells) == len(names):
            yield Row(line, dict(zip(names, cells, strict=True)))
        elif b"".join(cells).strip():
            yield Row(line, {}, f"{len(cells)} columns where {len(names)} are expected")


def _separated(stream) -> Iterator[tuple[int, list[bytes] | None, str]]:
    # Bytes that are not UTF-8 come through as lone surrogates and are found when the field is decoded again.
    with io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="") as text:
        rows, line = csv.reader(text), 1
        while True:
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield line, None, str(error)
            else:
                yield line, [cell.encode("utf-8", errors="surrogateescape") for cell in cells] or [b""], ""
            line = rows.line_num + 1


def _class_folders(root: Path, part: str | None, data: TextFiles, report: Report) -> dict[str, list[LabelledText]]:
    """A folder is a class, or a part of the data with class folders in it; each .txt file below is a text."""
    parts = {folder: part_of(folder.name) for folder in _folders(root)} if part is None else {}
    if any(parts.values()):
        found = {}
        for folder, belongs in parts.items():
            if belongs:
                found |= _class_folders(folder, belongs, data, report)
        return found
    listed = []
    for folder in _folders(root):
        for file in sorted(folder.rglob("*.txt")):
            if not any(is_hidden(step) for step in file.relative_to(root).parts):
                listed.append((str(file), Row(1, {"text": _whole(file), "label": folder.name})))
    if not listed:
        raise DataError(
            "no labelled text was found",
            expected="tables named train, dev and test, or class folders with .txt files",
            file=root,
        )
    return _examples(listed, ("text", "label"), part or "train", None, str(root), data, report)


def _folders(root: Path) -> list[Path]:
    return sorted(folder for folder in root.iterdir() if folder.is_dir() and not is_hidden(folder.name))


def _whole(file: Path) -> bytes:
    """A file as one text: its line ends are blanks."""
    with open_lines(file) as stream:
        return stream.read().replace(b"\r\n", b"\n").replace(b"\n", b" ")


def _dataset(where: str, part: str | None, data: TextFiles, report: Report) -> dict[str, list[LabelledText]]:
    loaded = load_dataset(where, f"there is no file or folder {where}", "name a folder, a table or a dataset")
    found = {}
    for name in (part,) if part else PARTS:
        own = part_in(loaded, name)
        if own is None:
            if part or name == "train":
                raise DataError(f"the dataset {where!r} has no part {name!r}", expected="one of " + ", ".join(loaded))
            continue
        records, label = loaded[own], f"{where} ({own})"
        columns = _columns(list(records.column_names), data, label)
        named = getattr(records.features[columns[-1]], "int2str", None)
        listed = (
            (f"{label}:{i}", Row(i, {**record, columns[-1]: named(record[columns[-1]])} if named else record))
            for i, record in enumerate(records, 1)
        )
        found |= _examples(listed, columns, name, None, label, data, report)
    return found
