"""A picture file as pixels: the one way to decode, for training, answering, serving and drawing alike.

Whatever lies in the file, out come three 8-bit channels, turned as the camera was held:

- EXIF orientation is applied, so that attention is drawn on the picture that the model saw;
- 16-bit values are scaled (65535 is 255), not cut off;
- palettes are looked up; transparent pixels lie on white; CMYK becomes RGB; grey becomes three equal channels;
- of an animation or a file of several pages, the first frame is taken.

Colour profiles are not applied: a wide-gamut picture keeps its numbers, as in the published training sets.
"""

import io
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from qkv.errors import DataError

__all__ = [
    "CUT_OFF",
    "MOST_BYTES",
    "MOST_PIXELS",
    "OVERSIZE",
    "UNREADABLE",
    "Picture",
    "PictureError",
    "decode",
    "decode_frames",
    "frame_times",
    "from_image",
    "read_file",
]

MOST_PIXELS = (256 << 20) // 3  # 256 MiB of RGB; pillow warns from here on
MOST_BYTES = 512 << 20  # of a file
WHITE = (255, 255, 255, 255)
UNREADABLE, CUT_OFF, OVERSIZE = "unreadable pictures", "cut-off or damaged pictures", "oversize pictures"

TENTH = 0.1  # seconds that a frame of an animation stands which does not say, or says 0: as browsers have it

_ORIENTATION = 0x0112
_TURN = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class PictureError(DataError):
    """A picture that cannot be used; ``kind`` is `UNREADABLE`, `CUT_OFF` or `OVERSIZE`."""

    def __init__(self, kind: str, wrong: str, **where):
        super().__init__(wrong, **where)
        self.kind = kind


class Picture(NamedTuple):
    """Pixels, and what had to be done to get them: some of ``turned``, ``16-bit``, ``palette``, ``transparent``,
    ``CMYK``, ``grey``, ``animated``."""

    pixels: UInt8[np.ndarray, "row column 3"]
    mended: tuple[str, ...] = ()


def decode(source: bytes | Path | str, name: str = "") -> Picture:
    """Decode a file, or its bytes.

    Args:
        source: a path, or what the file holds.
        name: what messages call it; a path names itself.

    Raises:
        PictureError (a DataError): it is missing, no picture, cut off or damaged, or larger than `MOST_PIXELS` by its
            header, in which case nothing of its size was allocated.
    """
    if not isinstance(source, bytes):
        name, source = name or str(source), read_file(source)
    if not source:
        raise PictureError(UNREADABLE, "the file is empty", expected="a picture", file=name)
    image = _open(source, name)
    return from_image(image, name)


def from_image(image: Image.Image, name: str = "") -> Picture:
    """The same of a picture that pillow has opened, or made.

    Raises:
        PictureError: as `decode`.
    """
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise _oversize(f"the picture has {width:,} x {height:,} pixels", name)
    try:
        mended = _to_mend(image)
        image.load()
        # TIFF is turned by pillow itself as it is loaded, and then says so no more.
        turn = _TURN.get(_orientation(image))
        if turn is not None:
            image = image.transpose(turn)
        return Picture(_rgb(image, "16-bit" in mended, name), mended)
    except PictureError:
        raise
    except Exception as error:  # pillow's decoders raise all kinds
        raise PictureError(
            CUT_OFF, f"the picture is cut off or damaged ({error})", remedy="copy or download it again", file=name
        ) from error


def frame_times(source: bytes, name: str) -> list[float]:
    """When each frame of an animation (GIF, WebP, APNG) begins, in seconds; of a still picture, 0.

    Raises:
        PictureError: as `decode`.
    """
    times, end = [], 0.0
    for image in _frames(source, name):
        times.append(round(end, 6))
        end += image.info.get("duration", 0) / 1000 or TENTH
    return times


def decode_frames(source: bytes, wanted: Collection[int], name: str) -> Iterator[UInt8[np.ndarray, "row column 3"]]:
    """The frames of an animation whose numbers are wanted, in order, as `decode` would give them.

    Raises:
        PictureError: as `decode`.
    """
    for number, image in enumerate(_frames(source, name)):
        if number in wanted:
            # Each frame is laid over those before it by pillow, in colours; what is still clear then lies on white.
            yield from_image(image.copy(), name).pixels


