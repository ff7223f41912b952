r"""Text to learn word vectors from: read once, in pieces, however it is packed and however long its lines are.

A line is a sentence, of any length: a line of more than `PIECE` bytes is read in pieces that end at a blank, and goes
on being one sentence. Lines end at ``\n`` only. Every line passes through `qkv.data.normalise.clean`.
"""

import gzip
import lzma
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from qkv.data.formats import TABLES, open_corpus
from qkv.data.lines import require_text
from qkv.errors import ConfigError, DataError, nearest

__all__ = ["PACKED", "WordText", "files_of", "given_sentences", "open_packed", "pieces_of", "sentences_in"]

PIECE = 1 << 20  # bytes
PACKED = (".gz", ".xz", ".zst")
PLAIN = (".txt", ".text", ".tok", "")


@dataclass(frozen=True)
class WordText:
    """Which text, and what of it are words."""

    folder: str = ""
    """A file of text, a line a sentence (also .gz .xz .zst), a table, a folder of them, - or the name of a dataset."""

    train: str = ""
    """The same; it wins over the folder."""

    column: str = "text"
    """Of a table or a dataset: where the text is."""

    pattern: str = ""
    """A regular expression: what it finds in a line are the words. If it is empty, words stand between blanks."""

    pieces: str = ""
    """The folder of a run whose subwords are the words."""

    lowercase: bool = False
    """Without capitals."""

    min_count: int = 5
    """Words that occur less often are dropped before windows are made."""

    most_words: int | None = None
    """Only so many words are kept: the most frequent, of equally frequent ones the first in order of code points."""

    def __post_init__(self):
        if self.min_count < 1:
            raise ConfigError(f"data.min_count is {self.min_count}", expected="a whole number from 1")
        if self.most_words is not None and self.most_words < 1:
            raise ConfigError(f"data.most_words is {self.most_words}", expected="a whole number from 1")
        if self.pattern and self.pieces:
            raise ConfigError("words are cut by data.pattern and by data.pieces", expected="one of them")

    @property
    def place(self) -> str:
        if not (self.train or self.folder):
            raise ConfigError("there are no data", remedy="name them with --data; - is the standard input")
        return self.train or self.folder


def files_of(place: str) -> list[Path]:
    """The files at a place, in order of name; none for the standard input or for what is no path (a dataset).

    Raises:
        DataError: a folder holds no text.
    """
    path = Path(place).expanduser()
    if path.is_file():
        return [path]
    if not path.is_dir():
        return []
    below = sorted(file for file in path.rglob("*") if file.is_file())
    seen = [file for file in below if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if found := [file for file in seen if _bare(file).suffix in (*PLAIN, *TABLES)]:
        return found
    raise DataError("there is no text in this folder", expected="files ending in .txt, also .txt.gz", file=path)


def sentences_in(place: str, column: str, counts: Counter) -> Iterator[tuple[str, bool]]:
    """The text at a place as ``(piece, whether its sentence ends there)``; what is dropped is counted.

    Raises:
        DataError: nothing is there, or a file is damaged.
    """
    if place == "-":
        yield from pieces_of(sys.stdin.buffer, counts)
        return
    files = files_of(place)
    if not files:
        if "/" in place or Path(place).suffix in (*PLAIN[:-1], *TABLES, *PACKED):
            path = Path(place)
            siblings = sorted(p.name for p in path.parent.iterdir())[:200] if path.parent.is_dir() else []
            remedy = nearest(path.name, siblings) if siblings else f"there is no folder {path.parent} either"
            raise DataError(f"there is no file {place}", remedy=remedy)
        yield from _of_table(place, column, counts)
    for file in files:
        if _bare(file).suffix in TABLES:
            yield from _of_table(str(file), column, counts)
            continue
        try:
            with open_packed(file) as stream:
                yield from pieces_of(stream, counts, file)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise DataError(f"cannot be read ({error})", remedy="copy or download it again", file=file) from error


def open_packed(path: Path | str) -> Any:
    """A file as a stream of unpacked bytes."""
    name = str(path)
    if name.endswith(".gz"):
        return gzip.open(path, "rb")
    if name.endswith(".xz"):
        return lzma.open(path, "rb")
    if name.endswith(".zst"):
        import zstandard

        return _Zst(path, zstandard)
    return open(path, "rb")


class _Zst:
    """A .zst file as a stream; its library's errors are OSErrors here."""

    def __init__(self, path: Path | str, library: Any):
        self._file, self._library = open(path, "rb"), library  # noqa: SIM115 closed by __exit__
        self._stream = library.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)

    def __enter__(self) -> "_Zst":
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except self._library.ZstdError as error:
            raise OSError(str(error)) from None


def pieces_of(stream: BinaryIO, counts: Counter, file: Path | None = None) -> Iterator[tuple[str, bool]]:
    """The lines of a stream; a long one comes in several pieces, cut at blanks, of which the last ends it.

    Raises:
        DataError: it is no text, or UTF-16.
    """
    rest, begun = b"", False
    while block := stream.read(PIECE):
        if not begun:
            require_text(block, file)
        begun = True
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield _decoded(line, counts), True
        if len(rest) > PIECE and (cut := max(rest.rfind(b" "), rest.rfind(b"\t"))) > 0:
            yield _decoded(rest[:cut], counts), False
            rest = rest[cut:]
    if rest:
        yield _decoded(rest, counts), True


def given_sentences(sentences: Iterable[str | Sequence[str]]) -> Iterator[tuple[str | Sequence[str], bool]]:
    """Sentences from Python: each a line of text, or words. They are gone through once, so a generator will do.

    Raises:
        DataError: the whole is one string, or a sentence is something else.
    """
    if isinstance(sentences, str | bytes):
        raise DataError("one string was given where sentences were expected", remedy="put it into a list")
    for number, sentence in enumerate(sentences, start=1):
        if isinstance(sentence, str):
            yield sentence, True
        elif isinstance(sentence, Sequence) and all(isinstance(word, str) for word in sentence):
            yield list(sentence), True
        else:
            raise DataError(f"sentence {number} is {sentence!r}", expected="a line of text or a list of words")


def _decoded(line: bytes, counts: Counter) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        counts["undecodable lines dropped"] += 1
        return ""


def _of_table(where: str, column: str, counts: Counter) -> Iterator[tuple[str, bool]]:
    for row in open_corpus(where, column, column):
        if row.source is None:
            counts["unreadable rows dropped"] += 1
        else:
            yield (row.source if isinstance(row.source, str) else _decoded(row.source, counts)), True


def _bare(file: Path) -> Path:
    return file.with_suffix("") if file.suffix in PACKED else file
