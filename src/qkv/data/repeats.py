"""Pairs that occur more than once: within a part of the data, and in train and dev or test alike.

Equal pairs are found by 64-bit hashes (among ten million pairs, two unlike ones share a hash with a chance of one in
400,000). One share of the hashes is looked at at a time, so that memory does not grow with the corpus.
"""

from dataclasses import dataclass

import numpy as np

from qkv.data.formats import Corpus
from qkv.data.notes import DROPPED, KEPT, STRETCH
from qkv.data.report import EXAMPLES, Report, Tally

__all__ = ["ALSO_IN", "compare"]

SHARES = 32
ALSO_IN = "pairs that are also in "


def compare(
    corpora: dict[str, Corpus], notes: dict[str, np.ndarray], report: Report, keep_duplicates: bool = False
) -> None:
    """Find repeated pairs, and pairs of train that are also in dev or test; both are dropped from train only."""
    parts = list(notes)
    held_out = [part for part in parts if part != "train"] if "train" in parts else []
    tally = Tally()
    for number in range(SHARES):
        shares = {part: _share(corpora[part], notes[part], number) for part in parts}
        for part, some in shares.items():
            again = _seen_before(some.pair)
            several = np.unique(some.source[~again], return_counts=True)[1] > 1
            tally.add(part, "sources with several translations", "noted", np.count_nonzero(several))
            drop = part == "train" and not keep_duplicates
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
