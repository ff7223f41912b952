r"""Lines of text as they are in a stream: split at ``\n`` and nowhere else, so that line in is line out.

``str.splitlines`` and text-mode files also break at U+2028, U+0085, form feeds or lone ``\r``; one such character
shifts every later line against its translation. Here bytes are split first and decoded after.
"""

import codecs
import gzip
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

from qkv.data.normalise import clean, faults
from qkv.errors import DataError

__all__ = [
    "LONGEST_LINE",
    "Line",
    "Unusable",
    "decode_line",
    "open_lines",
    "raw_lines",
    "read_lines",
    "require_text",
    "some_lines",
    "windows",
]

LONGEST_LINE = 1 << 20  # bytes; a longer line is no sentence, and reading it whole could fill the memory

HEAD = 1024  # bytes by which a stream that is no text is known
SIGNATURES = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"RIFF": "a RIFF file (WebP, WAV, AVI)",
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a ZIP archive (.docx and .xlsx are such, too)",
    b"\x1f\x8b": "a gzip file, whose name should end in .gz",
    b"\xfd7zXZ": "an xz file",
    b"(\xb5/\xfd": "a zstd file",
    b"BZh": "a bzip2 file",
    b"PAR1": "a Parquet table",
    b"\x93NUMPY": "a numpy array",
    b"\x7fELF": "a program",
}
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))  # that no text has many of
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

    Raises:
        DataError: it is no text, as far as its beginning tells.
    """
    if hasattr(stream, "peek"):
        require_text(stream.peek(HEAD), getattr(stream, "name", None))
    while line := stream.readline(longest + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) <= longest:
            yield line
        else:
            while (rest := stream.readline(longest)) and not rest.endswith(b"\n"):
                pass
            yield None


def require_text(head: bytes, file: Any = None) -> None:
    """Raise DataError for what is no text by its first bytes, saying what it looks like.

    A line of text with a fault in it is not meant: that is its reader's to mark and count.
    """
    head = head[:HEAD]
    controls = sum(head.count(control) for control in CONTROLS)
    what = next((name for signature, name in SIGNATURES.items() if head.startswith(signature)), "")
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        wrong, remedy = "is UTF-16", "iconv -f UTF-16 -t UTF-8 turns it into that"
    elif what and (controls or not _decodes(head)):
        wrong, remedy = f"is no text; it looks like {what}", "name another file"
    elif len(head) >= 32 and controls > len(head) / 20:
        wrong, remedy = "is no text; it looks binary", "name another file"
    else:
        return
    file = file if isinstance(file, (str, Path)) else "the input"
    raise DataError(wrong, expected="lines of text in UTF-8", remedy=remedy, file=file)


def _decodes(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return False
    return True


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


def some_lines(stream: BinaryIO, file: Path) -> Iterator[Line]:
    """`read_lines` of what must have a line; a pipe shows only by being read that it has none.

    Raises:
        DataError: there is not one.
    """
    lines = read_lines(stream)
    if (first := next(lines, None)) is None:
        raise DataError("there is not one line in it", file=file)
    yield from chain([first], lines)


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
