"""Whether what lies at a place are clips: folders of frames, pictures that move, or videos."""

import os
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from qkv.data.archives import some_names
from qkv.data.class_folders import SUFFIXES, is_hidden, part_of
from qkv.data.clip_listing import FRAMES, PATH, clip_tables
from qkv.data.clip_sources import ANIMATED, VIDEOS, is_clip
from qkv.data.image_tables import LABEL, choose, column_names, read_rows
from qkv.errors import DataError

__all__ = ["clips_in", "clips_packed", "names_clips"]

LOOKED_AT = 10_000  # names of a folder
OPENED = 8  # pictures that may move
MOST = 0.9  # share of pictures that lie in a folder of their own in a class folder, where they are frames


def clips_in(folder: Path, named: Mapping[str, str]) -> bool:
    """Whether a folder holds clips: a table of them, videos, pictures that move, or class/clip/frame all through.

    Args:
        named: columns of tables that the user named.

    Raises:
        DataError: there are videos, and pictures that belong to no clip.
    """
    if any(names_clips(table, named) for table in clip_tables(folder).values()):
        return True
    return _are_clips(list(islice(_names(folder), LOOKED_AT)), folder, lambda name: is_clip(folder / name))


def clips_packed(archive: Path) -> bool:
    """The same of an archive, by names alone: pictures that may move are clips if no others are there.

    Raises:
        DataError: as `clips_in`, or the archive is damaged.
    """
    names = [name for name in some_names(archive, LOOKED_AT) if not any(map(is_hidden, name.split("/")))]
    return _are_clips(names, archive, lambda name: True)


def _are_clips(names: list[str], where: Path, moves: Callable[[str], bool]) -> bool:
    videos = [name for name in names if _suffix(name) in VIDEOS]
    stills = [name for name in names if _suffix(name) in SUFFIXES - ANIMATED]
    moving = [name for name in names if _suffix(name) in ANIMATED]
    deep = [len(path) > 2 for path in _below_classes(stills or moving)]
    in_folders = sum(deep) > MOST * len(deep)
    if not stills and moving:
        return bool(videos) or in_folders or any(map(moves, moving[:OPENED]))
    if videos and stills and not in_folders:
        raise DataError(
            f"there are videos ({videos[0]}) and pictures ({stills[0]})",
            expected="one kind of data",
            remedy="say --kind clips or --kind pictures",
            file=where,
        )
    return bool(videos) or in_folders


def names_clips(table: Path, named: Mapping[str, str]) -> bool:
    """Whether a table names clips: labels of frames, or a path that leads to a clip."""
    names = column_names(table)
    path, label = choose(names, PATH, named.get("path", "")), choose(names, LABEL, named.get("label", ""))
    if path is None or not (label or choose(names, FRAMES)):
        return False
    if choose(names, FRAMES):
        return True
    first = (str(row.fields.get(path)) for row in islice(read_rows(table, (path,)), OPENED) if not row.broken)
    return any(is_clip(table.parent / name) for name in first if "\0" not in name)


def _names(folder: Path):
    """Names of files below, hidden folders left out."""
    for here, below, files in os.walk(folder):
        below[:] = sorted(name for name in below if not is_hidden(name))
        prefix = Path(here).relative_to(folder).as_posix() + "/" if Path(here) != folder else ""
        yield from (prefix + name for name in sorted(files) if not name.startswith("."))


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _below_classes(names: list[str]) -> list[list[str]]:
    """Paths from the class folder on: without a folder around all, and without train and dev."""
    paths = [name.split("/") for name in names]
    while paths and len({path[0] for path in paths}) == 1 and not part_of(paths[0][0]) and min(map(len, paths)) > 2:
        if len({path[1] for path in paths}) < 2 and not part_of(paths[0][1]):
            break  # one class with a folder in it
        paths = [path[1:] for path in paths]
    if all(part_of(path[0]) and len(path) > 2 for path in paths):
        paths = [path[1:] for path in paths]
    return paths
