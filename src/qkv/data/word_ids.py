"""A text as word ids in mapped files, so that every epoch reads it at the speed of the disk and memory stays constant.

The text is read once. Every word gets a first id as it comes; when all are counted and it is known which are kept, the
first ids are exchanged for the rows of the table, block by block, and those of dropped words go.
"""

import hashlib
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.word_text import WordText, files_of, given_sentences, sentences_in
from qkv.data.words import Cut, Words
from qkv.errors import DataError

__all__ = ["WordIds", "read_text", "store_sentences"]

BLOCK = 1 << 22  # ids that are exchanged at once
HELD = 1 << 18  # ids in Python's hands before they go to the disk


@dataclass(frozen=True)
class WordIds:
    """``ids``: uint32 rows of the table; ``ends``: int64, where each sentence ends. Both are mapped files."""

    ids: np.ndarray
    ends: np.ndarray
    summary: dict[str, Any]  # what was read, kept and dropped, and ``files_hash``

    @classmethod
    def open(cls, folder: Path) -> "WordIds":
        """Map what `store_sentences` wrote.

        Raises:
            DataError: the files are damaged or missing.
        """
        try:
            summary = json.loads((folder / "store.json").read_text(encoding="utf-8"))
            ids, ends = (np.memmap(folder / name, kind, "r") for name, kind in (("ids", "<u4"), ("ends", "<i8")))
            if (len(ids), len(ends)) != (summary["kept"], summary["sentences"]):
                raise ValueError("a file is too short")
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"the stored text is damaged ({error})", remedy=f"remove {folder}", file=folder) from error
        return cls(ids, ends, summary)

    def report(self) -> list[str]:
        """What was read, in words."""
        told = self.summary
        lines = [
            f"{told['read']:,} words in {told['lines']:,} lines read, {told['distinct']:,} different",
            f"{told['words']:,} words kept ({told['rule']}): {told['kept']:,} places in the text, "
            f"{told['read'] - told['kept']:,} dropped ({(told['read'] - told['kept']) / told['read']:.1%})",
        ]
        if told["dropped"]:
            lines.append(", ".join(f"{count:,} {what}" for what, count in told["dropped"].items()))
        return lines


def read_text(data: WordText, folder: Path, known: Words | None = None) -> tuple[Words, WordIds]:
    """Read the text of some data into a folder, or open what was read there before from the same files."""
    files = files_of(data.place) if data.place != "-" else []
    if (folder / "store.json").is_file():
        words, ids = Words.load(folder / "words"), WordIds.open(folder)
        # What is known may be what was known then, or the words themselves, when a run goes on.
        as_then = (len(known) if known else 0) in (ids.summary["known"], len(words))
        if as_then and ids.summary["data"] == asdict(data):
            if files and ids.summary["files"] != _seen(files):
                ids.summary["files_hash"] = _hash(files)  # touched or changed: their bytes tell
            return words, ids
    dropped: Counter = Counter()
    cut = known.cut if known else Cut.of(data.pattern, data.lowercase, data.pieces)
    about = {"files": _seen(files), "files_hash": _hash(files), "data": asdict(data)}
    pieces = sentences_in(data.place, data.column, dropped)
    return _store(pieces, folder, cut, data.min_count, data.most_words, known, dropped, about)


def store_sentences(
    sentences: Iterable, folder: Path, *, min_count: int = 5, most_words: int | None = None, cut: Cut | None = None
) -> tuple[Words, WordIds]:
    """The same of sentences from Python, each a line of text or a list of words; a generator is gone through once."""
    about = {"files": [], "files_hash": "", "data": {}}
    return _store(given_sentences(sentences), folder, cut or Cut(), min_count, most_words, None, Counter(), about)


def _store(pieces, folder, cut, min_count, most_words, known, dropped, about) -> tuple[Words, WordIds]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    if known:
        for word in known.words:
            index[word]
    counts = _write_first(pieces, folder, cut, index.__getitem__)
    if not counts.sum():
        raise DataError("there is not one word in the text", remedy="see --data, --data.column and --data.pattern")
    counts = np.concatenate([counts, np.zeros(len(index) - len(counts), np.int64)])
    names = list(index)
    rows, rule = _choose(names, counts, min_count, most_words, len(known) if known else 0)
    words = Words([names[i] for i in rows], counts[rows] + (_padded(known.counts, len(rows)) if known else 0), cut)
    new = np.full(len(names), -1, np.int64)
    new[rows] = np.arange(len(rows))
    lines, kept, sentences = _exchange(folder, new)
    summary = {
        "read": int(counts.sum()), "lines": lines, "distinct": int((counts > 0).sum()), "words": len(words),
        "kept": kept, "sentences": sentences, "rule": rule, "dropped": dict(dropped),
        "known": len(known) if known else 0, **about,
    }  # fmt: skip
    words.save(folder / "words")
    for name in ("ids", "ends"):
        with open(folder / name, "rb") as file:
            os.fsync(file.fileno())
    (folder / "store.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")  # last: now it is whole
    return words, WordIds.open(folder)


