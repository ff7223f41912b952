"""The user's running text, for pretraining: where it is (`CorpusFiles`), and its documents sentence by sentence.

Text comes as files of lines (``.gz`` too), as a folder of them, as JSONL, parquet or a table (.tsv, .csv) with
a text a record, or as a dataset by name. Files of lines are read in one of two ways:

- **sentences**: a line is a sentence and a blank line ends a document;
- **documents**: a line is a document, which is parted into sentences where one ends (``. ? !`` and their like).

A line of more than `PARAGRAPH` characters is taken for a paragraph and parted into sentences in either way.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from qkv.errors import ConfigError, DataError, nearest, refuse_wrong

__all__ = ["CorpusFiles", "Sentence", "corpus_files", "fingerprint", "read_sentences", "resolve_corpus", "sentences_in"]

NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation", "val")}
PARAGRAPH = 400  # characters
SNIFFED = 2000  # lines that are looked at for blank ones
_END = re.compile(r"(?<=[.!?。！？…])[\"'”’»)\]]*\s+")
# File; line or record; undecoded text (None: over-long; "" ends a document); whether that is a document, to be parted.
Sentence = tuple[str, int, bytes | str | None, bool]


@dataclass(frozen=True)
class CorpusFiles:
    """Which text to learn from, and how to read it.

    Args:
        folder: a file of text, or a folder of them; files called train and dev (or val, valid, validation) are those.
        train: a file of lines (.gz too), a .jsonl or .parquet file, a folder of such files, or the name of a dataset
            (NAME or NAME:CONFIG).
        dev: held-out text that chooses the best weights; without any, some of train is held out.
        lines: whether a line is a sentence, and a blank line ends a document, or a line is a document; auto sees by
            whether there are blank lines between others.
        text: the key or column of records that holds the text.
        vocabulary: what words are cut into.
        words: size of the vocabulary; 0 chooses by the number of sentences.
        learn_from: sentences that the vocabulary is learned from, at most, spread over the corpus.
        lowercase: read all text without capitals.
        strip_accents: read all text without accents; Hangul stays whole.
        longest: tokens of an input, marks counted.
        short: share of inputs that are cut shorter at random, so that short texts are known too.
        masked: share of tokens that are to be predicted.
        whole_words: hide all pieces of a word or none of them.
        batch_tokens: tokens of a batch, padding counted.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    lines: Literal["auto", "sentences", "documents"] = "auto"
    text: str = "text"
    vocabulary: Literal["wordpiece", "bpe", "unigram"] = "wordpiece"
    words: int = 0
    learn_from: int = 1_000_000
    lowercase: bool = False
    strip_accents: bool = False
    longest: int = 128
    short: float = 0.1
    masked: float = 0.15
    whole_words: bool = False
    batch_tokens: int = 4096

    def __post_init__(self):
        refuse_wrong(
            "data",
            (self.words < 0, "words", self.words, "0 or more"),
            (self.learn_from < 1, "learn_from", self.learn_from, "1 or more"),
            (self.longest < 8, "longest", self.longest, "8 or more"),
            (not 0 <= self.short <= 1, "short", self.short, "from 0 to 1"),
            (not 0 < self.masked < 1, "masked", self.masked, "more than 0, less than 1"),
            (self.batch_tokens < 1, "batch_tokens", self.batch_tokens, "1 or more"),
        )


def resolve_corpus(data: CorpusFiles) -> CorpusFiles:
    """The same with train and dev filled in from the names in ``folder``.

    Raises:
        ConfigError, DataError: there is nothing to learn from.
    """
    if data.folder and not data.train:
        folder = Path(data.folder).expanduser()
        found = {part: _named(folder, names) for part, names in NAMES.items()} if folder.is_dir() else {}
        data = replace(data, train=found.get("train") or data.folder, dev=data.dev or found.get("dev", ""))
    if not data.train:
        raise ConfigError("no text is named", remedy="say --data FILE, or a folder of files")
    return data


def _named(folder: Path, names: tuple[str, ...]) -> str:
    found = [file for file in sorted(folder.iterdir()) if file.name.split(".")[0].lower() in names]
    if len(found) > 1:
        both = " and ".join(file.name for file in found)
        raise DataError(f"{both} could both be {names[0]}", remedy=f"say which with --data.{names[0]}", file=folder)
    return str(found[0]) if found else ""


def corpus_files(where: str) -> list[Path]:
    """The files at a place, in the order of their names; none where it is no path but the name of a dataset.

    Raises:
        DataError: there is nothing, or a folder without a file that can be read.
    """
    path = Path(where).expanduser()
    if where == "-":
        raise DataError("running text is read more than once, and standard input cannot be", remedy="name a file")
    if path.is_file():
        return [path]
    if path.is_dir():
        hidden = (file for file in sorted(path.rglob("*")) if file.is_file())
        files = [f for f in hidden if not any(part.startswith(".") for part in f.relative_to(path).parts)]
        files = [file for file in files if _kind(file) in ("", ".txt", ".jsonl", ".parquet", ".tsv", ".csv")]
        if not files:
            raise DataError("there is no text", expected="lines, .jsonl, .parquet, .tsv or .csv (.gz too)", file=path)
        return files
    if (
        path.suffix
        or where.count("/") > 1
        or where.startswith((".", "/", "~"))
        or (path.parent.is_dir() and "/" in where)
    ):
        siblings = [file.name for file in path.parent.iterdir()][:200] if path.parent.is_dir() else []
        raise DataError(f"there is no {where}", remedy=nearest(path.name, siblings) if siblings else "see where it is")
    return []


