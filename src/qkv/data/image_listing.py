"""The user's labelled pictures, listed but not yet read, from wherever they lie.

An `Example` knows its label and how to get its bytes, be it a file of its own, a member of an archive or a record of a
dataset. What is wrong with names and rows is put into the report here; what is wrong with pictures is for
`qkv.data.image_doctor`.
"""

import hashlib
import math
import os
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qkv.data.archives import Reader, open_archive
from qkv.data.class_folders import arrange, is_hidden
from qkv.data.classes import Label
from qkv.data.image_files import ImageFiles
from qkv.data.image_tables import LABEL, PATH, choose, column_names
from qkv.data.listing import list_parts, note_packed_tables, refuse, table_rows, tables_in, what_lies
from qkv.data.pictures import read_file
from qkv.data.report import Report
from qkv.errors import DataError, nearest

__all__ = ["Example", "as_label", "fingerprint", "list_examples", "open_place", "table_in"]

NO_LABEL = "pictures without a usable label"


class Example(NamedTuple):
    """A picture: ``name`` is the same wherever the data lie, ``where`` is what messages say."""

    name: str
    where: str
    label: Label
    reader: Reader
    key: Any

    def read(self) -> bytes:
        """What the picture's file holds. Raises PictureError."""
        return self.reader.read(self.key)


class Disk:
    """Reads files of their own."""

    def read(self, key: Path) -> bytes:
        return read_file(key)


def list_examples(data: ImageFiles, scratch: Path, report: Report) -> dict[str, list[Example]]:
    """All pictures of train, dev and test, in an order that depends on names (in tables, on rows) alone.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or it cannot be understood.
    """
    return list_parts(
        data,
        lambda where, part: open_place(where, part, data, scratch, report),
        report,
        "class folders with pictures, an archive of them, or a table with paths and labels",
    )


def open_place(
    where: str, part: str | None, data: ImageFiles, scratch: Path, report: Report
) -> dict[str, list[Example]]:
    """The pictures at one place; all are of ``part``, or the parts are found inside by their names."""
    path, what = Path(where).expanduser(), what_lies(where)
    if what == "folder":
        tables = table_in(path, {"path": data.path, "label": data.label})
        found = _tables(tables, part, data, report) if tables else _folder(path, part, data, report)
    elif what == "archive":
        found = _archive(path, part, data, scratch, report)
    elif what == "table":
        found = _tables({None: path}, part, data, report)
    else:
        from qkv.data.image_datasets import open_dataset

        found = open_dataset(where, part, data, report)
    for name in found:
        report.files[name] = [where]
    return found


def table_in(folder: Path, named: Mapping[str, str]) -> dict[str | None, Path]:
    """The tables of pictures in a folder by part; under None one that holds all. ``named`` are the user's columns."""
    return tables_in(folder, lambda names: names_pictures(names, named), "pictures")


def names_pictures(columns: list[str], named: Mapping[str, str]) -> bool:
    """Whether a table has a path and a label, by usual names or those that the user gave."""
    return bool(choose(columns, PATH, named.get("path", "")) and choose(columns, LABEL, named.get("label", "")))


def as_label(value: Any, data: ImageFiles) -> Label | None:
    """A label as it is learned: composed (NFC) and without blanks around, or a finite number; None if it is neither."""
    if data.labels == "number":
        try:
            number = float(value)
        except (TypeError, ValueError):
            return None
        return number if math.isfinite(number) else None
    if data.labels == "several":
        if isinstance(value, str):
            value = value.split(data.separator)
        if not isinstance(value, Iterable):
            value = [] if value is None else [value]
        return tuple(sorted({text for each in value if (text := _text(each))}))
    return (_text(value) or None) if not isinstance(value, (list, tuple, dict)) else None


def _text(value: Any) -> str:
    """Folder names come decomposed from some systems: the same class must be the same text."""
    return "" if value is None else unicodedata.normalize("NFC", str(value)).strip()


