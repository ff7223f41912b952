"""The user's labelled clips, listed but not yet decoded, from folders, archives, tables and datasets."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qkv.data.archives import open_archive
from qkv.data.class_folders import arrange, is_hidden
from qkv.data.classes import Label
from qkv.data.clip_archives import clips_of
from qkv.data.clip_files import ClipFiles
from qkv.data.clip_sources import ANIMATED, VIDEOS, Clip, is_clip, open_clip, stills_in
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import as_label
from qkv.data.image_tables import LABEL, choose, column_names
from qkv.data.listing import list_parts, note_packed_tables, refuse, table_rows, tables_in, what_lies
from qkv.data.pictures import PictureError
from qkv.data.report import Report
from qkv.errors import DataError

__all__ = ["FRAMES", "PATH", "ClipExample", "as_clip_label", "clip_tables", "clips_below", "fingerprint", "list_clips"]

PATH = ("path", "file", "filename", "file_name", "filepath", "clip", "video", "clip_path", "video_path")
FRAMES = ("frames", "frame_labels", "events", "spans")
NO_LABEL = "clips without a usable label"


@dataclass(frozen=True)
class ClipExample:
    """A clip: ``name`` is the same wherever the data lie, ``where`` is what messages say, ``marks`` what a table says
    of its frames. ``label`` is None where it follows from the frames (see `qkv.data.clip_doctor`)."""

    name: str
    where: str
    label: Label | None
    clip: Clip
    marks: Any = None


def list_clips(data: ClipFiles, scratch: Path, report: Report) -> dict[str, list[ClipExample]]:
    """All clips of train, dev and test, in an order that depends on names (in tables, on rows) alone.

    Args:
        scratch: where a packed tar is unpacked, for as long as its clips are read.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or it cannot be understood.
    """
    return list_parts(
        data,
        lambda where, part: _place(where, part, data, scratch, report),
        report,
        "class folders with clips (folders of frames, GIFs, videos), an archive, or a table of paths and labels",
    )


def clips_below(root: Path) -> list[Path]:
    """Every clip in a folder and below, by name; the folder itself if it holds frames. Hidden folders are left out."""
    return [root / name for name in _walk(root)[0]] or ([root] if stills_in(root) else [])


def clip_tables(folder: Path, path: str = "", label: str = "") -> dict[str | None, Path]:
    """The tables of clips in a folder by part; under None one that holds all."""

    def fits(names: list[str]) -> bool:
        return bool(choose(names, PATH, path) and (choose(names, LABEL, label) or choose(names, FRAMES)))

    return tables_in(folder, fits, "clips")


def as_clip_label(value: Any, data: ClipFiles) -> Label | None:
    """A label as it is learned, as of a picture; None if it is none."""
    return as_label(value, ImageFiles(labels=data.labels))


def _place(
    where: str, part: str | None, data: ClipFiles, scratch: Path, report: Report
) -> dict[str, list[ClipExample]]:
    path, what = Path(where).expanduser(), what_lies(where)
    if what == "folder":
        tables = clip_tables(path, data.path, data.label)
        return _tables(tables, part, data, report) if tables else _folder(path, part, data, report)
    if what == "archive":
        return _archive(path, part, data, scratch, report)
    if what == "table":
        return _tables({None: path}, part, data, report)
    from qkv.data.clip_datasets import open_dataset

    return open_dataset(where, part, data, report)


def _folder(root: Path, part: str | None, data: ClipFiles, report: Report) -> dict[str, list[ClipExample]]:
    names, folders, hidden = _walk(root)
    listed = {name: (str(root / name), open_clip(root / name, data.rate)) for name in names}
    return _placed(listed, folders, hidden, root, part, data, report)


def _archive(
    path: Path, part: str | None, data: ClipFiles, scratch: Path, report: Report
) -> dict[str, list[ClipExample]]:
    archive = open_archive(path, scratch)
    clips, hidden = clips_of(archive, path, data.rate)
    note_packed_tables((member.name for member in archive.members), path, report)
    for kind, where in archive.found:
        report.add(part or "train", kind, "dropped", where)
    listed = {name: (f"{path}:{name}", clips[name]) for name in sorted(clips)}
    return _placed(listed, archive.folders, hidden, path, part, data, report)


def _placed(
    listed: dict[str, tuple[str, Clip]],
    folders: list[str],
    hidden: list[str],
    root: Path,
    part: str | None,
    data: ClipFiles,
    report: Report,
) -> dict[str, list[ClipExample]]:
    """Examples of clips whose class is a folder; what was found about their names is told."""
    for name in hidden:
        report.add(part or "train", "hidden or system folders", "ignored", f"{root}/{name}")
    layout = arrange(list(listed), folders, str(root), part, range(len(listed)))
    for belongs, kind, action, where in layout.found:
        report.add(belongs, kind.replace("picture", "clip"), action, where)
    report.remarks += [remark.replace("all pictures of", "all clips of", 1) for remark in layout.remarks]
    found: dict[str, list[ClipExample]] = {}
    for (name, (where, clip)), place in zip(listed.items(), layout.places, strict=True):
        if place is None:
            continue
        belongs, folder = place
        label = as_clip_label(folder, data)
        if label is None:
            report.add(belongs, NO_LABEL, "dropped", f"{where}: {folder!r} is no number")
        else:
            found.setdefault(belongs, []).append(ClipExample(name, where, label, clip))
    return found


def _walk(root: Path) -> tuple[list[str], list[str], list[str]]:
    """Names below a folder: of clips, of folders, and of hidden folders, which are not looked through.

    A folder that holds nothing is a clip too where clips are expected beside it: an empty one, to be told.
    """
    clips, folders, hidden, empty, seen = [], [], [], [], set()
    for here, below, files in os.walk(root, followlinks=True, onerror=refuse):
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


def _tables(
    tables: dict[str | None, Path], part: str | None, data: ClipFiles, report: Report
) -> dict[str, list[ClipExample]]:
    found: dict[str, list[ClipExample]] = {}
    for own, table in tables.items():
        names = column_names(table)
        path, label = choose(names, PATH, data.path), choose(names, LABEL, data.label)
        marks = choose(names, FRAMES)
        if path is None or (label is None and (marks is None or data.label or data.labels == "number")):
            option = "path" if path is None else "label"
            remedy = f"say --data.{option} NAME"
            raise DataError(
                f"none of the columns {', '.join(names)} is the {option} of a clip", remedy=remedy, file=table, line=1
            )
        columns = " and ".join(f"column {name}" for name in (label, marks) if name)
        report.remarks.append(f"{part or own or 'all'}: labels are taken from {table}, {columns}")
        columns = tuple(filter(None, (path, label, marks)))
        for belongs, where, name, fields in table_rows(table, part or own, columns, report):
            value = as_clip_label(fields.get(label), data) if label else None
            if label and value is None:
                report.add(belongs, NO_LABEL, "dropped", f"{where}: {label} is {fields.get(label)!r}")
                continue
            file = table.parent / name
            some = fields.get(marks) if marks else None
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
                    digest.update(hashlib.blake2b(file.read(), digest_size=16).digest())
            except (PictureError, OSError) as error:
                digest.update(type(error).__name__.encode())
        hashes[part] = digest.hexdigest()
    return hashes