def _write_first(pieces, folder: Path, cut: Cut, id_of: Callable[[str], int]) -> np.ndarray:
    """Ids in order of first appearance, and where lines end; returns how often each occurs."""
    counts = np.zeros(0, np.int64)
    ids: list[int] = []
    ends: list[int] = []
    written = 0
    with open(folder / "first", "wb") as id_file, open(folder / "first.ends", "wb") as end_file:

        def write() -> None:
            nonlocal counts, written
            block = np.array(ids, "<u4")
            block.tofile(id_file)
            np.array(ends, "<i8").tofile(end_file)
            here = np.bincount(block)
            counts = _padded(here, len(counts)) + _padded(counts, len(here))
            written += len(ids)
            ids.clear()
            ends.clear()

        for piece, ended in pieces:
            ids.extend(map(id_of, cut(piece) if isinstance(piece, str) else piece))
            if ended:
                ends.append(written + len(ids))
            if len(ids) > HELD:
                write()
        write()
    return counts


def _choose(names: list[str], counts: np.ndarray, min_count: int, most: int | None, known: int):
    """First ids of the words that are kept, in order of their rows, and the rule in words.

    Known words stay where they are; new ones come after them, the most frequent first.
    """
    fresh = [i for i in range(known, len(names)) if counts[i] >= min_count]
    fresh.sort(key=lambda i: (-counts[i], names[i]))
    rule = f"seen {min_count} times or more"
    if most is not None and known + len(fresh) > most:
        fresh = fresh[: max(most - known, 0)]
        rule += f", the {most:,} most frequent"
    rows = [*range(known), *fresh]
    if not rows or not counts[rows].sum():
        top = int(counts.argmax())
        raise DataError(
            f"no word is left: none of {len(names):,} occurs {min_count} times, "
            f"the most frequent, {names[top]!r}, {counts[top]} times",
            remedy=f"lower --data.min_count to {counts[top]} or less",
        )
    return np.array(rows), rule if not known else rule + f", and {known:,} known ones"


def _exchange(folder: Path, new: np.ndarray) -> tuple[int, int, int]:
    """From first ids to rows; dropped words and then empty sentences go. Returns lines, words and sentences kept."""
    first, last = folder / "first", folder / "first.ends"
    ends = np.memmap(last, "<i8", "r") if last.stat().st_size else np.zeros(0, np.int64)
    kept = sentences = at = before = 0
    total = first.stat().st_size // 4
    with open(first, "rb") as id_file, open(folder / "ids", "wb") as ids, open(folder / "ends", "wb") as end_file:
        for begin in range(0, total, BLOCK):
            rows = new[np.fromfile(id_file, "<u4", BLOCK)]
            left = rows >= 0
            so_far = kept + np.cumsum(left)
            rows[left].astype("<u4").tofile(ids)
            upto = np.searchsorted(ends, begin + len(rows), side="right")
            here = ends[at:upto]
            at = upto
            moved = np.unique(so_far[here[here > 0] - begin - 1])  # 0: empty lines before the first word
            moved = moved[moved > before]  # a sentence of which nothing is left ends where the last one did
            moved.astype("<i8").tofile(end_file)
            sentences += len(moved)
            before = int(moved[-1]) if len(moved) else before
            kept = int(so_far[-1])
        if before < kept:  # the last sentence had no end
            np.array([kept], "<i8").tofile(end_file)
            sentences += 1
    first.unlink()
    last.unlink()
    return len(ends), kept, sentences


def _padded(array: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([array, np.zeros(max(length - len(array), 0), np.int64)])


def _seen(files: list[Path]) -> list[list]:
    """What tells without reading whether files may have changed."""
    return [[str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _hash(files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        with open(file, "rb") as stream:
            digest.update(hashlib.file_digest(stream, "blake2b").digest())
    return digest.hexdigest() if files else ""
