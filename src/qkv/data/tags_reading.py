"""Tagged sentences as they lie in the user's files: columns, a word a line, a blank line between sentences.

Columns are separated by a tab where the file's first line of words has one, else by blanks. What is no word: lines of
a comment (``# ...`` without a second column), ``-DOCSTART-``, and of .conllu the rows of word groups (``1-2``) and of
empty words (``1.1``).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from qkv.data.discover import find_parts
from qkv.data.lines import decode_line, open_lines, raw_lines
from qkv.data.pairs import PARTS
from qkv.data.report import Report
from qkv.data.tags import SUFFIXES, TagFiles
from qkv.errors import ConfigError, DataError, nearest

__all__ = ["Sentence", "find_tagged", "is_tagged", "read_sentences", "read_words"]

NO_WORD = "lines without a usable word, whose sentences are dropped"
CONLLU = ("2", "4")  # columns of the form and of its universal part of speech


class Sentence(NamedTuple):
    """The words of a sentence, their tags, and the lines that they stand in."""

    file: str
    lines: tuple[int, ...]
    words: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{self.file}:{self.lines[0]}"

    @property
    def texts(self) -> tuple[str, ...]:
        return self.words

    @property
    def label(self) -> tuple[str, ...]:
        return self.tags


def is_tagged(path: Path) -> bool:
    """Whether a file is one of tagged words, by its name."""
    return path.is_file() and path.name.removesuffix(".gz").endswith(SUFFIXES)


def find_tagged(data: TagFiles) -> dict[str, Path]:
    """The file of each part.

    Raises:
        ConfigError, DataError: nothing is named, or nothing is there.
    """
    found: dict[str, Path] = {}
    if data.folder:
        path = Path(data.folder).expanduser()
        if path.is_dir():
            found = {part: Path(file) for part, file in find_parts(path, SUFFIXES).items() if is_tagged(Path(file))}
            if not found:
                raise DataError(
                    "there are no tagged sentences",
                    expected="train" + " or train".join(SUFFIXES),
                    remedy="or name a file with --data.train",
                    file=path,
                )
        else:
            found = {"train": path}
    found |= {part: Path(where).expanduser() for part in PARTS if (where := getattr(data, part))}
    if not found:
        raise ConfigError("no data is named", remedy="say --data FOLDER or --data FILE")
    for path in found.values():
        if not path.is_file():
            raise DataError("there is no such file", remedy="name a file of words and tags", file=path)
    return found


def read_sentences(path: Path, part: str, data: TagFiles, report: Report) -> list[Sentence]:
    """The sentences of a file that can be used. Lines without the columns that are needed refuse it, in the report."""
    rows = _Columns(path, data.word, data.tag)
    found, short = [], []
    for lines in rows.sentences():
        words, tags, broken = [], [], False
        for number, cells in lines:
            if len(cells) < rows.needed:
                short.append((number, cells))
                broken = True
                continue
            word, tag = _cell(cells[rows.word]), _cell(cells[rows.tag])
            if not word or not tag.strip():
                broken = True
                undecodable = decode_line(number, cells[rows.word]).unusable == "undecodable"
                what = "it is not UTF-8" if undecodable else "a word or a tag is empty"
                report.add(part, NO_WORD, "dropped", f"{path}:{number}: {what}")
            words.append(word)
            tags.append(tag)
        report.read[part] = report.read.get(part, 0) + 1
        if not broken:
            found.append(Sentence(str(path), tuple(number for number, _ in lines), tuple(words), tuple(tags)))
    report.read.setdefault(part, 0)
    report.files[part] = [str(path)]
    if short:
        number, cells = short[0]
        shown = b" ".join(cells).decode("utf-8", errors="replace")
        more = f", and {len(short) - 1} more lines are so" if len(short) > 1 else ""
        have = f"{len(cells)} column{'s' * (len(cells) != 1)}"
        report.refused.append(
            DataError(
                f"the line {shown!r} has {have}{more}",
                expected=f"{rows.needed} or more, {'a tab' if rows.tabs else 'blanks'} between",
                remedy="mend it, or say which columns with --data.word and --data.tag",
                file=path,
                line=number,
            )
        )
    elif not report.read[part]:
        report.refused.append(DataError("the file is empty", expected="a word and its tag in each line", file=path))
    return found


def read_words(path: Path, word: str = "") -> Iterator[tuple[str, ...]]:
    """The words of each sentence of a file, which needs no tags; what is no text is an empty word."""
    rows = _Columns(path, word, word or "1")
    for lines in rows.sentences():
        yield tuple((_cell(cells[rows.word]) if len(cells) > rows.word else "") or " " for _, cells in lines)


@lru_cache(1 << 16)
def _cell(raw: bytes) -> str:
    """A cell as it is read: cleaned; a blank where it holds nothing else, as it does in a file of characters."""
    line = decode_line(1, raw)
    return " " if line.unusable == "blank" and raw.decode("utf-8").isspace() else line.text


class _Columns:
    """How a file's lines are cut, and which columns are meant."""

    def __init__(self, path: Path, word: str, tag: str):
        self.path, self.conllu = path, path.name.removesuffix(".gz").endswith(".conllu")
        usual = CONLLU if self.conllu else ("1", "-1")
        first = next((raw for raw in self._raw() if raw is not None and not self._is_aside(raw)), b"")
        self.tabs = b"\t" in first
        names = [cell.decode("utf-8", errors="replace").strip() for cell in self._cut(first)]
        self.header = bool({word, tag} & set(names) - {""}) and not all(map(_is_number, {word, tag} - {""}))
        self.word, self.tag = (
            self._column(asked or default, names, option)
            for asked, default, option in ((word, usual[0], "word"), (tag, usual[1], "tag"))
        )
        self.needed = 1 + max(self.word, self.tag, 1 if self.tag < 0 else 0)

    def sentences(self) -> Iterator[list[tuple[int, list[bytes]]]]:
        """The lines of each sentence, cut."""
        sentence: list[tuple[int, list[bytes]]] = []
        for number, raw in enumerate(self._raw(), 1):
            if number == 1 and raw:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if number == 1 and self.header:
                continue
            if raw is not None and not raw.strip():
                if sentence:
                    yield sentence
                sentence = []
            elif raw is None or not self._is_aside(raw):
                sentence.append((number, [] if raw is None else self._cut(raw)))
        if sentence:
            yield sentence

    def _raw(self) -> Iterator[bytes | None]:
        with open_lines(self.path) as stream:
            for raw in raw_lines(stream):
                yield raw and raw.removesuffix(b"\r")

    def _cut(self, raw: bytes) -> list[bytes]:
        return raw.split(b"\t") if self.tabs else raw.split()

    def _is_aside(self, raw: bytes) -> bool:
        """Whether a line is no word."""
        if not raw.strip() or raw.startswith(b"-DOCSTART-"):
            return True
        if raw.startswith(b"#"):
            return b"\t" not in raw and (self.conllu or raw.startswith(b"# "))
        return self.conllu and bool(re.match(rb"\d+[-.]\d+\t", raw))

    def _column(self, asked: str, names: list[str], option: str) -> int:
        if self.header and asked in names:
            return names.index(asked)
        if _is_number(asked) and int(asked):
            return int(asked) - 1 if int(asked) > 0 else int(asked)
        known = nearest(asked, names) if self.header else "say its number from 1, or write names into the first line"
        raise DataError(f"there is no column {asked!r}", remedy=f"--data.{option}: {known}", file=self.path, line=1)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+", text))
