"""What is remembered of every pair while a corpus is checked: in files, not in memory, however large the corpus.

Of each pair 29 bytes in a mapped array (`NOTE`), and its clean text, so that nothing is cleaned twice.
"""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["DROPPED", "HELD_OUT", "KEPT", "NOTE", "STRETCH", "CleanPair", "Notes"]

KEPT, DROPPED, HELD_OUT = 0, 1, 2  # states of a pair
STRETCH = 1 << 16  # notes handled at once
NOTE = np.dtype(
    [
        ("pair", "<u8"),  # hash of both sides
        ("source", "<u8"),  # hash of the source
        ("line", "<i8"),
        ("ratio", "<f4"),  # log of target length to source length; nan if the pair cannot be used
        ("state", "u1"),
    ]
)


class CleanPair(NamedTuple):
    """A pair after `clean`; ``why`` is the kind of what is wrong with it, "" if it can be used."""

    line: int
    source: str
    target: str
    why: str = ""


class Notes:
    """Notes of the pairs of one corpus, in order: `add` or `add_dropped` each, then `done`, then ``array`` and `pairs`.

    ``array`` is mapped, and its ``state`` may be changed. Without ``keep_text`` there are no `pairs`: enough for a
    report, and no copy of the corpus on the disk.
    """

    def __init__(self, folder: Path, keep_text: bool = True):
        folder.mkdir()
        self.folder, self.keep_text = folder, keep_text
        self.array = np.empty(0, NOTE)
        self._waiting: list[tuple[int, int, int, float, int]] = []
        self._files = [open(folder / name, "wb") for name in ("notes", "source", "target")]  # noqa: SIM115 see `done`

    def add(self, line: int, source: str, target: str) -> None:
        """Remember a pair that can be used."""
        left, right = source.encode(), target.encode()
        ratio = math.log((len(target) + 10) / (len(source) + 10))  # + 10: short lines vary more
        self._add((_hash(left + b"\n" + right), _hash(left), line, ratio, KEPT), left, right)

    def add_dropped(self, line: int) -> None:
        """Remember that a pair cannot be used."""
        self._add((0, 0, line, math.nan, DROPPED), b"", b"")

    def _add(self, note: tuple[int, int, int, float, int], source: bytes, target: bytes) -> None:
        self._waiting.append(note)
        if self.keep_text:
            self._files[1].write(source + b"\n")
            self._files[2].write(target + b"\n")
        if len(self._waiting) == STRETCH:
            self._flush()

    def _flush(self) -> None:
        np.array(self._waiting, dtype=NOTE).tofile(self._files[0])
        self._waiting.clear()

    def done(self) -> None:
        """Nothing more is added."""
        self._flush()
        for file in self._files:
            file.close()
        path = self.folder / "notes"
        self.array = np.memmap(path, NOTE, "r+") if path.stat().st_size else self.array

    def pairs(self, state: int = KEPT) -> Iterator[CleanPair]:
        """The pairs of a state, in order, with their clean text."""
        with open(self.folder / "source", "rb") as sources, open(self.folder / "target", "rb") as targets:
            for begin in range(0, len(self.array), STRETCH):
                notes = self.array[begin : begin + STRETCH]
                # Notes first: zip stops at the end of the stretch without taking a line too many.
                for line, now, source, target in zip(
                    notes["line"].tolist(), notes["state"].tolist(), sources, targets, strict=False
                ):
                    if now == state:
                        yield CleanPair(line, source[:-1].decode(), target[:-1].decode())


def _hash(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")
