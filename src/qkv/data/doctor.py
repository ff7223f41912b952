"""The data doctor: looks at every pair before training, says what is wrong by file and line, and which pairs may stay.

The rule: a line that cannot be used drops its pair, on both sides; nothing ever shifts.

What it must remember of a pair is 30 bytes in a file that is mapped, not in memory, so ten million pairs need no more
memory than a thousand. Equal pairs are found by 64-bit hashes, one share of them at a time.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkv.data.formats import Corpus, Pair
from qkv.data.lines import LONGEST_LINE, Line, decode_line
from qkv.data.report import EXAMPLES, Report
from qkv.errors import DataError

__all__ = ["HELD_OUT", "KEPT", "CleanPair", "Limits", "Notes", "compare", "examine", "kept_pairs", "read_pairs"]

PARTS = ("train", "dev", "test")
NOTE = np.dtype([("pair", "<u8"), ("source", "<u8"), ("line", "<i8"), ("ratio", "<f4"), ("state", "u1")])
SHARES = 32  # hashes are compared in so many parts
KEPT, DROPPED, HELD_OUT = 0, 1, 2  # states of a pair
STRETCH = 1 << 16  # notes handled at once
UNLIKE = 4.0  # times longer or shorter than usual: noted

EMPTY, UNDECODABLE, LONG, BROKEN = "empty lines", "lines that are not UTF-8", "over-long lines", "broken records"
ALSO_IN = "pairs that are also in "
UNUSABLE = {"blank": EMPTY, "undecodable": UNDECODABLE, "over-long": LONG}
MENDED = {
    "byte-order mark": "byte-order marks",
    "CRLF": "CRLF line ends",
    "control character": "lines with control characters (NUL, CR and the like)",
    "line separator": "lines with another line separator inside",
    "not composed": "lines not in composed form (NFC)",
}


@dataclass(frozen=True)
class Limits:
    """What may stay: sides of at most ``characters``, ratios of lengths at most ``ratio`` times the usual (0: any)."""

    characters: int = 2560
    ratio: float = 0.0
    keep_duplicates: bool = False


class CleanPair(NamedTuple):
    """A pair after `clean`; ``why`` is the kind of what is wrong with it, "" if it can be used."""

    line: int
    source: str
    target: str
    why: str = ""


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


def read_pairs(corpus: Corpus, characters: int = 1 << 30) -> Iterator[CleanPair]:
    """Every pair of a corpus, good or not, as many as there are lines. See `examine` for the report."""
    for pair in corpus:
        yield _judge(pair, *_decoded(pair), characters)


def kept_pairs(corpus: Corpus, notes: np.ndarray, state: int = KEPT) -> Iterator[CleanPair]:
    """The pairs that `examine` and `compare` left (or that are held out), in order."""
    flags = (
        flag for begin in range(0, len(notes), STRETCH) for flag in notes["state"][begin : begin + STRETCH].tolist()
    )
    for pair, flag in zip(corpus, flags, strict=True):
        if flag == state:
            source, target = _decoded(pair)
            yield CleanPair(pair.line, source.text, target.text)


def examine(part: str, corpus: Corpus, notes: Notes, report: Report, limits: Limits) -> np.ndarray:
    """Read a corpus once: count and mend faults of single lines, drop what cannot be used, note the rest.

    Unequal line counts are put into ``report.refused`` with both counts.
    """
    sides = (corpus.source_file, corpus.target_file)
    sourceless = targetless = read = 0
    for pair in corpus:
        read += 1
        if pair.broken in ("no source line", "no target line"):
            sourceless += pair.broken == "no source line"
            targetless += pair.broken == "no target line"
            continue
        source, target = _decoded(pair)
        for file, line in zip(sides, (source, target), strict=True):
            for fault in line.mended:
                report.add(part, MENDED[fault], "mended", f"{file}:{pair.line}")
        judged = _judge(pair, source, target, limits.characters)
        if judged.why:
            report.add(part, judged.why, "dropped", _where(corpus, pair, source, target, judged.why, limits.characters))
            notes.add(0, 0, pair.line, math.nan, DROPPED)
            continue
        if source.text == target.text:
            report.add(part, "pairs with both sides alike", "noted", f"{sides[0]}:{pair.line}: {_short(source.text)}")
        left, right = source.text.encode(), target.text.encode()
        ratio = math.log((len(target.text) + 10) / (len(source.text) + 10))  # + 10: short lines vary more
        notes.add(_hash(left + b"\n" + right), _hash(left), pair.line, ratio, KEPT)
    report.read[part] = read
    report.files[part] = list(corpus.files)
    if sourceless or targetless:
        counts = (read - sourceless, read - targetless)
        report.refused.append(
            DataError(
                f"{sides[0]} has {counts[0]:,} lines and {sides[1]} has {counts[1]:,}",
                expected="as many lines on both sides, each the translation of the other",
                remedy=f"find where they part: line {min(counts) + 1:,} is the first without a partner, "
                "but the missing one may be anywhere before it",
            )
        )
    elif not read:
        report.refused.append(DataError("the file is empty", expected="at least one pair", file=sides[0]))
    found = notes.done()
    _ratios(part, corpus, found, report, limits)
    report.kept[part] = int(np.count_nonzero(found["state"] == KEPT))
    return found


def compare(corpora: dict[str, Corpus], notes: dict[str, np.ndarray], report: Report, limits: Limits) -> None:
    """Find repeated pairs, and pairs of train that are also in dev or test; both are dropped from train only."""
    parts = [part for part in PARTS if part in notes]
    held_out = [part for part in parts if part != "train"] if "train" in parts else []
    tally = _Tally()
    for number in range(SHARES):
        shares = {part: _share(corpora[part], notes[part], number) for part in parts}
        for part, some in shares.items():
            again = _seen_before(some.pair)
            several = np.unique(some.source[~again], return_counts=True)[1] > 1
            tally.add(part, "sources with several translations", "noted", np.count_nonzero(several))
            drop = part == "train" and not limits.keep_duplicates
            tally.add(part, "repeated pairs", "dropped" if drop else "noted", again.sum(), some.beside(again, some))
            if drop:
                some.drop(again)
        for other in held_out:
            train, theirs = shares["train"], shares[other]
            alike = np.isin(train.pair, theirs.pair) & train.kept()
            tally.add("train", ALSO_IN + other, "dropped", alike.sum(), train.beside(alike, theirs))
            train.drop(alike)
            near = np.isin(train.source, theirs.source) & train.kept()
            kind = f"pairs whose source is also in {other}, with another translation"
            tally.add("train", kind, "noted", near.sum(), train.beside(near, theirs, "source"))
    tally.tell(report)
    for part in parts:
        report.kept[part] = int(np.count_nonzero(notes[part]["state"] == KEPT))
    for other in held_out:
        if overlap := report.count("train", ALSO_IN + other):
            report.remarks.append(
                f"WARNING: {overlap:,} pairs of train are also in {other}; they are dropped from train, "
                f"so that scores on {other} are scores on unseen pairs"
            )
    if "train" in notes and not report.kept["train"] and not report.refused:
        file = corpora["train"].source_file
        report.refused.append(DataError("no pair is left to train on", remedy="run qkv check and mend it", file=file))


class _Tally:
    """Counts of findings and the examples of lowest line number, gathered over the shares."""

    def __init__(self):
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.examples: dict[tuple[str, str, str], list[tuple[int, str]]] = {}

    def add(self, part: str, kind: str, action: str, count: int, examples: Iterable[tuple[int, str]] = ()) -> None:
        key = (part, kind, action)
        self.counts[key] += int(count)
        self.examples[key] = sorted([*self.examples.get(key, ()), *examples])[:EXAMPLES]

    def tell(self, report: Report) -> None:
        for (part, kind, action), count in self.counts.items():
            for _, where in self.examples[part, kind, action]:
                report.add(part, kind, action, where)
                count -= 1
            if count:
                report.add(part, kind, action, count=count)


@dataclass(frozen=True)
class _Share:
    """The kept pairs of a corpus whose source's hash falls in one share, so that equal ones come together.

    ``index`` is where they are in ``notes``; ``pair``, ``source`` and ``line`` are copies of the notes there.
    """

    corpus: Corpus
    notes: np.ndarray
    index: np.ndarray
    pair: np.ndarray
    source: np.ndarray
    line: np.ndarray

    def kept(self) -> np.ndarray:
        return self.notes["state"][self.index] == KEPT

    def drop(self, chosen: np.ndarray) -> None:
        self.notes["state"][self.index[chosen]] = DROPPED

    def beside(self, chosen: np.ndarray, other: "_Share", key: str = "pair") -> list[tuple[int, str]]:
        """The first few chosen, each beside the first of ``other`` that it equals: (line, ``a:17 like b:3``)."""
        examples = []
        for place in np.flatnonzero(chosen)[:EXAMPLES]:
            twin = other.line[np.flatnonzero(getattr(other, key) == getattr(self, key)[place])[0]]
            here, there = self.corpus.source_file, other.corpus.source_file
            examples.append((int(self.line[place]), f"{here}:{self.line[place]} like {there}:{twin}"))
        return examples


def _share(corpus: Corpus, notes: np.ndarray, number: int) -> _Share:
    index = [np.empty(0, np.int64)]
    for begin in range(0, len(notes), STRETCH):
        some = notes[begin : begin + STRETCH]
        index.append(begin + np.flatnonzero((some["source"] % SHARES == number) & (some["state"] == KEPT)))
    where = np.concatenate(index)
    return _Share(corpus, notes, where, *(notes[name][where] for name in ("pair", "source", "line")))


def _seen_before(hashes: np.ndarray) -> np.ndarray:
    """True for each value that stands earlier in the array already."""
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(hashes), bool)
    again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    return again


def _ratios(part: str, corpus: Corpus, notes: np.ndarray, report: Report, limits: Limits) -> None:
    """Note (or drop) pairs whose lengths are in a ratio far from the usual one of this corpus."""
    sample = notes["ratio"][:: max(1, len(notes) // 1_000_000)]
    usual = np.nanmedian(sample) if np.isfinite(sample).any() else 0.0
    far, tally = math.log(limits.ratio or UNLIKE), _Tally()
    for begin in range(0, len(notes), STRETCH):
        stretch = notes[begin : begin + STRETCH]
        odd = np.flatnonzero((np.abs(stretch["ratio"] - usual) > far) & (stretch["state"] == KEPT))
        examples = [(int(line), f"{corpus.source_file}:{line}") for line in stretch["line"][odd[:EXAMPLES]]]
        tally.add(part, "pairs of unlike length", "dropped" if limits.ratio else "noted", len(odd), examples)
        if limits.ratio:
            stretch["state"][odd] = DROPPED
    tally.tell(report)


def _decoded(pair: Pair) -> tuple[Line, Line]:
    return decode_line(pair.line, pair.source), decode_line(pair.line, pair.target)


def _judge(pair: Pair, source: Line, target: Line, characters: int) -> CleanPair:
    """The pair if it can be used, else an empty one with the reason."""
    if pair.broken:
        return CleanPair(pair.line, "", "", BROKEN)
    for line in (source, target):
        if line.unusable:
            return CleanPair(pair.line, "", "", UNUSABLE[line.unusable])
    if max(len(source.text), len(target.text)) > characters:
        return CleanPair(pair.line, "", "", LONG)
    return CleanPair(pair.line, source.text, target.text)


def _where(corpus: Corpus, pair: Pair, source: Line, target: Line, why: str, characters: int) -> str:
    """``train.ko:17: the source, 3,012 characters``."""
    if pair.broken:
        return f"{corpus.source_file}:{pair.line}: {pair.broken}"
    for side, file, line, raw in (
        ("source", corpus.source_file, source, pair.source),
        ("target", corpus.target_file, target, pair.target),
    ):
        at = f"{file}:{pair.line}" if file != corpus.source_file or side == "source" else f"{file}:{pair.line} {side}"
        if why == UNDECODABLE and line.unusable == "undecodable":
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError as error:
                return f"{at}: byte 0x{raw[error.start]:02X} at {error.start + 1}"
        if why == EMPTY and line.unusable == "blank":
            return at
        if why == LONG and line.unusable == "over-long":
            return f"{at}: more than {LONGEST_LINE:,} bytes"
        if why == LONG and len(line.text) > characters:
            return f"{at}: {len(line.text):,} characters"
    return f"{corpus.source_file}:{pair.line}"


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _hash(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")
