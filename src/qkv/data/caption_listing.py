"""The user's pictures with captions, listed but not yet read, from tables and from COCO's annotation files.

A picture is listed once, with all its captions, however many rows name it. What is wrong with rows and captions is put
into the report here; what is wrong with pictures is for `qkv.data.image_doctor`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qkv.data.caption_files import CaptionFiles
from qkv.data.class_folders import part_of
from qkv.data.image_listing import Disk, Example
from qkv.data.image_tables import PART, PATH, choose, column_names, is_table, read_rows
from qkv.data.normalise import clean
from qkv.data.pairs import PARTS
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError, nearest

__all__ = ["CAPTION", "EMPTY", "OVER_LONG", "list_captions"]

CAPTION = ("caption", "captions", "text", "sentence", "sentences")
EMPTY, OVER_LONG, BROKEN, BARE = "empty captions", "over-long captions", "broken records", "pictures without a caption"
LONGEST = 1000  # characters; a longer text is no caption of a picture


class _Named(NamedTuple):
    """What one row says: a picture and a caption of it."""

    part: str
    path: str
    caption: Any
    where: str


def list_captions(data: CaptionFiles, report: Report) -> dict[str, list[Example]]:
    """All pictures of train, dev and test with their captions as labels, in the order of the rows.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or it cannot be understood.
    """
    places: list[tuple[str | None, Path]] = []
    if data.folder:
        path = Path(data.folder).expanduser()
        places += _tables_in(path, data) if path.is_dir() else [(None, path)]
    for part in PARTS:
        if where := getattr(data, part):
            places = [(own, path) for own, path in places if own != part]
            places.append((part, Path(where).expanduser()))
    if not places:
        raise ConfigError("no data is named", remedy="say --data FILE")
    found: dict[str, dict[str, tuple[Example, list[str]]]] = {}
    reader = Disk()
    for own, table in places:
        folder = Path(data.images).expanduser() if data.images else table.parent
        for row in _rows(own, table, data, report):
            if str(table) not in (files := report.files.setdefault(row.part, [])):
                files.append(str(table))
            file = folder / row.path
            example = Example(row.path, f"{file} ({row.where})", (), reader, file)
            _, captions = found.setdefault(row.part, {}).setdefault(str(file), (example, []))
            if caption := _usable(row, report):
                captions += [caption] * (caption not in captions)
    listed: dict[str, list[Example]] = {}
    for part in PARTS:
        for example, captions in found.get(part, {}).values():
            if captions:
                listed.setdefault(part, []).append(example._replace(label=tuple(captions)))
            else:
                report.add(part, BARE, "dropped", example.where)
    if not listed:
        why = "; ".join(map(str, report.findings))
        raise DataError(
            "no picture with a caption was found" + (f" ({why})" if why else ""), file=data.folder or places[0][1]
        )
    report.read = {part: len(found[part]) for part in PARTS if part in found}
    return listed


def _tables_in(folder: Path, data: CaptionFiles) -> list[tuple[str | None, Path]]:
    """The tables of captions in a folder and the parts that they are of, by a word in their names."""
    fitting: dict[str | None, Path] = {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith(".") or not _holds_captions(file, data):
            continue
        words = re.split(r"[^a-z]+", file.name.partition(".")[0].lower())
        part = next(filter(None, map(part_of, words)), None)
        if part in fitting:
            raise DataError(
                f"{fitting[part].name} and {file.name} both hold captions of {part or 'no named part'}",
                remedy="say which with --data.train, --data.dev and --data.test",
                file=folder,
            )
        fitting[part] = file
    if not fitting:
        raise DataError(
            "no table of pictures and captions was found",
            expected=".jsonl, .csv, .tsv or .parquet with a path and a caption, or COCO's .json",
            remedy="name columns with --data.path and --data.caption",
            file=folder,
        )
    if None in fitting and "train" in fitting:
        del fitting[None]
    return list(fitting.items())


def _holds_captions(file: Path, data: CaptionFiles) -> bool:
    if is_table(file):
        names = column_names(file)
        return bool(choose(names, PATH, data.path) and choose(names, CAPTION, data.caption))
    return file.is_file() and file.suffix == ".json" and "caption" in file.name.lower()


def _rows(own: str | None, table: Path, data: CaptionFiles, report: Report) -> Iterator[_Named]:
    if table.suffix == ".json":
        yield from _coco(own or "train", table, report)
        return
    if not is_table(table):
        raise DataError(
            "there is no such file" if not table.exists() else "this is no table of captions",
            expected=".jsonl, .csv, .tsv or .parquet with a path and a caption, or COCO's .json",
            file=table,
        )
    names = column_names(table)
    path = _column(table, names, PATH, data.path, "path")
    caption = _column(table, names, CAPTION, data.caption, "caption")
    split = choose(names, PART)
    for row in read_rows(table, (path, caption)):
        part, where = own or "train", f"{table}:{row.line}"
        if row.broken:
            report.add(part, BROKEN, "dropped", f"{where}: {row.broken}")
            continue
        if split and own is None:
            part = part_of(str(row.fields.get(split) or ""))
            if part is None:
                report.add("train", BROKEN, "dropped", f"{where}: {split} is {row.fields.get(split)!r}, no part")
                continue
        for one in _several(row.fields.get(path)):
            if not isinstance(one, str) or not one.strip():
                report.add(part, BROKEN, "dropped", f"{where}: no path")
                continue
            for said in _several(_caption_of(row.fields, caption, data.caption)):
                yield _Named(part, one, said, where)


def _caption_of(fields: Mapping[str, Any], column: str, asked: str) -> Any:
    """What a row says; rows of a .jsonl file need not all have the same usual name for it."""
    if fields.get(column) is None and not asked and (other := choose(list(fields), CAPTION)):
        return fields[other]
    return fields.get(column)


def _coco(part: str, file: Path, report: Report) -> Iterator[_Named]:
    """Pictures and captions of an annotation file in COCO's format."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        names = {image["id"]: image["file_name"] for image in record["images"]}
        annotations = list(record["annotations"])
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=file) from None
    except ValueError as error:
        raise DataError(f"is no JSON, or cut off ({error})", file=file) from None
    except (KeyError, TypeError):
        raise DataError(
            "is no annotation file of COCO", expected="images with id and file_name, and annotations", file=file
        ) from None
    for number, annotation in enumerate(annotations):
        known = isinstance(annotation, dict) and annotation.get("image_id") in names
        where = f"{file}: annotation {annotation.get('id', number) if isinstance(annotation, dict) else number}"
        if known:
            yield _Named(part, names[annotation["image_id"]], annotation.get("caption"), where)
        else:
            report.add(part, BROKEN, "dropped", f"{where}: no such picture")


def _several(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) and value else [value]


def _usable(row: _Named, report: Report) -> str:
    """A caption as one clean line; empty if it cannot be learned from, which is told."""
    text = clean(row.caption) if isinstance(row.caption, str) else ""
    if not text:
        report.add(row.part, EMPTY, "dropped", f"{row.where}: {row.caption!r}")
    elif len(text) > LONGEST:
        report.add(row.part, OVER_LONG, "dropped", f"{row.where}: {len(text):,} characters")
        return ""
    return text


def _column(table: Path, names: list[str], usual: tuple[str, ...], asked: str, option: str) -> str:
    if not names:
        raise DataError("the table is empty", file=table)
    column = choose(names, usual, asked)
    if column is None:
        remedy = f"--data.{option} NAME" if not asked else nearest(asked, names)
        wrong = f"there is no column {asked!r}" if asked else f"none of the columns {', '.join(names)} is a {option}"
        raise DataError(wrong, expected=f"a column such as {usual[0]}", remedy=f"say {remedy}", file=table, line=1)
    return column