def _frames(source: bytes, name: str) -> Iterator[Image.Image]:
    """An animation at each of its frames in turn."""
    image = _open(source, name)
    if image.width * image.height > MOST_PIXELS:
        raise _oversize(f"the picture has {image.width:,} x {image.height:,} pixels", name)
    number, count = 0, 1
    while number < count:
        try:
            count = getattr(image, "n_frames", 1)  # GIF is read through to count them
            image.seek(number)
            image.load()
        except Exception as error:  # pillow's decoders raise all kinds
            raise PictureError(
                CUT_OFF, f"frame {number} is cut off or damaged ({error})", remedy="copy it again", file=name
            ) from error
        yield image
        number += 1


def read_file(path: Path | str) -> bytes:
    """All bytes of a file. Raises PictureError: it is not there, or has more than `MOST_BYTES`."""
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _oversize(f"the file has {path.stat().st_size:,} bytes", str(path))
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a value that is no path holds a zero byte
        said = error.strerror if isinstance(error, OSError) else error
        raise PictureError(UNREADABLE, f"cannot be read ({said})", file=path) from None


def _open(source: bytes, name: str) -> Image.Image:
    """The header only: pixels are decoded when they are asked for."""
    try:
        return Image.open(io.BytesIO(source))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        pixels = re.search(r"\d+", str(error))  # in pillow's own words: "Image size (400000000 pixels) exceeds ..."
        raise _oversize(f"the picture has {int(pixels[0]):,} pixels" if pixels else str(error), name) from None
    except Exception as error:
        begin = source[:8].hex(" ")
        raise PictureError(
            UNREADABLE,
            f"this is no picture that can be read (it begins with {begin})",
            expected="JPEG, PNG, WebP, GIF, BMP, TIFF or another format of pillow",
            file=name,
        ) from error


def _oversize(wrong: str, name: str) -> PictureError:
    expected = f"at most {MOST_PIXELS:,} pixels and {MOST_BYTES:,} bytes"
    return PictureError(OVERSIZE, wrong, expected=expected, remedy="make it smaller", file=name)


def _orientation(image: Image.Image) -> int:
    try:
        return image.getexif().get(_ORIENTATION, 1)
    except Exception:  # broken EXIF is no reason to lose the picture
        return 1


def _to_mend(image: Image.Image) -> tuple[str, ...]:
    """What makes this more than plain 8-bit RGB; asked before it is loaded, which forgets some of it."""
    # Before EXIF: a PNG may be loaded to find it, and has no tiles then. What pillow has made itself never has any.
    mode, tiles = image.mode, list(getattr(image, "tile", ()))
    found = {
        "turned": _orientation(image) in _TURN,
        "16-bit": mode.startswith("I") or any(";16" in str(tile[3]) for tile in tiles),
        "palette": mode in ("P", "PA"),
        "transparent": mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info,
        "CMYK": mode == "CMYK",
        "grey": mode in ("1", "L", "LA", "La") or mode.startswith("I"),
        # A phone's MPO holds previews, not frames.
        "animated": image.format != "MPO" and getattr(image, "is_animated", False),
    }
    return tuple(fault for fault, is_so in found.items() if is_so)


def _rgb(image: Image.Image, deep: bool, name: str) -> UInt8[np.ndarray, "row column 3"]:
    hidden = image.info.get("transparency")
    if image.mode.startswith("I"):
        return _from_deep_grey(np.asarray(image), hidden, name)
    if image.mode == "F":
        raise PictureError(
            UNREADABLE,
            "the picture holds floating-point values, which do not say what is white",
            expected="8 or 16 bits a channel",
            remedy="save it as a 16-bit PNG",
            file=name,
        )
    if deep and isinstance(hidden, tuple):  # the hidden colour has 16 bits, and what pillow kept of the pixels has 8
        image.info["transparency"] = tuple(value >> 8 for value in hidden)
    if image.mode in ("La", "RGBa"):  # colours already multiplied by alpha
        image = image.convert(image.mode.upper())
    if image.mode in ("LA", "PA", "RGBA") or hidden is not None:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, WHITE), image)
    return np.array(image.convert("RGB"))


def _from_deep_grey(values: np.ndarray, hidden: int | None, name: str) -> UInt8[np.ndarray, "row column 3"]:
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > 65535:
        wrong = f"the picture holds values from {low:,} to {high:,}"
        raise PictureError(UNREADABLE, wrong, expected="16 bits: from 0 to 65,535", file=name)
    grey = (values.astype(np.int32) + 128) // 257  # 65535 = 255 * 257, so this is the nearest 8-bit value
    if isinstance(hidden, int):
        grey[values == hidden] = 255
    return np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2)
