"""Published word vectors as files: word2vec's text and binary formats, and GloVe's text, with or without a first line.

What makes them hard to read: GloVe's lines may hold blanks inside the word (``. . .``), so numbers are counted from the
right; a binary file may be cut off; a first line ``words width`` looks like a word with one number.
"""

import gzip
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from qkv.data.word_text import open_packed
from qkv.errors import DataError

__all__ = ["FORMATS", "read_vectors", "write_vectors"]

FORMATS = ("word2vec", "word2vec-binary", "glove")
BLOCK = 1 << 20


def read_vectors(path: Path | str, limit: int | None = None) -> tuple[list[str], np.ndarray, list[str]]:
    """Words, float32[words, dim], and lines for the user: what was wrong. Of a word that stands twice the first counts.

    Args:
        path: a file in any of the formats, told from its contents; also .gz, .xz, .zst.
        limit: read only so many words; files begin with the most frequent.

    Raises:
        DataError: it is in none of the formats, is cut off, or holds a number that is not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("there is no such file", file=path)
    try:
        with open_packed(path) as stream:
            head = stream.read(BLOCK)
            first = head.split(b"\n", 1)[0]
            sizes = _header(first)
            rest = head[len(first) + 1 :] if sizes else head
            if sizes and _is_binary(rest, sizes[1]):
                words, rows = _binary(rest, stream, path, sizes, limit)
            else:
                words, rows = _text(rest, stream, path, sizes, limit)
    except (OSError, EOFError) as error:
        raise DataError(f"cannot be read ({error})", remedy="download it again", file=path) from error
    bad = np.flatnonzero(~np.isfinite(rows).all(1))
    if len(bad):
        raise DataError(
            f"the vector of {words[bad[0]]!r} holds a number that is not finite ({len(bad)} such words)", file=path
        )
    return _once(words, rows)


def write_vectors(
    path: Path, words: Sequence[str], rows: np.ndarray, form: str = "word2vec", suffix: str | None = None
) -> None:
    """Write a file that `read_vectors`, gensim and the original programs read.

    Args:
        suffix: which says how it is packed; that of ``path`` unless it will have another name in the end.

    Raises:
        DataError: a word has a blank, which word2vec's formats cannot hold.
    """
    if form not in FORMATS:
        raise DataError(f"there is no format {form!r}", expected=", ".join(FORMATS))
    if form != "glove" and (torn := next((word for word in words if any(c.isspace() for c in word)), None)):
        raise DataError(
            f"the word {torn!r} has a blank, which the format {form} cannot hold", remedy="use --format glove"
        )
    with _opened(path, path.suffix if suffix is None else suffix) as file:
        if form != "glove":
            file.write(f"{len(words)} {rows.shape[1]}\n".encode())
        for word, row in zip(words, rows, strict=True):
            name = word.encode("utf-8", "surrogatepass")
            if form == "word2vec-binary":
                file.write(name + b" " + np.asarray(row, "<f4").tobytes() + b"\n")
            else:
                file.write(name + b" " + " ".join(map(_short, row)).encode() + b"\n")


def _opened(path: Path, suffix: str) -> IO[bytes]:
    """To be written, packed as the suffix says."""
    match suffix.lower():
        case ".gz":
            return gzip.open(path, "wb")
        case ".xz":
            return lzma.open(path, "wb")
        case ".zst":
            raise DataError("a .zst file is read, not written", expected=".gz, .xz, or a plain file", file=path)
    return open(path, "wb")


def _short(number: np.float32) -> str:
    """With as many digits as bring the same float32 back."""
    return np.format_float_scientific(number, trim="-") if abs(number) < 1e-4 else np.format_float_positional(number)


def _header(line: bytes) -> tuple[int, int] | None:
    parts = line.split()
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(part.isdigit() for part in parts) else None


def _is_binary(rest: bytes, width: int) -> bool:
    """Whether the first record's numbers are no text."""
    line = rest.split(b"\n", 1)[0].rstrip()
    parts = line.split(b" ")
    return not (len(parts) > width and all(map(_is_number, parts[-width:])))


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _binary(buffer: bytes, stream: Any, path: Path, sizes: tuple[int, int], limit: int | None):
    count, width = sizes
    wanted = min(count, limit) if limit else count
    words, rows = [], np.empty((wanted, width), np.float32)
    at = 0
    for i in range(wanted):
        while (blank := buffer.find(b" ", at)) < 0 or len(buffer) < blank + 1 + 4 * width:
            more = stream.read(BLOCK)
            if not more:
                raise DataError(
                    f"is cut off: it promises {count:,} words, and the vector of word {i + 1:,} is not whole",
                    remedy="download it again",
                    file=path,
                )
            buffer, at = buffer[at:] + more, 0
        words.append(buffer[at:blank].lstrip(b"\n").decode("utf-8", "replace"))
        rows[i] = np.frombuffer(buffer, "<f4", width, blank + 1)
        at = blank + 1 + 4 * width
    return words, rows


def _text(buffer: bytes, stream: Any, path: Path, sizes: tuple[int, int] | None, limit: int | None):
    width = sizes[1] if sizes else 0
    words, blocks, numbers = [], [], []
    for number, line in enumerate(_lines(buffer, stream), start=2 if sizes else 1):
        if limit and len(words) == limit:
            break
        line = line.rstrip(b" \r\t")
        if not line:
            continue
        if not width:
            width = _width(line)
            if not width:
                raise DataError(
                    "the first line is no word with numbers", expected=", ".join(FORMATS), file=path, line=1
                )
        parts = line.rsplit(b" ", width) if b"\t" not in line else line.replace(b"\t", b" ").rsplit(b" ", width)
        try:
            row = np.array(parts[1:], dtype="S").astype(np.float32)
        except ValueError:
            row = np.empty(0)
        if len(row) != width or not parts[0]:
            raise DataError(
                f"the line has no word and {width} numbers", remedy="is the file whole?", file=path, line=number
            )
        words.append(parts[0].decode("utf-8", "replace"))
        numbers.append(row)
        if len(numbers) == 4096:
            blocks.append(np.stack(numbers))
            numbers.clear()
    if numbers:
        blocks.append(np.stack(numbers))
    if not words:
        raise DataError("holds no vectors", expected=", ".join(FORMATS), file=path)
    if sizes and len(words) < (min(sizes[0], limit) if limit else sizes[0]):
        raise DataError(
            f"is cut off: it promises {sizes[0]:,} words and holds {len(words):,}",
            remedy="download it again",
            file=path,
        )
    return words, np.concatenate(blocks)


def _width(line: bytes) -> int:
    """How many numbers end a line, if at least a word is before them: of ``. . 0.1 0.2`` two."""
    parts = line.split(b" ")
    count = 0
    while count < len(parts) - 1 and _is_number(parts[-1 - count]):
        count += 1
    return count


def _lines(buffer: bytes, stream: Any) -> Iterator[bytes]:
    while True:
        *lines, buffer = buffer.split(b"\n")
        yield from lines
        if not (more := stream.read(BLOCK)):
            break
        buffer += more
    if buffer:
        yield buffer


def _once(words: list[str], rows: np.ndarray) -> tuple[list[str], np.ndarray, list[str]]:
    """Each word once, without line ends inside."""
    first: dict[str, int] = {}
    for i, word in enumerate(words):
        first.setdefault(word.replace("\n", " "), i)
    said = []
    if len(first) < len(words):
        said.append(f"{len(words) - len(first):,} words stand twice; the first vector of each was taken")
        rows = rows[list(first.values())]
    return list(first), rows, said
