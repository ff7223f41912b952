"""Where the frames of a clip come from: a folder of pictures, an animation, a video file; all give the same pixels as
`qkv.data.pictures.decode` would, at times in seconds."""

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from qkv.data.class_folders import SUFFIXES, SYSTEM_FILES
from qkv.data.pictures import (
    CUT_OFF,
    MOST_PIXELS,
    OVERSIZE,
    UNREADABLE,
    PictureError,
    decode,
    decode_frames,
    frame_times,
    read_file,
)
from qkv.errors import DataError

__all__ = ["ANIMATED", "VIDEOS", "Clip", "Frame", "is_clip", "open_clip", "read", "spread", "stills_in", "why"]

ANIMATED = frozenset((".gif", ".webp", ".apng"))  # may move, or be a still picture
VIDEOS = frozenset((".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".ogv", ".ts"))

Frame = UInt8[np.ndarray, "row column 3"]


class Clip(Protocol):
    """A clip that was found; nothing is decoded before it is asked for."""

    path: Path

    times: list[float]
    """When each frame begins, in seconds. Raises PictureError: the clip cannot be read."""

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        """The frames of these numbers (from 0), in order. Raises PictureError: one cannot be decoded."""
        ...

    def files(self) -> Iterator[Path]:
        """The files that it is made of, in order."""
        ...


def open_clip(path: Path, rate: float = 1.0) -> Clip:
    """The clip at a path; ``rate`` is of folders of pictures, in frames a second."""
    if path.is_dir():
        return FrameFolder(path, rate)
    return Video(path) if path.suffix.lower() in VIDEOS else Animation(path)


def is_clip(path: Path) -> bool:
    """Whether a folder of pictures, a video or a picture that moves lies there; only names and headers are read."""
    if path.is_dir():
        return bool(stills_in(path))
    return path.suffix.lower() in VIDEOS or (path.suffix.lower() in ANIMATED and _moves(path))


def spread(count: int, most: int) -> list[int]:
    """Which frames of ``count`` are read: all, or the middle ones of ``most`` equal stretches (Wang et al. 2016)."""
    if count <= most:
        return list(range(count))
    return [(2 * i + 1) * count // (2 * most) for i in range(most)]


def stills_in(folder: Path) -> list[Path]:
    """The pictures in a folder that are frames of one clip, in the order of the numbers in their names: 2 before 10."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_file()]
    files = [folder / name for name in names if _is_still(folder, name)]
    return sorted(files, key=lambda file: [(0, int(s), "") if s.isdecimal() else (1, 0, s) for s in _steps(file.name)])


def _is_still(folder: Path, name: str) -> bool:
    suffix = os.path.splitext(name)[1].lower()
    if name.startswith(".") or name.lower() in SYSTEM_FILES or suffix not in SUFFIXES:
        return False
    return suffix not in ANIMATED or not _moves(folder / name)


def _steps(name: str) -> list[str]:
    return [step for step in re.split(r"(\d+)", name) if step]


def _moves(file: Path) -> bool:
    """Whether a picture has several frames; what cannot be opened is taken for one that has, and told later."""
    try:
        with Image.open(file) as image:
            return bool(getattr(image, "is_animated", False))
    except Exception:  # of pillow's openers
        return True


@dataclass(frozen=True)
class FrameFolder:
    """A folder of pictures, one a frame."""

    path: Path
    rate: float

    @cached_property
    def _files(self) -> list[Path]:
        return stills_in(self.path)

    @cached_property
    def times(self) -> list[float]:
        return [round(number / self.rate, 6) for number in range(len(self._files))]

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        for number in sorted(wanted):
            yield decode(self._files[number]).pixels

    def files(self) -> Iterator[Path]:
        yield from self._files


@dataclass(frozen=True)
class Animation:
    """An animated GIF, WebP or APNG."""

    path: Path

    @cached_property
    def times(self) -> list[float]:
        source = read_file(self.path)
        if not source:
            raise PictureError(UNREADABLE, "the file is empty", expected="an animation", file=self.path)
        return frame_times(source, str(self.path))

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        yield from decode_frames(read_file(self.path), frozenset(wanted), str(self.path))

    def files(self) -> Iterator[Path]:
        yield self.path


@dataclass(frozen=True)
class Video:
    """A video file, through PyAV; of several video streams the first."""

    path: Path

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

    def files(self) -> Iterator[Path]:
        yield self.path

    @contextmanager
    def _open(self):
        av = _pyav(self.path)
        try:
            with av.open(str(self.path)) as container:
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
