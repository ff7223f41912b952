"""The user's labelled clips, listed but not yet decoded, from folders and tables."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qkv.data.archives import ARCHIVES
from qkv.data.class_folders import arrange, is_hidden, part_of
from qkv.data.classes import Label
from qkv.data.clip_files import ClipFiles
from qkv.data.clip_sources import ANIMATED, VIDEOS, Clip, is_clip, open_clip, stills_in
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import as_label
from qkv.data.image_tables import LABEL, PART, choose, column_names, is_table, read_rows
from qkv.data.pairs import PARTS
from qkv.data.pictures import PictureError, read_file
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError

__all__ = ["FRAMES", "PATH", "ClipExample", "clips_below", "fingerprint", "list_clips", "tables_in"]

PATH = ("path", "file", "filename", "file_name", "filepath", "clip", "video", "clip_path", "video_path")
FRAMES = ("frames", "frame_labels", "events", "spans")
NO_LABEL, BROKEN = "clips without a usable label", "broken records"


@dataclass(frozen=True)
class ClipExample:
    """A clip: ``name`` is the same wherever the data lie, ``where`` is what messages say, ``marks`` what a table says
    of its frames. ``label`` is None where it follows from the frames (see `qkv.data.clip_doctor`)."""

    name: str
    where: str
    label: Label | None
    clip: Clip
    marks: Any = None


def list_clips(data: ClipFiles, report: Report) -> dict[str, list[ClipExample]]:
    """All clips of train, dev and test, in an order that depends on names (in tables, on rows) alone.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or it cannot be understood.
    """
    found: dict[str, list[ClipExample]] = {}
    if not any((data.folder, data.train, data.dev, data.test)):
        raise ConfigError("no data is named", remedy="say --data FOLDER")
    for where, part in [(data.folder, None), *((getattr(data, part), part) for part in PARTS)]:
        if where:
            some = _place(where, part, data, report)
            found |= some if part is None else {part: some.get(part, [])}
            report.files |= {name: [where] for name in some}
    if not any(found.values()):
        why = "; ".join(map(str, report.findings))
        raise DataError(
            "no labelled clip was found" + (f" ({why})" if why else ""),
            expected="class folders with clips (folders of frames, GIFs, videos), or a table with paths and labels",
            file=data.folder or data.train or data.dev or data.test,
        )
    told = [part for part in PARTS if part in found or any(finding.part == part for finding in report.findings)]
    report.read = {part: len(found.get(part, ())) for part in told}
    return {part: found[part] for part in PARTS if part in found}


def clips_below(root: Path) -> list[Path]:
    """Every clip in a folder and below, by name; the folder itself if it holds frames. Hidden folders are left out."""
    return [root / name for name in _walk(root)[0]] or ([root] if stills_in(root) else [])


def tables_in(folder: Path, path: str = "", label: str = "") -> dict[str | None, Path]:
    """The tables of clips in a folder by part; under None one that holds all."""
    fitting: dict[str | None, Path] = {}
    for file in sorted(folder.iterdir()):
        if not is_table(file) or file.name.startswith("."):
            continue
        names = column_names(file)
        if choose(names, PATH, path) and (choose(names, LABEL, label) or choose(names, FRAMES)):
            part = part_of(file.name.partition(".")[0])
            if part in fitting:
                raise DataError(
                    f"{fitting[part].name} and {file.name} both name clips and labels",
                    remedy="say which with --data.train and --data.dev",
                    file=folder,
                )
            fitting[part] = file
    if None in fitting and len(fitting) > 1:
        del fitting[None]
    return fitting


def _place(where: str, part: str | None, data: ClipFiles, report: Report) -> dict[str, list[ClipExample]]:
    path = Path(where).expanduser()
    if path.is_dir():
        tables = tables_in(path, data.path, data.label)
        return _tables(tables, part, data, report) if tables else _folder(path, part, data, report)
    if is_table(path):
        return _tables({None: path}, part, data, report)
    if path.name.lower().endswith(ARCHIVES):
        raise DataError("clips are not read from archives", remedy="unpack it and name the folder", file=path)
    what = "this is no folder or table" if path.exists() else "there is no such file or folder"
    raise DataError(what, expected="a folder, or a .csv, .tsv, .jsonl or .parquet file", file=path)


def _folder(root: Path, part: str | None, data: ClipFiles, report: Report) -> dict[str, list[ClipExample]]:
    names, folders, hidden = _walk(root)
    for name in hidden:
        report.add(part or "train", "hidden or system folders", "ignored", f"{root}/{name}")
    layout = arrange(names, folders, str(root), part, range(len(names)))
    for belongs, kind, action, where in layout.found:
        report.add(belongs, kind.replace("picture", "clip"), action, where)
    report.remarks += [remark.replace("all pictures of", "all clips of", 1) for remark in layout.remarks]
    found: dict[str, list[ClipExample]] = {}
    for name, place in zip(names, layout.places, strict=True):
        if place is None:
            continue
        belongs, folder = place
        label = _label(folder, data)
        if label is None:
            report.add(belongs, NO_LABEL, "dropped", f"{root}/{name}: {folder!r} is no number")
        else:
            example = ClipExample(name, str(root / name), label, open_clip(root / name, data.rate))
            found.setdefault(belongs, []).append(example)
    return found


def _walk(root: Path) -> tuple[list[str], list[str], list[str]]:
    """Names below a folder: of clips, of folders, and of hidden folders, which are not looked through.

    A folder that holds nothing is a clip too where clips are expected beside it: an empty one, to be told.
    """
    clips, folders, hidden, empty, seen = [], [], [], [], set()
    for here, below, files in os.walk(root, followlinks=True, onerror=_refuse):
        state = os.stat(here)
        if (state.st_dev, state.st_ino) in seen:  # a link back to a folder above would never end
            below.clear()
            continue
        seen.add((state.st_dev, state.st_ino))
        name = Path(here).relative_to(root).as_posix() if Path(here) != root else ""
        prefix = name + "/" if name else ""
        hidden += [prefix + folder for folder in sorted(below) if is_hidden(folder)]
        below[:] = sorted(folder for folder in below if not is_hidden(folder))
        folders += [prefix + folder for folder in below]
        if name and not below and not files:
            empty.append(name)
        elif name and stills_in(Path(here)):
            clips.append(name)
        clips += [
            prefix + file
            for file in files
            if not file.startswith(".")
            and os.path.splitext(file)[1].lower() in ANIMATED | VIDEOS
            and is_clip(Path(here) / file)
        ]
    beside = {name.rpartition("/")[0] for name in clips}
    clips += [name for name in empty if "/" in name and name.rpartition("/")[0] in beside]
    return sorted(clips), folders, hidden


def _refuse(error: OSError) -> None:
    """A folder that cannot be read would be a class that is missing."""
    raise DataError(f"the folder cannot be read ({error.strerror})", file=error.filename) from error


def _label(value: Any, data: ClipFiles) -> Label | None:
    return as_label(value, ImageFiles(labels=data.labels))


def _tables(
    tables: dict[str | None, Path], part: str | None, data: ClipFiles, report: Report
) -> dict[str, list[ClipExample]]:
    found: dict[str, list[ClipExample]] = {}
    for own, table in tables.items():
        names = column_names(table)
        path, label = choose(names, PATH, data.path), choose(names, LABEL, data.label)
        marks, split = choose(names, FRAMES), choose(names, PART)
        if path is None or (label is None and (marks is None or data.label or data.labels == "number")):
            option = "path" if path is None else "label"
            remedy = f"say --data.{option} NAME"
            raise DataError(
                f"none of the columns {', '.join(names)} is the {option} of a clip", remedy=remedy, file=table, line=1
            )
        columns = " and ".join(f"column {name}" for name in (label, marks) if name)
        report.remarks.append(f"{part or own or 'all'}: labels are taken from {table}, {columns}")
        for row in read_rows(table, tuple(filter(None, (path, label, marks)))):
            belongs, where = part or own or "train", f"{table}:{row.line}"
            if not row.broken and split and part is None and own is None:
                value = str(row.fields.get(split) or "").strip()
                if (belongs := part_of(value)) is None:
                    report.add("train", BROKEN, "dropped", f"{where}: {split} is {value!r}, no part of the data")
                    continue
            if row.broken or not isinstance(name := row.fields.get(path), str) or not name.strip():
                report.add(belongs, BROKEN, "dropped", f"{where}: {row.broken or 'no path'}")
                continue
            value = _label(row.fields.get(label), data) if label else None
            if label and value is None:
                report.add(belongs, NO_LABEL, "dropped", f"{where}: {label} is {row.fields.get(label)!r}")
                continue
            file = table.parent / name
            some = row.fields.get(marks) if marks else None
            example = ClipExample(name, f"{file} ({where})", value, open_clip(file, data.rate), some)
            if label is None and some in (None, "", []):
                report.add(belongs, NO_LABEL, "dropped", f"{where}: {marks} is empty")
                continue
            found.setdefault(belongs, []).append(replace(example, marks=None if some == "" else some))
    return found


def fingerprint(examples: dict[str, Sequence[ClipExample]]) -> dict[str, str]:
    """Part -> a hash that is equal while names, labels and bytes are equal, wherever the data lie."""
    hashes = {}
    for part, some in examples.items():
        digest = hashlib.blake2b(digest_size=16)
        for example in some:
            digest.update(repr((example.name, example.label, example.marks)).encode())
            try:
                for file in example.clip.files():
                    digest.update(file.name.encode("utf-8", "surrogateescape"))
                    digest.update(hashlib.blake2b(read_file(file), digest_size=16).digest())
            except (PictureError, OSError) as error:
                digest.update(type(error).__name__.encode())
        hashes[part] = digest.hexdigest()
    return hashes
