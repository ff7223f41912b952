"""What kind of data lies at a place: sentence pairs, labelled pictures, clips or texts, or tagged sentences."""

import glob
import os
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

from qkv.data.archives import ARCHIVES
from qkv.data.caption_listing import CAPTION
from qkv.data.class_folders import SUFFIXES, is_hidden
from qkv.data.clip_kind import clips_in, clips_packed, names_clips
from qkv.data.discover import find_parts
from qkv.data.image_listing import names_pictures, table_in
from qkv.data.image_tables import LABEL, PATH, choose, column_names, is_table
from qkv.data.tags_reading import is_tagged
from qkv.data.texts_listing import has_class_folders, names_texts
from qkv.errors import DataError

__all__ = ["Kind", "find_kind", "refuse_no_pairs"]

Kind = Literal["pairs", "pictures", "captions", "clips", "texts", "tags"]
LOOKED_AT = 10_000  # names of a folder, until one is a picture's


def find_kind(where: str, columns: Mapping[str, str] | None = None) -> Kind:
    """Which kind of data lies at ``where``. What is no path (the name of a dataset) is taken for pairs.

    A table is told by its columns, tagged sentences by the suffix of their files.

    Args:
        columns: names that the user gave of a table's columns: path, label, caption, text. A usual name is not needed
            for what has one of these.

    Raises:
        DataError: both lie there, or neither.
    """
    named = {} if columns is None else columns
    path = Path(where).expanduser()
    if is_tagged(path) or (path.is_dir() and any(map(is_tagged, path.iterdir()))):
        return "tags"
    if _holds_captions(path, named):
        return "captions"
    if _holds_texts(path, named):
        return "texts"
    if path.is_dir():
        if clips_in(path, named):
            return "clips"
        pictures = _first_picture(path) or next(map(str, table_in(path, named).values()), "")
        try:
            pairs = _pairs_in(path, named)
        except DataError:  # the names of pictures may be parts twice: test1.jpg, test2.jpg
            if not pictures:
                raise
            pairs = ""
        if pictures and pairs:
            raise DataError(
                f"there are pictures ({pictures}) and sentence pairs ({pairs})",
                expected="one kind of data",
                remedy="say --kind pictures or --kind pairs",
                file=path,
            )
        if not pictures and not pairs:
            raise DataError(
                "there are neither pictures, clips nor sentence pairs, and no labelled texts",
                expected="class folders of pictures, of clips or of .txt files, a table of paths or texts and labels, "
                "tagged sentences (train.conll), or train.ko and train.en",
                file=path,
            )
        return "pictures" if pictures else "pairs"
    if path.name.lower().endswith(ARCHIVES):
        return "clips" if path.is_file() and clips_packed(path) else "pictures"
    if is_table(path) and names_clips(path, named):
        return "clips"
    if is_table(path) and _names_pictures(path, named):
        return "pictures"
    return "pairs"


def refuse_no_pairs(where: str, task: str, kinds: Collection[str]) -> None:
    """DataError for what was taken for pairs for want of anything better: nothing, an empty file, a table.

    Args:
        task: what was to learn from it.
        kinds: of data that the task learns from.
    """
    path, needs = Path(where).expanduser(), " or ".join(kinds)
    if not path.exists() and not (path.parent.is_dir() and any(path.parent.glob(f"{glob.escape(path.name)}.*"))):
        raise DataError(
            "there is no such file or folder",
            remedy=f"the name of a data set goes with --kind {next(iter(kinds))}",
            file=path,
        )
    if path.is_file() and not path.stat().st_size:
        raise DataError("it is empty", expected=needs, file=path)
    if is_table(path):
        names = column_names(path)
        found = f"its columns are {', '.join(names)}" if names else "it begins with no names of columns"
        apart = len(names) == 1 and ";" in names[0]
        raise DataError(
            f"{found}, and {task} learns from {needs}",
            expected="a column of paths or texts and one of labels",
            remedy="put commas between them" if apart else "name them: --data.path or --data.text, and --data.label",
            file=path,
            line=1,
        )


def _holds_captions(path: Path, named: Mapping[str, str]) -> bool:
    """Whether pictures with captions lie there: in a table, or in tables named as parts."""
    if is_table(path):
        found = {
            key: choose(column_names(path), usual, named.get(key, ""))
            for key, usual in (("path", PATH), ("caption", CAPTION), ("label", LABEL))
        }
        return bool(found["path"] and found["caption"]) and not found["label"]
    return path.is_dir() and any(_holds_captions(file, named) for file in sorted(path.iterdir()) if is_table(file))


def _holds_texts(path: Path, named: Mapping[str, str]) -> bool:
    """Whether labelled texts lie there: in a table, in tables named as parts, or as class folders of .txt files."""
    if is_table(path):
        return names_texts(path, named) and not _names_pictures(path, named)
    if not path.is_dir():
        return False
    tables = [file for file in sorted(path.iterdir()) if is_table(file) and not file.name.startswith(".")]
    return any(_holds_texts(table, named) for table in tables) or has_class_folders(path)


def _first_picture(folder: Path) -> str:
    """A picture anywhere below, out of the first names."""
    files = (
        os.path.join(here, file)
        for here, below, files in os.walk(folder)
        if not any(map(is_hidden, Path(here).relative_to(folder).parts))
        for file in files
    )
    return next((file for file in islice(files, LOOKED_AT) if os.path.splitext(file)[1].lower() in SUFFIXES), "")


def _pairs_in(folder: Path, named: Mapping[str, str]) -> str:
    """The prefix or table of pairs that is found first."""
    for where in find_parts(folder).values():
        path = Path(where)
        if is_table(path):
            if not _names_pictures(path, named):
                return where
        elif sum(_is_text(file) for file in folder.glob(path.name + ".*")) > 1:
            return where
    return ""


def _is_text(file: Path) -> bool:
    """Whether a file can be one side of parallel lines."""
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    return file.is_file() and suffix not in SUFFIXES and suffix not in (".zip", ".tar", ".npy", ".md")


def _names_pictures(table: Path, named: Mapping[str, str]) -> bool:
    return names_pictures(column_names(table), named)
