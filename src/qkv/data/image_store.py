"""Decoded pictures on disk, mapped into memory, each at its own size: decoding is most of a small picture's cost.

A folder holds ``pixels`` (8-bit RGB, one picture after the other), ``ends`` (where each ends) and ``shapes`` (its
height and width), and ``store.json`` with a checksum of each file. A picture that is large, or for which the room
given is too little, has no pixels here: it is decoded anew whenever it is wanted.
"""

import json
import os
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from qkv.data.store import checksum, read_checked
from qkv.errors import DataError

__all__ = ["ImageStore", "ImageStoreWriter"]

ARRAYS = {"pixels": "u1", "ends": "<i8", "shapes": "<i4"}


class ImageStore:
    """Pictures numbered from 0: ``store[i]`` are pixels, or None if they are not kept."""

    def __init__(self, folder: Path):
        """Open what `ImageStoreWriter` wrote.

        Raises:
            DataError: the folder is not whole: a file is missing, cut short or changed.
        """
        folder = Path(folder)
        try:
            read_checked(folder, ARRAYS)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"the decoded pictures are damaged ({error})", remedy=f"remove {folder}", file=folder
            ) from error
        self._pixels, self._ends, shapes = (_map(folder / name, dtype) for name, dtype in ARRAYS.items())
        self._shapes = shapes.reshape(-1, 2)

    def __len__(self) -> int:
        return len(self._ends)

    def holds(self, i: int) -> bool:
        return bool(self._shapes[i, 0])

    def __getitem__(self, i: int) -> UInt8[np.ndarray, "row column 3"] | None:
        height, width = self._shapes[i]
        begin = self._ends[i - 1] if i else 0
        return self._pixels[begin : self._ends[i]].reshape(height, width, 3) if height else None


class ImageStoreWriter:
    """Writes an `ImageStore` folder of at most ``room`` bytes. The folder is whole when the context has ended."""

    def __init__(self, folder: Path, room: int):
        self.folder, self.room = Path(folder), room
        self._end = 0

    def __enter__(self) -> "ImageStoreWriter":
        self.folder.mkdir(parents=True)
        self._files = {name: open(self.folder / name, "wb") for name in ARRAYS}  # noqa: SIM115 closed by __exit__
        return self

    def add(self, pixels: UInt8[np.ndarray, "row column 3"] | None) -> None:
        """Append a picture, or the place of one that is not kept."""
        kept = pixels is not None and self._end + pixels.nbytes <= self.room
        if kept:
            pixels.tofile(self._files["pixels"])
            self._end += pixels.nbytes
        np.array([self._end], ARRAYS["ends"]).tofile(self._files["ends"])
        np.array(pixels.shape[:2] if kept else (0, 0), ARRAYS["shapes"]).tofile(self._files["shapes"])

    def __exit__(self, kind, error, trace) -> None:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        if kind is None:
            header = {"version": 1, "checksums": {name: checksum(self.folder / name) for name in ARRAYS}}
            (self.folder / "store.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")


def _map(file: Path, dtype: str) -> np.ndarray:
    # As a plain array: slices of a memmap are slow to make, and are made for every picture of a batch.
    return np.asarray(np.memmap(file, dtype, "r")) if file.stat().st_size else np.empty(0, dtype)
