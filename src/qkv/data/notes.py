"""What is remembered of every pair while a corpus is checked: 29 bytes in a file that is mapped, not held in memory."""

from pathlib import Path

import numpy as np

__all__ = ["DROPPED", "HELD_OUT", "KEPT", "NOTE", "STRETCH", "Notes"]

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


class Notes:
    """What is remembered of every pair of a corpus, in order, in a file."""

    def __init__(self, file: Path):
        self.file = file
        self._waiting: list[tuple] = []
        self._stream = open(file, "wb")  # noqa: SIM115 closed by `done`

    def add(self, pair: int, source: int, line: int, ratio: float, state: int) -> None:
        self._waiting.append((pair, source, line, ratio, state))
        if len(self._waiting) == STRETCH:
            self._flush()

    def _flush(self) -> None:
        np.array(self._waiting, dtype=NOTE).tofile(self._stream)
        self._waiting.clear()

    def done(self) -> np.ndarray:
        """All notes as a mapped array of `NOTE` that can be changed."""
        self._flush()
        self._stream.close()
        return np.memmap(self.file, NOTE, "r+") if self.file.stat().st_size else np.empty(0, NOTE)
