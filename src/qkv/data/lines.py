r"""Lines of text as they are in a stream: split at ``\n`` and nowhere else, so that line in is line out.

``str.splitlines`` and text-mode files also break at U+2028, U+0085, form feeds or lone ``\r``; one such character
shifts every later line against its translation. Here bytes are split first and decoded after.
"""

import gzip
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeVar

from qkv.data.normalise import clean, faults
from qkv.errors import DataError

__all__ = ["LONGEST_LINE", "Line", "Unusable", "decode_line", "open_lines", "raw_lines", "read_lines", "windows"]

LONGEST_LINE = 1 << 20  # bytes; a longer line is no sentence, and reading it whole could fill the memory

Unusable = Literal["blank", "undecodable", "over-long"]
T = TypeVar("T")


class Line(NamedTuple):
    """One line of input: cleaned text, or why there is none. ``number`` counts from 1."""

    number: int
    text: str
    unusable: Unusable | None = None
    mended: tuple[str, ...] = ()  # kinds of `qkv.data.normalise.faults` that `clean` removed


def raw_lines(stream: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[bytes | None]:
    r"""Each line without its ``\n``; None for one of more than ``longest`` bytes, which is skipped unread.

    A last line counts whether or not ``\n`` ends it.
    """
    while line := stream.readline(longest + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) <= longest:
            yield line
        else:
            while (rest := stream.readline(longest)) and not rest.endswith(b"\n"):
                pass
            yield None


def decode_line(number: int, raw: bytes | str | None) -> Line:
    """The cleaned line of some bytes (without ``\\n``) or of text that was decoded elsewhere."""
    if raw is None:
        return Line(number, "", "over-long")
    if isinstance(raw, bytes):
        try:
            raw = raw.decode("utf-8")
        except UnicodeDecodeError:
            return Line(number, "", "undecodable")
    text = clean(raw)
    return Line(number, text, None if text else "blank", faults(raw))


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """The lines of translation input, one for each ``\\n``-ended line (and a last one without), as they come.

    Whether a line is over-long in tokens is for the model to say; here only `LONGEST_LINE` bytes is.
    """
    for number, raw in enumerate(raw_lines(stream), start=1):
        yield decode_line(number, raw)


def open_lines(path: Path | str) -> BinaryIO:
    """A file of lines, as bytes; ``.gz`` is unpacked on the way.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path) from None


def windows(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Runs of ``size`` items (the last one shorter), so that an endless stream needs bounded memory."""
    rest = iter(items)
    while window := list(islice(rest, size)):
        yield window
