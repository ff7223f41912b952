"""The data doctor: looks at every pair before training, says what is wrong by file and line, and which pairs may stay.

The rule: a line that cannot be used drops its pair, on both sides; nothing ever shifts.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from qkv.data.formats import Corpus, Pair
from qkv.data.lines import LONGEST_LINE, Line, decode_line
from qkv.data.notes import DROPPED, KEPT, STRETCH, CleanPair, Notes
from qkv.data.report import EXAMPLES, Report, Tally
from qkv.errors import DataError

__all__ = ["Limits", "examine", "read_pairs"]

UNLIKE = 4.0  # times longer or shorter than usual: noted
EMPTY, UNDECODABLE, LONG, BROKEN = "empty lines", "lines that are not UTF-8", "over-long lines", "broken records"
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


def read_pairs(corpus: Corpus, characters: int = 1 << 30) -> Iterator[CleanPair]:
    """Every pair of a corpus, good or not, as many as there are lines. See `examine` for the report."""
    for pair in corpus:
        yield _judge(pair, *_decoded(pair), characters)


def examine(part: str, corpus: Corpus, notes: Notes, report: Report, limits: Limits) -> None:
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
        if source.mended or target.mended:
            for file, line in zip(sides, (source, target), strict=True):
                for fault in line.mended:
                    report.add(part, MENDED[fault], "mended", f"{file}:{pair.line}")
        judged = _judge(pair, source, target, limits.characters)
        if judged.why:
            report.add(part, judged.why, "dropped", _where(corpus, pair, source, target, judged.why, limits.characters))
            notes.add_dropped(pair.line)
            continue
        if source.text == target.text:
            report.add(part, "pairs with both sides alike", "noted", f"{sides[0]}:{pair.line}: {_short(source.text)}")
        notes.add(pair.line, source.text, target.text)
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
    elif report.count(part, UNDECODABLE) > read // 100:
        report.remarks.append(
            f"{part}: many lines are not UTF-8; if the files are in an older encoding, convert them first: "
            "iconv -f CP949 -t UTF-8 (Korean), -f CP1252 (Western)"
        )
    elif not read:
        report.refused.append(DataError("the file is empty", expected="at least one pair", file=sides[0]))
    notes.done()
    _ratios(part, corpus, notes.array, report, limits)
    report.kept[part] = int(np.count_nonzero(notes.array["state"] == KEPT))


def _ratios(part: str, corpus: Corpus, notes: np.ndarray, report: Report, limits: Limits) -> None:
    """Note (or drop) pairs whose lengths are in a ratio far from the usual one of this corpus."""
    sample = notes["ratio"][:: max(1, len(notes) // 1_000_000)]
    usual = np.nanmedian(sample) if np.isfinite(sample).any() else 0.0
    far, tally = math.log(limits.ratio or UNLIKE), Tally()
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
