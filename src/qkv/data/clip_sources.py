"""Where the frames of a clip come from: a folder of pictures, an animation, a video file; all give the same pixels as
`qkv.data.pictures.decode` would, at times in seconds. Their files may lie on the disk, in an archive or in a record."""

import io
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from qkv.data.archives import Reader
from qkv.data.class_folders import SUFFIXES, SYSTEM_FILES
from qkv.data.image_listing import Disk
from qkv.data.pictures import (
    CUT_OFF,
    MOST_PIXELS,
    OVERSIZE,
    UNREADABLE,
    PictureError,
    decode,
    decode_frames,
    frame_times,
)
from qkv.errors import DataError

__all__ = [
    "ANIMATED",
    "VIDEOS",
    "Animation",
    "Clip",
    "File",
    "Frame",
    "FrameFolder",
    "Video",
    "in_order",
    "is_clip",
    "moves",
    "open_clip",
    "read",
    "spread",
    "stills_in",
    "why",
]

ANIMATED = frozenset((".gif", ".webp", ".apng"))  # may move, or be a still picture
VIDEOS = frozenset((".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".ogv", ".ts"))

Frame = UInt8[np.ndarray, "row column 3"]


@dataclass(frozen=True)
class File:
    """A file of a clip: what messages call it, and how it is read, wherever it lies."""

    where: str
    reader: Reader
    key: Any

    @property
    def name(self) -> str:
        return Path(self.where).name

    def read(self) -> bytes:
        """What it holds. Raises PictureError."""
        return self.reader.read(self.key)


class Clip(Protocol):
    """A clip that was found; nothing is decoded before it is asked for. ``path`` is what messages call it."""

    path: Path

    times: list[float]
    """When each frame begins, in seconds. Raises PictureError: the clip cannot be read."""

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        """The frames of these numbers (from 0), in order. Raises PictureError: one cannot be decoded."""
        ...

    def files(self) -> Iterator[File]:
        """The files that it is made of, in order."""
        ...


def open_clip(path: Path, rate: float = 1.0) -> Clip:
    """The clip at a path; ``rate`` is of folders of pictures, in frames a second."""
    if path.is_dir():
        return FrameFolder(path, rate)
    return (Video if path.suffix.lower() in VIDEOS else Animation)(path, _on_disk(path))


def is_clip(path: Path) -> bool:
    """Whether a folder of pictures, a video or a picture that moves lies there; only names and headers are read."""
    if path.is_dir():
        return bool(stills_in(path))
    return path.suffix.lower() in VIDEOS or (path.suffix.lower() in ANIMATED and moves(path))


def spread(count: int, most: int) -> list[int]:
    """Which frames of ``count`` are read: all, or the middle ones of ``most`` equal stretches (Wang et al. 2016)."""
    if count <= most:
        return list(range(count))
    return [(2 * i + 1) * count // (2 * most) for i in range(most)]


def stills_in(folder: Path) -> list[Path]:
    """The pictures in a folder that are frames of one clip, in the order of the numbers in their names: 2 before 10."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_file()]
    return [folder / name for name in in_order(name for name in names if _is_still(folder, name))]


def in_order(names: Iterable[str]) -> list[str]:
    """By the numbers in them: 2 before 10."""
    return sorted(names, key=lambda name: [(0, int(s), "") if s.isdecimal() else (1, 0, s) for s in _steps(name)])


def _is_still(folder: Path, name: str) -> bool:
    suffix = os.path.splitext(name)[1].lower()
    if name.startswith(".") or name.lower() in SYSTEM_FILES or suffix not in SUFFIXES:
        return False
    return suffix not in ANIMATED or not moves(folder / name)


def _steps(name: str) -> list[str]:
    return [step for step in re.split(r"(\d+)", name) if step]


def _on_disk(path: Path) -> File:
    return File(str(path), Disk(), path)


def moves(file: Path | io.BytesIO) -> bool:
    """Whether a picture has several frames; what cannot be opened is taken for one that has, and told later."""
    try:
        with Image.open(file) as image:
            return bool(getattr(image, "is_animated", False))
    except Exception:  # of pillow's openers
        return True


@dataclass(frozen=True)
class FrameFolder:
    """A folder of pictures, one a frame; ``listed`` where it is none of the disk's."""

    path: Path
    rate: float
    listed: tuple[File, ...] | None = None

    @cached_property
    def _files(self) -> list[File]:
        return list(map(_on_disk, stills_in(self.path)) if self.listed is None else self.listed)

    @cached_property
    def times(self) -> list[float]:
        return [round(number / self.rate, 6) for number in range(len(self._files))]

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        for number in sorted(wanted):
            yield decode(self._files[number].read(), self._files[number].where).pixels

    def files(self) -> Iterator[File]:
        yield from self._files


@dataclass(frozen=True)
class Animation:
    """An animated GIF, WebP or APNG."""

    path: Path
    file: File

    @cached_property
    def times(self) -> list[float]:
        source = self.file.read()
        if not source:
            raise PictureError(UNREADABLE, "the file is empty", expected="an animation", file=self.path)
        return frame_times(source, str(self.path))

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        yield from decode_frames(self.file.read(), frozenset(wanted), str(self.path))

    def files(self) -> Iterator[File]:
        yield self.file


@dataclass(frozen=True)
class Video:
    """A video file, through PyAV; of several video streams the first. One in an archive is read whole."""

    path: Path
    file: File

    @cached_property
    def times(self) -> list[float]:
        # Of packets, so that nothing is decoded; frames that are seen later than others may be stored before them.
        with self._open() as (container, stream):
            stamps = sorted(p.pts for p in container.demux(stream) if p.pts is not None and not p.is_discard)
            return [round(float((stamp - stamps[0]) * stream.time_base), 6) for stamp in stamps]

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        last = max(wanted, default=-1)
        with self._open() as (container, stream):
            number = -1
            for number, frame in enumerate(container.decode(stream)):
                if number > last:
                    break
                if number in wanted:
                    # Turned as the camera was held, as EXIF has it of pictures.
                    turned = np.rot90(frame.to_ndarray(format="rgb24"), round((frame.rotation or 0) / 90))
                    yield np.ascontiguousarray(turned)
            if number < last:
                raise PictureError(
                    CUT_OFF,
                    f"the video ends at frame {number + 1}, before the {last + 1} that it promises",
                    remedy="copy or download it again",
                    file=self.path,
                )

    def files(self) -> Iterator[File]:
        yield self.file

    @contextmanager
    def _open(self):
        av = _pyav(self.path)
        try:
            source = str(self.path) if isinstance(self.file.key, Path) else io.BytesIO(self.file.read())
            with av.open(source) as container:
                if not container.streams.video:
                    raise PictureError(UNREADABLE, "there is no picture in this file", file=self.path)
                stream = container.streams.video[0]
                stream.thread_type = "AUTO"
                if stream.width * stream.height > MOST_PIXELS:
                    wrong = f"frames have {stream.width:,} x {stream.height:,} pixels"
                    raise PictureError(OVERSIZE, wrong, remedy="make them smaller", file=self.path)
                yield container, stream
        except av.error.FFmpegError as error:
            raise PictureError(
                UNREADABLE, f"the video cannot be decoded ({error.strerror or error})", file=self.path
            ) from None
        except OSError as error:
            raise PictureError(UNREADABLE, f"cannot be read ({error.strerror})", file=self.path) from None


def _pyav(path: Path):
    try:
        import av
    except ImportError:
        raise DataError(
            "video files need PyAV, which is not installed",
            remedy="pip install 'qkv[video]', or give the clip as a folder of frames or a GIF",
            file=path,
        ) from None
    return av


def read(clip: Clip, most: int) -> tuple[list[Frame], list[float]]:
    """The frames that are read of a clip, and their times."""
    wanted = spread(len(clip.times), most)
    return list(clip.frames(wanted)), [clip.times[number] for number in wanted]


def why(error: PictureError, clip: Path) -> str:
    """What is wrong with a clip, in words that name the frame's file but not the clip."""
    told, file = str(error).removeprefix(f"{error.file}: "), Path(error.file or clip)
    return told if file == clip else f"{file.name}: {told}"
