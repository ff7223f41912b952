"""Small pictures and folders of them, made by pillow, for the tests of the image room."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def noise(seed: int, height: int = 12, width: int = 10) -> np.ndarray:
    """uint8[height, width, 3]: a picture like no other."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def packed(image: Image.Image, form: str = "PNG", **how) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **how)
    return stream.getvalue()


def png(seed: int, height: int = 12, width: int = 10) -> bytes:
    return packed(Image.fromarray(noise(seed, height, width)))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def raw_png(width: int, height: int, depth: int, colour: int, rows: bytes, *more: bytes) -> bytes:
    """A PNG as pillow does not write them: 16-bit colour, or a header that promises too much."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(more) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
    return folder


def pets(folder: Path, count: int = 20, first: int = 0, classes: tuple[str, ...] = ("cat", "dog")) -> Path:
    """``count`` pictures of each class, all different."""
    names = [f"{name}/{i:02}.png" for name in classes for i in range(count)]
    return write(folder, {name: png(first + i) for i, name in enumerate(names)})
