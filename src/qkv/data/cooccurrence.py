"""How often words stand near each other: X of GloVe, counted out of core.

Each pair of words within a window counts as 1 / its distance (Pennington et al. 2014, section 4.2). Counts are added up
in a hash table that grows to a given size; when it is full it is sorted, written and emptied, and the sorted files are
merged at the end. Pairs are then laid in buckets at random, each of which can be shuffled in memory.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit, uint64

__all__ = ["PAIR", "Cooccurrences", "count_pairs", "counts_of"]

PAIR = np.dtype([("word", "<u4"), ("context", "<u4"), ("count", "<f4")])
SUMMED = np.dtype([("key", "<u8"), ("count", "<f8")])
FULL = 0.7  # of a hash table
SMALLEST = 10  # a table has 2 to this many slots at first, and grows
TEXT = 1 << 21  # places in the text that are counted in one call
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
VACANT = np.array((EMPTY, 0), SUMMED)


@dataclass(frozen=True)
class Cooccurrences:
    """Pairs in buckets. Of a symmetric window each pair of different words stands once, for both directions."""

    folder: Path
    buckets: list[int]  # how many pairs each holds
    symmetric: bool
    window: int

    @property
    def pairs(self) -> int:
        return sum(self.buckets)

    def bucket(self, number: int) -> np.ndarray:
        """The pairs of a bucket (`PAIR`), a mapped file."""
        if not self.buckets[number]:
            return np.zeros(0, PAIR)
        return np.memmap(self.folder / f"pairs-{number}", PAIR, "r")

    @classmethod
    def open(cls, folder: Path, window: int, symmetric: bool, places: int) -> "Cooccurrences | None":
        """What `count_pairs` left in a folder; None if it is not whole, or was counted otherwise."""
        file = folder / "pairs.json"
        header = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        buckets = header.pop("buckets", [])
        return cls(folder, buckets, symmetric, window) if header == _how(window, symmetric, places) else None


def count_pairs(
    ids: np.ndarray,
    ends: np.ndarray,
    window: int,
    symmetric: bool,
    folder: Path,
    memory: int,
    tell: Callable[[str], None] = lambda text: None,
    threads: int = 1,
) -> Cooccurrences:
    """Count, merge and lay in buckets.

    Args:
        memory: bytes that the counting may take.
        threads: each counts its share of the text in a table of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    slots = 1 << max(int(memory / SUMMED.itemsize / 2 / threads).bit_length() - 1, SMALLEST)
    share, stopped = -(-len(ids) // threads), threading.Event()

    def count(thread: int) -> list[Path]:
        begin, end = min(thread * share, len(ids)), min((thread + 1) * share, len(ids))
        return _count_range(ids, ends, begin, end, window, symmetric, slots, folder / f"run-{thread}", tell, stopped)

    with ThreadPoolExecutor(threads) as pool:
        try:
            runs = [run for found in pool.map(count, range(threads)) for run in found]
        finally:
            stopped.set()
    most = sum(run.stat().st_size for run in runs) // SUMMED.itemsize
    count = max(1, -(-most * PAIR.itemsize * 2 // memory))
    draw = np.random.default_rng(0)
    files = [open(folder / f"pairs-{number}", "wb") for number in range(count)]  # noqa: SIM115 closed below
    sizes = [0] * count
    for merged in _merged(runs, max(memory // (4 * SUMMED.itemsize * len(runs)), 1024)):
        pairs = np.empty(len(merged), PAIR)
        pairs["word"], pairs["context"] = merged["key"] >> np.uint64(32), merged["key"] & np.uint64(0xFFFFFFFF)
        pairs["count"] = merged["count"]
        where = draw.integers(count, size=len(pairs)) if count > 1 else np.zeros(len(pairs), np.int64)
        for number, file in enumerate(files):
            chosen = pairs[where == number]
            chosen.tofile(file)
            sizes[number] += len(chosen)
    for file in files:
        file.flush()
        os.fsync(file.fileno())
        file.close()
    for run in runs:
        run.unlink()
    header = {"buckets": sizes, **_how(window, symmetric, len(ids))}
    (folder / "pairs.json").write_text(json.dumps(header) + "\n", encoding="utf-8")
    return Cooccurrences(folder, sizes, symmetric, window)


def _count_range(
    ids: np.ndarray, ends: np.ndarray, begin: int, end: int, window: int, symmetric: bool, slots: int, name: Path,
    tell: Callable[[str], None], stopped: threading.Event,
) -> list[Path]:  # fmt: skip
    """The sorted files of ``ids[begin:end]``: one, or more where a table of ``slots`` does not hold all pairs."""
    table = _table(1 << SMALLEST)
    runs: list[Path] = []
    at, used = begin, 0
    while at < end and not stopped.is_set():
        until = min(at + TEXT, end)
        at, used = _count(ids, ends, at, until, window, symmetric, table, used, int(FULL * len(table)))
        if at == until:
            continue
        if len(table) < slots:
            small, table = table, _table(2 * len(table))
            _refill(small, table)
        else:
            runs.append(_spill(table, name.with_name(f"{name.name}-{len(runs)}")))
            tell(f"counted to {at / len(ids):.0%} of the text; {used:,} pairs written for the merge")
            table[:], used = VACANT, 0
    return [*runs, _spill(table, name.with_name(f"{name.name}-{len(runs)}"))]


def _table(slots: int) -> np.ndarray:
    return np.full(slots, VACANT)


def _how(window: int, symmetric: bool, places: int) -> dict:
    return {"window": window, "symmetric": symmetric, "places": places}


@njit(nogil=True, inline="always")
def _slot(key, table):
    """Where a key stands in the table, or would."""
    mask = uint64(table.shape[0] - 1)
    x = key * uint64(0x9E3779B97F4A7C15)
    at = (x ^ (x >> uint64(29))) & mask
    while table[at].key != key and table[at].key != EMPTY:
        at = (at + uint64(1)) & mask
    return at


@njit(nogil=True, cache=True)
def _refill(small, table):
    """What a table holds goes into a larger, empty one."""
    for i in range(small.shape[0]):
        if small[i].key != EMPTY:
            at = _slot(small[i].key, table)
            table[at].key, table[at].count = small[i].key, small[i].count


@njit(nogil=True, error_model="numpy", cache=True)
def _count(ids, ends, begin, end, window, symmetric, table, used, most):
    """Add the pairs whose right word is in ``ids[begin:end]``; stops where the table is full. Returns (place, used)."""
    s = np.searchsorted(ends, begin, side="right")
    first = ends[s - 1] if s > 0 else 0
    for p in range(begin, end):
        while s < ends.shape[0] and ends[s] <= p:
            first = ends[s]
            s += 1
        if used + window > most:
            return p, used
        word = uint64(ids[p])
        for q in range(max(first, p - window), p):
            other = uint64(ids[q])
            add = 1.0 / (p - q)
            left, right = word, other
            if symmetric:
                if left > right:
                    left, right = right, left
                elif left == right:
                    add *= 2  # both directions are the same pair
            key = left << uint64(32) | right
            at = _slot(key, table)
            if table[at].key == EMPTY:
                table[at].key = key
                used += 1
            table[at].count += add
    return end, used


def _spill(table: np.ndarray, file: Path) -> Path:
    """Write what the table holds, in order of key."""
    there = np.flatnonzero(table["key"] != EMPTY)
    there = there[np.argsort(table["key"][there])]
    with open(file, "wb") as stream:
        for begin in range(0, len(there), 1 << 20):
            table[there[begin : begin + (1 << 20)]].tofile(stream)
    return file


def _merged(runs: list[Path], block: int) -> Iterator[np.ndarray]:
    """The pairs of sorted files, in order of key, equal keys added: a block of each is in memory at a time."""
    files = [open(run, "rb") for run in runs]  # noqa: SIM115 closed below
    heads = [np.fromfile(file, SUMMED, block) for file in files]
    while any(len(head) for head in heads):
        # Up to the smallest last key of the blocks, nothing more can come.
        bound = min(head["key"][-1] for head in heads if len(head))
        taken = []
        for number, head in enumerate(heads):
            cut = np.searchsorted(head["key"], bound, side="right")
            taken.append(head[:cut])
            heads[number] = head[cut:] if cut < len(head) else np.fromfile(files[number], SUMMED, block)
        together = np.concatenate(taken)
        if len(taken) > 1:
            together = together[np.argsort(together["key"], kind="stable")]
            starts = np.flatnonzero(np.r_[True, together["key"][1:] != together["key"][:-1]])
            added = np.add.reduceat(together["count"], starts)
            together = together[starts]
            together["count"] = added
        yield together
    for file in files:
        file.close()


def counts_of(ids: np.ndarray, ends: np.ndarray, words: np.ndarray, window: int, vocabulary: int) -> np.ndarray:
    """float64[len(words), vocabulary]: X of some words with every context, both sides, counted from the text."""
    counts = np.zeros((len(words), vocabulary))
    for row, word in zip(counts, words, strict=True):
        for begin in range(0, len(ids), TEXT):
            places = begin + np.flatnonzero(np.asarray(ids[begin : begin + TEXT]) == word)
            sentence = np.searchsorted(ends, places, side="right")
            last = ends[sentence]
            first = np.where(sentence > 0, ends[np.maximum(sentence - 1, 0)], 0)
            for distance in range(1, window + 1):
                for beside, inside in ((places - distance, places - distance >= first),
                                       (places + distance, places + distance < last)):  # fmt: skip
                    np.add.at(row, ids[beside[inside]], 1 / distance)
    return counts
