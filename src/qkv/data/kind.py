"""What kind of data lies at a place: sentence pairs or labelled pictures, by names alone."""

import os
from itertools import islice
from pathlib import Path
from typing import Literal

from qkv.data.archives import ARCHIVES
from qkv.data.class_folders import SUFFIXES, is_hidden
from qkv.data.discover import find_parts
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import table_in
from qkv.data.image_tables import LABEL, PATH, choose, column_names, is_table
from qkv.errors import DataError

__all__ = ["Kind", "find_kind"]

Kind = Literal["pairs", "pictures"]
LOOKED_AT = 10_000  # names of a folder, until one is a picture's


def find_kind(where: str) -> Kind:
    """Whether pairs or pictures lie at ``where``. What is no path (the name of a dataset) is taken for pairs.

    Raises:
        DataError: both lie there, or neither.
    """
    path = Path(where).expanduser()
    if path.is_dir():
        pictures = _first_picture(path) or next(map(str, table_in(path, ImageFiles()).values()), "")
        try:
            pairs = _pairs_in(path)
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
                "there are neither pictures nor sentence pairs",
                expected="class folders of pictures, a table of paths and labels, or train.ko and train.en",
                file=path,
            )
        return "pictures" if pictures else "pairs"
    if path.name.lower().endswith(ARCHIVES):
        return "pictures"
    if is_table(path) and _names_pictures(path):
        return "pictures"
    return "pairs"


def _first_picture(folder: Path) -> str:
    """A picture anywhere below, out of the first names."""
    files = (
        os.path.join(here, file)
        for here, below, files in os.walk(folder)
        if not any(map(is_hidden, Path(here).relative_to(folder).parts))
        for file in files
    )
    return next((file for file in islice(files, LOOKED_AT) if os.path.splitext(file)[1].lower() in SUFFIXES), "")


def _pairs_in(folder: Path) -> str:
    """The prefix or table of pairs that is found first."""
    for where in find_parts(folder).values():
        path = Path(where)
        if is_table(path):
            if not _names_pictures(path):
                return where
        elif sum(_is_text(file) for file in folder.glob(path.name + ".*")) > 1:
            return where
    return ""


def _is_text(file: Path) -> bool:
    """Whether a file can be one side of parallel lines."""
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    return file.is_file() and suffix not in SUFFIXES and suffix not in (".zip", ".tar", ".npy", ".md")


def _names_pictures(table: Path) -> bool:
    names = column_names(table)
    return bool(choose(names, PATH) and choose(names, LABEL))
