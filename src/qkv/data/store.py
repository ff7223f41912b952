"""Encoded pairs on disk, mapped into memory: what training reads, however large the corpus.

A folder holds flat arrays: ``source.pieces`` and ``target.pieces`` (ids without marks, one line after the other),
``source.ends`` and ``target.ends`` (where each line ends), ``lines`` (its number in the user's file), and
``store.json`` with the counts and a checksum of each file. It is written under another name and renamed when whole.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from qkv.errors import DataError

__all__ = ["PairStore", "StoreWriter", "checksum", "map_array", "read_checked"]

ARRAYS = ("source.pieces", "source.ends", "target.pieces", "target.ends", "lines")


class PairStore:
    """Encoded pairs, numbered from 0.

    ``source`` and ``target`` are one side each (`Side`); ``lines`` is int64[pair], the line numbers in the user's file.
    """

    def __init__(self, folder: Path):
        """Open what `StoreWriter` wrote.

        Raises:
            DataError: the folder is not whole: a file is missing, cut short or changed.
        """
        folder = Path(folder)
        try:
            header = read_checked(folder, ARRAYS)
            self.lines = map_array(folder / "lines", "<i8")
            self.source, self.target = (
                Side(
                    map_array(folder / f"{side}.pieces", header["dtype"][side]),
                    map_array(folder / f"{side}.ends", "<i8"),
                )
                for side in ("source", "target")
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"the encoded data is damaged ({error})", remedy=f"remove {folder}", file=folder) from error

    def __len__(self) -> int:
        return len(self.lines)


class Side:
    """The lines of one side: ``side[i]`` is an array of ids, `lengths` how many there are."""

    def __init__(self, pieces: np.ndarray, ends: np.ndarray):
        self.pieces, self.ends = pieces, ends

    def __getitem__(self, i: int) -> np.ndarray:
        return self.pieces[self.ends[i - 1] if i else 0 : self.ends[i]]

    def lengths(self, index: np.ndarray) -> np.ndarray:
        """int64[index]: the number of pieces of each of the lines asked for."""
        before = np.where(index > 0, self.ends[np.maximum(index - 1, 0)], 0)
        return self.ends[index] - before


class StoreWriter:
    """Writes a `PairStore` folder. Use as a context; the folder is whole when the context has ended."""

    def __init__(self, folder: Path, source_size: int, target_size: int):
        self.folder = Path(folder)
        self.dtype = {
            side: "<u2" if size <= 1 << 16 else "<u4"
            for side, size in (("source", source_size), ("target", target_size))
        }
        self.count = 0
        self._ends = {"source": 0, "target": 0}

    def __enter__(self) -> "StoreWriter":
        self.folder.mkdir(parents=True)
        self._files = {name: open(self.folder / name, "wb") for name in ARRAYS}  # noqa: SIM115 closed by __exit__
        return self

    def add(self, source: Iterable[list[int]], target: Iterable[list[int]], lines: list[int]) -> None:
        """Append some pairs."""
        for side, rows in (("source", source), ("target", target)):
            rows = list(rows)
            ends = self._ends[side] + np.cumsum([len(row) for row in rows], dtype=np.int64)
            self._ends[side] = int(ends[-1]) if len(ends) else self._ends[side]
            np.array([i for row in rows for i in row], self.dtype[side]).tofile(self._files[f"{side}.pieces"])
            ends.astype("<i8").tofile(self._files[f"{side}.ends"])
        np.array(lines, "<i8").tofile(self._files["lines"])
        self.count += len(lines)

    def __exit__(self, kind, error, trace) -> None:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        if kind is None:
            checksums = {name: checksum(self.folder / name) for name in ARRAYS}
            header = {"version": 1, "count": self.count, "dtype": self.dtype, "checksums": checksums}
            (self.folder / "store.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")


def read_checked(folder: Path, arrays: Iterable[str]) -> dict:
    """The header of a store, ``store.json``, once each of its files is found to be as it was written.

    Raises:
        ValueError, OSError, KeyError: one is not, or is not there.
    """
    header = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    for name in arrays:
        if checksum(folder / name) != header["checksums"][name]:
            raise ValueError(f"{name} has changed")
    return header


def map_array(file: Path, dtype: str) -> np.ndarray:
    """Numbers in a file, mapped into memory."""
    return np.memmap(file, dtype, "r") if file.stat().st_size else np.empty(0, dtype)


def checksum(file: Path) -> str:
    """Of a file's bytes."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:32]
