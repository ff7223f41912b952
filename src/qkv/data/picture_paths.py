"""The picture files that a command line names, folders being looked through."""

import os
from collections.abc import Iterable, Iterator

from qkv.data.class_folders import SUFFIXES, is_hidden
from qkv.errors import DataError

__all__ = ["find_pictures"]


def find_pictures(paths: Iterable[str]) -> list[str]:
    """The files that are named, and all pictures in the folders that are named, hidden ones left out; each once.

    Raises:
        DataError: nothing is there.
    """
    paths = list(paths)
    found: dict[str, None] = {}
    for path in paths:
        found |= dict.fromkeys(_below(path) if os.path.isdir(path) else [path])
    if not found:
        raise DataError(f"there is no picture in {', '.join(paths) or 'nothing'}", expected=".jpg, .png ... files")
    return list(found)


def _below(folder: str) -> Iterator[str]:
    for here, below, files in os.walk(folder, followlinks=False):
        below[:] = sorted(name for name in below if not is_hidden(name))
        for name in sorted(files):
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES:
                yield os.path.join(here, name)
