"""Clips inside a .zip or .tar: folders of frames, animations and videos, read where they lie."""

import io
import os
from collections import defaultdict
from pathlib import Path

from qkv.data.archives import Archive
from qkv.data.class_folders import SUFFIXES, SYSTEM_FILES, is_hidden
from qkv.data.clip_sources import ANIMATED, VIDEOS, Animation, Clip, File, FrameFolder, Video, in_order, moves
from qkv.data.pictures import PictureError

__all__ = ["clips_of"]


def clips_of(archive: Archive, path: Path, rate: float) -> tuple[dict[str, Clip], list[str]]:
    """The clips of an archive by name, and its hidden folders, which are not looked through.

    Pictures at the root of an archive are no clip, as those at the root of a folder of classes are none.

    Args:
        path: of the archive.
        rate: of folders of frames, in frames a second.
    """
    clips: dict[str, Clip] = {}
    stills: dict[str, dict[str, File]] = defaultdict(dict)
    hidden, full = set(), set()
    for member in archive.members:
        *above, name = member.name.split("/")
        full |= {"/".join(above[:depth]) for depth in range(1, len(above) + 1)}
        if depth := next((depth for depth, folder in enumerate(above, start=1) if is_hidden(folder)), None):
            hidden.add("/".join(above[:depth]))
        if depth or name.startswith(".") or name.lower() in SYSTEM_FILES:
            continue
        file, suffix = File(f"{path}:{member.name}", archive.reader, member.key), os.path.splitext(name)[1].lower()
        if suffix in VIDEOS:
            clips[member.name] = Video(Path(file.where), file)
        elif suffix in ANIMATED and _moves(file):
            clips[member.name] = Animation(Path(file.where), file)
        elif above and suffix in SUFFIXES:
            stills["/".join(above)][name] = file
    for folder, files in stills.items():
        listed = tuple(files[name] for name in in_order(files))
        clips[folder] = FrameFolder(Path(f"{path}:{folder}"), rate, listed)
    beside = {name.rpartition("/")[0] for name in clips}
    for folder in set(archive.folders) - full:  # an empty one among clips is a clip too, to be told
        if folder.rpartition("/")[0] in beside - {""}:
            clips[folder] = FrameFolder(Path(f"{path}:{folder}"), rate, ())
    return clips, sorted(hidden)


def _moves(file: File) -> bool:
    """What cannot be read is taken for a clip, and told later."""
    try:
        return moves(io.BytesIO(file.read()))
    except PictureError:
        return True