def _kind(file: Path) -> str:
    return Path(file.name.lower().removesuffix(".gz")).suffix


def fingerprint(where: str) -> str:
    """Equal while the bytes of the files are equal."""
    import hashlib

    digest = hashlib.blake2b(digest_size=16)
    for file in corpus_files(where):
        with open(file, "rb") as stream:
            digest.update(hashlib.file_digest(stream, "blake2b").digest())
    digest.update(where.encode() if not corpus_files(where) else b"")
    return digest.hexdigest()


def read_sentences(data: CorpusFiles, part: str) -> Iterator[Sentence]:
    """The sentences of "train" or "dev" one at a time, and ``""`` after each document; undecoded, as they lie there.

    Raises:
        DataError: a file cannot be read, or has no such column.
    """
    where = getattr(data, part)
    files = corpus_files(where)
    if not files:
        yield from _read_dataset(data, where, part)
    for file in files:
        match _kind(file):
            case ".jsonl":
                yield from _read_jsonl(file, data.text)
            case ".parquet":
                yield from _read_parquet(file, data.text)
            case ".tsv" | ".csv":
                yield from _read_table(file, data.text)
            case _:
                yield from _read_lines(file, data.lines)
        yield str(file), 0, "", False


def sentences_in(text: str) -> list[str]:
    """A text parted where its sentences end; a single line without an end is one sentence."""
    found, begin = [], 0
    for match in _END.finditer(text):
        found.append(text[begin : match.end()].strip())
        begin = match.end()
    return [sentence for sentence in [*found, text[begin:].strip()] if sentence]


def _read_lines(file: Path, lines: str) -> Iterator[Sentence]:
    from qkv.data.formats import readable, refuse_utf16
    from qkv.data.lines import open_lines, raw_lines

    refuse_utf16(file)
    with readable(file), open_lines(file) as stream:
        if lines == "auto":
            lines = "sentences" if _has_blank_lines(file) else "documents"
        for number, raw in enumerate(raw_lines(stream), start=1):
            blank = raw is not None and not raw.strip()
            if not blank:
                yield str(file), number, raw, lines == "documents"
            if blank or lines == "documents":
                yield str(file), number, "", False


def _has_blank_lines(file: Path) -> bool:
    """Whether a blank line stands between others, as far as is looked."""
    from itertools import islice, pairwise

    from qkv.data.lines import open_lines, raw_lines

    with open_lines(file) as stream:
        blank = [raw is not None and not raw.strip() for raw in islice(raw_lines(stream), SNIFFED)]
    return any(before and not now for before, now in pairwise(blank))


def _read_jsonl(file: Path, key: str) -> Iterator[Sentence]:
    from qkv.data.formats import readable
    from qkv.data.lines import open_lines, raw_lines

    with readable(file), open_lines(file) as stream:
        for number, raw in enumerate(raw_lines(stream, 1 << 26), start=1):
            if raw is None:
                yield str(file), number, None, False
            elif raw.strip():
                try:
                    record = json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"no JSON ({error})", file=file, line=number) from None
                yield from _record(str(file), number, record, key)


def _read_parquet(file: Path, key: str) -> Iterator[Sentence]:
    import pyarrow.parquet

    from qkv.data.formats import readable

    with readable(file), pyarrow.parquet.ParquetFile(file) as table:
        names = table.schema_arrow.names
        if key not in names:
            raise DataError(f"there is no column {key!r}", remedy=nearest(key, names) + " (--data.text)", file=file)
        number = 0
        for batch in table.iter_batches(batch_size=1024, columns=[key]):
            for record in batch.to_pylist():
                number += 1
                yield from _record(str(file), number, record, key)


def _read_table(file: Path, key: str) -> Iterator[Sentence]:
    from qkv.data.formats import open_corpus

    for row in open_corpus(str(file), key, key):
        yield str(file), row.line, row.source, True
        yield str(file), row.line, "", False


def _read_dataset(data: CorpusFiles, where: str, part: str) -> Iterator[Sentence]:
    from qkv.data.formats import load_dataset, part_of

    remedy = "name a file of lines, a .jsonl or .parquet file, a folder of them, or a dataset"
    loaded = load_dataset(where, f"there is no file {where}", remedy)
    name = part_of(loaded, part)
    if name is None:
        raise DataError(f"the dataset {where!r} has no part for {part}", expected="one of " + ", ".join(loaded))
    for number, record in enumerate(loaded[name], start=1):
        yield from _record(f"{where} ({name})", number, record, data.text)


def _record(file: str, number: int, record: Any, key: str) -> Iterator[Sentence]:
    """A document: a text, whose lines are parted into sentences, or a list of its sentences."""
    value = record.get(key) if isinstance(record, dict) else None
    if isinstance(value, str):
        value = [sentence for line in value.split("\n") for sentence in sentences_in(line)]
    if not isinstance(value, list) or not all(isinstance(sentence, str) for sentence in value):
        names = sorted(record) if isinstance(record, dict) else []
        raise DataError(
            f"there is no text called {key!r}", remedy=nearest(key, names) + " (--data.text)", file=file, line=number
        )
    for sentence in value:
        if sentence:
            yield file, number, sentence, False
    yield file, number, "", False