def _folder(root: Path, part: str | None, data: ImageFiles, report: Report) -> dict[str, list[Example]]:
    names, folders = [], []
    seen = set()
    for here, below, files in os.walk(root, followlinks=True, onerror=refuse):
        state = os.stat(here)
        if (state.st_dev, state.st_ino) in seen:  # a link back to a folder above would never end
            below.clear()
            continue
        seen.add((state.st_dev, state.st_ino))
        prefix = Path(here).relative_to(root).as_posix() + "/" if Path(here) != root else ""
        below.sort()
        folders += [prefix + folder for folder in below]
        for folder in [folder for folder in below if is_hidden(folder)]:
            below.remove(folder)  # named in the report, but not looked through
            names.append(f"{prefix}{folder}/.")
        names += sorted(prefix + file for file in files if _is_file_or_broken_link(os.path.join(here, file)))
    layout = arrange(names, folders, str(root), part)
    reader = Disk()
    listed = [(name, str(root / name), reader, root / name) for name in names]
    return _placed(listed, layout, data, report)


def _is_file_or_broken_link(path: str) -> bool:
    """A link to nothing is told as unreadable; a pipe would wait for ever."""
    return os.path.isfile(path) or not os.path.exists(path)


def _archive(path: Path, part: str | None, data: ImageFiles, scratch: Path, report: Report) -> dict[str, list[Example]]:
    archive = open_archive(path, scratch)
    members = sorted(archive.members, key=lambda member: member.name)
    note_packed_tables((member.name for member in members), path, report)
    layout = arrange([member.name for member in members], archive.folders, str(path), part)
    for kind, where in archive.found:
        report.add(part or "train", kind, "dropped", where)
    listed = [(member.name, f"{path}:{member.name}", archive.reader, member.key) for member in members]
    return _placed(listed, layout, data, report)


def _placed(listed: list[tuple], layout: Any, data: ImageFiles, report: Report) -> dict[str, list[Example]]:
    """Examples of files whose class is a folder; what was found about their names is told."""
    for finding in layout.found:
        report.add(*finding)
    report.remarks += layout.remarks
    found: dict[str, list[Example]] = {}
    for (name, where, reader, key), place in zip(listed, layout.places, strict=True):
        if place is None:
            continue
        part, folder = place
        label = as_label([folder] if data.labels == "several" else folder, data)
        if label is None:
            report.add(part, NO_LABEL, "dropped", f"{where}: {folder!r} is no number")
        else:
            found.setdefault(part, []).append(Example(name, where, label, reader, key))
    return found


def _tables(
    tables: dict[str | None, Path], part: str | None, data: ImageFiles, report: Report
) -> dict[str, list[Example]]:
    found: dict[str, list[Example]] = {}
    reader = Disk()
    for own, table in tables.items():
        names = column_names(table)
        path, label = _column(table, names, PATH, data.path, "path"), _column(table, names, LABEL, data.label, "label")
        report.remarks.append(f"{part or own or 'all'}: labels are taken from {table}, column {label}")
        for belongs, where, name, fields in table_rows(table, part or own, (path, label), report):
            value = as_label(fields.get(label), data)
            if value is None:
                report.add(belongs, NO_LABEL, "dropped", f"{where}: {label} is {fields.get(label)!r}")
                continue
            file = table.parent / name
            found.setdefault(belongs, []).append(Example(name, f"{file} ({where})", value, reader, file))
    return found


def _column(table: Path, names: list[str], usual: tuple[str, ...], asked: str, option: str) -> str:
    column = choose(names, usual, asked)
    if column is None:
        remedy = f"--data.{option} NAME" if not asked else nearest(asked, names)
        wrong = f"there is no column {asked!r}" if asked else f"none of the columns {', '.join(names)} is a {option}"
        raise DataError(wrong, expected=f"a column such as {usual[0]}", remedy=f"say {remedy}", file=table, line=1)
    return column


def fingerprint(examples: dict[str, list[Example]]) -> dict[str, str]:
    """Part -> a hash that is equal while names, labels and bytes are equal, wherever the data lie."""
    hashes = {}
    for part, some in examples.items():
        digest = hashlib.blake2b(digest_size=16)
        for example in some:
            try:
                content = hashlib.blake2b(example.read(), digest_size=16).digest()
            except DataError as error:
                content = type(error).__name__.encode()
            digest.update(repr((example.name, example.label)).encode() + content)
        hashes[part] = digest.hexdigest()
    return hashes
