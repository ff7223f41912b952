"""Pairs of lines as they lie in the user's files, in any of the formats, one at a time.

A `Corpus` yields a `Pair` for every line, row or record, good or bad; what is wrong with it is for
`qkv.data.doctor` to say. Nothing is split at anything but ``\\n`` and nothing is read whole.
"""

import csv
import hashlib
import io
import json
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from qkv.data.lines import open_lines, raw_lines
from qkv.errors import DataError, nearest

__all__ = ["SPLITS", "TABLES", "Corpus", "Pair", "load_dataset", "open_corpus", "part_of", "readable"]

TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # ours -> the usual name in a dataset


class Pair(NamedTuple):
    """One record: its line (or row) number from 1, and both sides undecoded, or ``broken``: why there are none."""

    line: int
    source: bytes | str | None
    target: bytes | str | None
    broken: str = ""


@dataclass(frozen=True)
class Corpus:
    """Where pairs are. Iterate it as often as needed: each time it is read anew.

    ``source_file`` and ``target_file`` are what messages name; they are the same for a table.
    """

    source_file: str
    target_file: str
    format: str
    source: str
    target: str
    dataset: Any = field(default=None, compare=False, repr=False)

    def __iter__(self) -> Iterator[Pair]:
        with readable(*self.files):
            yield from _READ[self.format](self)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.source_file, self.target_file)))

    def fingerprint(self) -> str:
        """Equal while the files' bytes are equal."""
        digest = hashlib.blake2b(f"{self.format}:{self.source}:{self.target}".encode(), digest_size=16)
        if self.format == "dataset":
            digest.update(f"{self.source_file}:{self.dataset._fingerprint}".encode())
            return digest.hexdigest()
        for name in self.files:
            with open(name, "rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        return digest.hexdigest()


@contextmanager
def readable(*files: str | Path) -> Iterator[None]:
    """A file that cannot be read is the user's to mend: a cut-off .gz, a broken parquet file, no permission."""
    try:
        yield
    except (OSError, EOFError, ValueError, zlib.error) as error:
        names = " or ".join(map(str, files))
        raise DataError(f"the data cannot be read ({error})", remedy="copy or download it again", file=names) from error


def open_corpus(where: str, source: str, target: str, split: str = "train") -> Corpus:
    """The corpus at ``where``: a prefix of two parallel files, a table, or the name of a dataset.

    Args:
        where: ``ko_en/train`` (with ``train.ko`` and ``train.en``), ``pairs.tsv`` (``.csv .jsonl .parquet``), each also
            with ``.gz``; or ``NAME`` or ``NAME:CONFIG`` of a dataset where no such file is.
        source, target: suffixes of parallel files, names of columns.
        split: "train", "dev" or "test": which part of a dataset.

    Raises:
        DataError: nothing is there, or only one side is.
    """
    path = Path(where).expanduser()
    if path.is_file():
        bare = path.with_suffix("") if path.suffix == ".gz" else path
        if path.name.endswith(".parquet.gz"):
            raise DataError("a parquet file is packed already", remedy="gunzip it", file=path)
        if not path.name.endswith(".parquet"):
            refuse_utf16(path)
        if bare.suffix in TABLES:
            kind = bare.suffix[1:]
            names = (source, target) if kind in ("jsonl", "parquet") else _columns(path, kind, source, target)
            return Corpus(str(path), str(path), kind, *names)
        if bare.suffix in (f".{source}", f".{target}"):
            return open_corpus(str(bare.with_suffix("")), source, target, split)
        raise DataError(
            f"the format of {path.name!r} is not known",
            expected=", ".join(TABLES) + f", or two parallel files ending in .{source} and .{target}, each also .gz",
            file=path,
        )
    if path.is_dir() and not any(_side(path, side) for side in (source, target)):
        raise DataError("this is a folder", expected="a prefix or a file", remedy="say --data for a folder", file=path)
    found = [_side(path, side) for side in (source, target)]
    if all(found):
        for file in found:
            refuse_utf16(file)
        return Corpus(str(found[0]), str(found[1]), "parallel", source, target)
    if any(found):
        missing, here = (source, found[1]) if found[1] else (target, found[0])
        raise DataError(
            f"{here} has no other side", expected=f"{path}.{missing}", remedy="see --data.source and --data.target"
        )
    in_a_folder = "/" in where and path.parent.is_dir()
    if in_a_folder or where.count("/") > 1 or path.suffix in (*TABLES, ".gz") or where.startswith((".", "/", "~")):
        siblings = sorted(p.name for p in path.parent.iterdir())[:200] if path.parent.is_dir() else []
        raise DataError(
            f"there is no {path}.{source} and {path}.{target}, and no file {path}",
            remedy=nearest(f"{path.name}.{source}", siblings)
            if siblings
            else f"there is no folder {path.parent} either",
        )
    return _open_dataset(where, source, target, split)


def _side(prefix: Path, suffix: str) -> Path | None:
    names = (f"{prefix.name}.{suffix}", f"{prefix.name}.{suffix}.gz")
    return next((prefix.with_name(name) for name in names if prefix.with_name(name).is_file()), None)


def refuse_utf16(file: Path) -> None:
    """Raise DataError if a file begins as UTF-16 does."""
    with readable(file), open_lines(file) as stream:
        if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            remedy = "iconv -f UTF-16 -t UTF-8 makes it so"
            raise DataError("the file is UTF-16", expected="UTF-8", remedy=remedy, file=file)


def _read_parallel(corpus: Corpus) -> Iterator[Pair]:
    """Goes on to the end of the longer file: a missing line is a pair with a None side and a word about it."""
    ended = object()
    with open_lines(corpus.source_file) as left, open_lines(corpus.target_file) as right:
        sides = zip_longest(raw_lines(left), raw_lines(right), fillvalue=ended)
        for number, (source, target) in enumerate(sides, start=1):
            if source is ended or target is ended:
                yield Pair(number, None, None, "no source line" if source is ended else "no target line")
            else:
                yield Pair(number, source, target)


def _columns(path: Path, kind: str, source: str, target: str) -> tuple[str, str]:
    """Names of the two columns if the first line has them, positions "0" and "1" for a TSV without a header."""
    with readable(path), open_lines(path) as stream:
        first = next(raw_lines(stream), None) or b""
    if not first.strip():
        raise DataError("the file is empty, or begins with an empty line", expected="a header or a pair", file=path)
    text = first.decode("utf-8", errors="replace").lstrip("\ufeff").rstrip("\r")
    names = next(csv.reader([text]), []) if kind == "csv" else text.split("\t")
    if source in names and target in names:
        return source, target
    if source in names or target in names or kind == "csv":
        wrong = target if source in names else source
        raise DataError(
            f"there is no column {wrong!r}",
            remedy=nearest(wrong, names) + " (--data.source, --data.target)",
            file=path,
            line=1,
        )
    if len(names) < 2:
        raise DataError("the first line has one column", expected="source and target, a tab between", file=path, line=1)
    return "", ""


def _read_tsv(corpus: Corpus) -> Iterator[Pair]:
    with open_lines(corpus.source_file) as stream:
        lines = enumerate(raw_lines(stream), start=1)
        source, target, width = 0, 1, None
        if corpus.source:
            names = (next(lines)[1] or b"").decode("utf-8-sig", errors="replace").rstrip("\r").split("\t")
            source, target, width = names.index(corpus.source), names.index(corpus.target), len(names)
        for number, raw in lines:
            if raw is None:
                yield Pair(number, None, None)
                continue
            cells = raw.split(b"\t")
            width = width or len(cells)
            if not raw.strip():
                yield Pair(number, b"", b"")
            elif len(cells) != width:
                yield Pair(number, None, None, f"{len(cells)} columns where {width} are expected")
            else:
                yield Pair(number, cells[source], cells[target])


def _read_csv(corpus: Corpus) -> Iterator[Pair]:
    with ExitStack() as stack:
        stream = stack.enter_context(open_lines(corpus.source_file))
        # Bytes that are not UTF-8 come through as lone surrogates and are found when the field is encoded again.
        text = stack.enter_context(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
        rows = csv.reader(text)
        names = next(rows)
        source, target = names.index(corpus.source), names.index(corpus.target)
        line = rows.line_num + 1
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield Pair(line, None, None, str(error))
                row = []
            else:
                if len(row) == len(names):
                    yield Pair(line, *(_field(row[i]) for i in (source, target)))
                elif row:
                    yield Pair(line, None, None, f"{len(row)} columns where {len(names)} are expected")
            line = rows.line_num + 1


def _field(text: str) -> bytes:
    """A field may hold line ends of its own; to one line of text they are blanks."""
    return text.replace("\r\n", "\u2028").replace("\n", "\u2028").encode("utf-8", errors="surrogateescape")


def _read_jsonl(corpus: Corpus) -> Iterator[Pair]:
    with open_lines(corpus.source_file) as stream:
        for number, raw in enumerate(raw_lines(stream), start=1):
            if raw is None:
                yield Pair(number, None, None)
                continue
            try:
                record = json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
            except UnicodeDecodeError:
                yield Pair(number, raw, raw)  # undecodable, and said so by whoever decodes it
            except (ValueError, RecursionError) as error:
                yield Pair(number, None, None, f"no JSON ({error})") if raw.strip() else Pair(number, b"", b"")
            else:
                yield _record(number, record, corpus)


def _record(number: int, record: Any, corpus: Corpus) -> Pair:
    """Both sides of ``{"ko": ..., "en": ...}`` or of the hub's ``{"translation": {"ko": ..., "en": ...}}``."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        return Pair(number, None, None, "no JSON object")
    for name in (corpus.source, corpus.target):
        value = record.get(name)
        if not isinstance(value, str):
            what = (
                f"{name!r} is no text"
                if name in record
                else f"no {name!r} among {', '.join(sorted(record)) or 'its keys'}"
            )
            return Pair(number, None, None, what)
    return Pair(number, *(record[name].replace("\n", "\u2028") for name in (corpus.source, corpus.target)))


def _read_parquet(corpus: Corpus) -> Iterator[Pair]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(corpus.source_file) as file:
        names = file.schema_arrow.names
        wanted = ["translation"] if "translation" in names else [corpus.source, corpus.target]
        for name in wanted:
            if name not in names:
                remedy = nearest(name, names) + " (--data.source, --data.target)"
                raise DataError(f"there is no column {name!r}", remedy=remedy, file=corpus.source_file)
        number = 0
        for batch in file.iter_batches(batch_size=4096, columns=wanted):
            for record in batch.to_pylist():
                number += 1
                yield _record(number, record, corpus)


def _open_dataset(where: str, source: str, target: str, split: str) -> Corpus:
    loaded = load_dataset(
        where, f"there is no file {where}.{source}, no table {where}",
        "name a prefix of two parallel files, a .tsv, .csv, .jsonl or .parquet file, or a dataset",
    )  # fmt: skip
    part = part_of(loaded, split)
    if part is None:
        raise DataError(f"the dataset {where!r} has no part {SPLITS[split]!r}", expected="one of " + ", ".join(loaded))
    label = f"{where} ({part})"
    return Corpus(label, label, "dataset", source, target, loaded[part])


def load_dataset(where: str, absent: str, remedy: str) -> Any:
    """The parts of a dataset, NAME or NAME:CONFIG.

    Args:
        absent: what else of this name there is not, for the message where it cannot be loaded.
        remedy: what to name instead.
    """
    name, _, config = where.partition(":")
    if not _hub_answers():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # what was loaded before is still found, without long waiting
    import datasets

    try:
        return datasets.load_dataset(name, config or None)
    except Exception as error:  # of any library below it: network, hub, parsing
        first = str(error).partition("\n")[0]
        raise DataError(
            f"{absent}, and no dataset {name!r} can be loaded ({type(error).__name__}: {first})", remedy=remedy
        ) from error


def part_of(loaded: Any, split: str) -> str | None:
    """The dataset's own name of "train", "dev" or "test"; None if it has none."""
    names = (SPLITS[split], split, *(["valid"] if split == "dev" else []))
    return next((name for name in names if name in loaded), None)


def _hub_answers() -> bool:
    """Whether the hub can be reached: a mistyped file name should not wait for it many times over."""
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    try:
        socket.create_connection((host, 443), timeout=3).close()
    except OSError:
        return False
    return True


def _read_dataset(corpus: Corpus) -> Iterator[Pair]:
    for number, record in enumerate(corpus.dataset, start=1):
        yield _record(number, record, corpus)


_READ = {
    "parallel": _read_parallel,
    "tsv": _read_tsv,
    "csv": _read_csv,
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
    "dataset": _read_dataset,
}
