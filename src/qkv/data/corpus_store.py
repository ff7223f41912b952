"""Encoded documents on disk, mapped into memory: what pretraining reads, however large the corpus.

A folder holds flat arrays: ``pieces`` (ids without marks, one sentence after the other), ``sentences`` (where each ends
in ``pieces``), ``documents`` (where each ends in ``sentences``), ``firsts`` and ``lasts`` (the sentences of each input,
see `CorpusWriter`), and ``store.json`` with the counts and a checksum of each file.
"""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from qkv.data.store import checksum, map_array, read_checked
from qkv.errors import DataError

__all__ = ["CorpusStore", "CorpusWriter"]

ARRAYS = ("pieces", "sentences", "documents", "firsts", "lasts")


class CorpusStore:
    """Documents of sentences of ids, and the inputs that they make, each numbered from 0."""

    def __init__(self, folder: Path):
        """Open what `CorpusWriter` wrote.

        Raises:
            DataError: the folder is not whole: a file is missing, cut short or changed.
        """
        folder = Path(folder)
        try:
            header = read_checked(folder, ARRAYS)
            self.pieces = map_array(folder / "pieces", header["dtype"])
            self.sentences, self.documents, self.firsts, self.lasts = (
                map_array(folder / name, "<i8") for name in ARRAYS[1:]
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"the encoded data is damaged ({error})", remedy=f"remove {folder}", file=folder) from error

    def __len__(self) -> int:
        """How many inputs there are."""
        return len(self.firsts)

    def start(self, sentence: int) -> int:
        """Where a sentence begins in ``pieces``."""
        return int(self.sentences[sentence - 1]) if sentence else 0

    def run(self, first: int, last: int) -> np.ndarray:
        """The pieces of the sentences from ``first`` up to ``last``, which is left out."""
        return self.pieces[self.start(first) : self.start(last)]

    def document(self, sentence: int) -> int:
        """The document that a sentence belongs to."""
        return int(np.searchsorted(self.documents, sentence, side="right"))

    def bounds(self, document: int) -> tuple[int, int]:
        """The first sentence of a document, and the first after it."""
        return int(self.documents[document - 1]) if document else 0, int(self.documents[document])

    def lengths(self, index: np.ndarray) -> np.ndarray:
        """int64[index]: the pieces of each of the inputs asked for."""
        first, last = self.firsts[index], self.lasts[index]
        before = np.where(first > 0, self.sentences[np.maximum(first - 1, 0)], 0)
        return self.sentences[last - 1] - before

    def borders(self, index: np.ndarray) -> np.ndarray:
        """int64[index]: how many borders between documents lie in each of the inputs asked for."""
        of_first = np.searchsorted(self.documents, self.firsts[index], side="right")
        return np.searchsorted(self.documents, self.lasts[index] - 1, side="right") - of_first


class CorpusWriter:
    """Writes a `CorpusStore` folder and cuts it into inputs. Use as a context: `add` sentences, `end_document`.

    An input is a run of whole sentences of at most ``room`` pieces. In pairs it stays within a document and has two
    sentences or more, of which the first few will be the first text; a document of one sentence makes none. Not in
    pairs it goes on into the next document, with a mark between (the "full sentences" of Liu et al. 2019).

    A sentence that is longer than fits (half of ``room`` in pairs) is parted into parts of equal size.

    Attributes:
        count: given: sentences that were added; parted: those of them that were too long; sentences: what they came to;
            pieces, documents, inputs; single: documents of one sentence.
    """

    def __init__(self, folder: Path, size: int, room: int, pairs: bool):
        self.folder, self.room, self.pairs = Path(folder), room, pairs
        self.dtype = "<u2" if size <= 1 << 16 else "<u4"
        self.longest = room // 2 if pairs else room
        self.count = dict.fromkeys(("given", "pieces", "sentences", "documents", "inputs", "single", "parted"), 0)
        self._sizes: list[int] = []  # of the sentences of the open document
        self._begun, self._used = 0, 0  # the first sentence of the open input, and what it holds of ``room``

    def __enter__(self) -> "CorpusWriter":
        self.folder.mkdir(parents=True)
        self._files = {name: open(self.folder / name, "wb") for name in ARRAYS}  # noqa: SIM115 closed by __exit__
        return self

    def add(self, sentences: list[list[int]]) -> None:
        """Append sentences to the open document."""
        np.array([i for row in sentences for i in row], self.dtype).tofile(self._files["pieces"])
        self.count["given"] += len(sentences)
        for size in map(len, sentences):
            parts = -(-size // self.longest)
            self.count["parted"] += parts > 1
            self._sizes += [size * (part + 1) // parts - size * part // parts for part in range(parts)]

    def end_document(self) -> None:
        """Nothing more comes of the open document."""
        sizes, self._sizes = self._sizes, []
        if not sizes:
            return
        first = self.count["sentences"]
        last = first + len(sizes)
        cuts = self._cuts(first, sizes)
        if self.pairs:
            # The end of a document that is one sentence takes one more of the input before it.
            if len(cuts) > 1 and last - cuts[-1] == 1 and cuts[-1] - cuts[-2] > 2:
                cuts[-1] -= 1
            inputs = [run for run in pairwise([*cuts, last]) if run[1] - run[0] > 1]
            self._begun, self._used = last, 0
        else:
            inputs = list(pairwise(cuts))
            self._begun, self._used = cuts[-1], self._used + 1  # the mark between documents
        self._write_inputs(inputs)
        ends = self.count["pieces"] + np.cumsum(sizes, dtype="<i8")
        ends.tofile(self._files["sentences"])
        np.array([last], "<i8").tofile(self._files["documents"])
        self.count["pieces"], self.count["sentences"] = int(ends[-1]), last
        self.count["documents"] += 1
        self.count["single"] += len(sizes) == 1

    def _cuts(self, first: int, sizes: list[int]) -> list[int]:
        """Where inputs begin: that of the open one, and of all that are begun by these sentences."""
        cuts, used = [self._begun], self._used
        for sentence, size in enumerate(sizes, start=first):
            if used + size > self.room and sentence > cuts[-1]:
                cuts.append(sentence)
                used = 0
            used += size
        self._used = used
        return cuts

    def _write_inputs(self, inputs: list[tuple[int, int]]) -> None:
        for name, side in (("firsts", 0), ("lasts", 1)):
            np.array([run[side] for run in inputs], "<i8").tofile(self._files[name])
        self.count["inputs"] += len(inputs)

    def __exit__(self, kind, error, trace) -> None:
        if kind is None and not self.pairs and self.count["sentences"] > self._begun:
            self._write_inputs([(self._begun, self.count["sentences"])])
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        if kind is None:
            checksums = {name: checksum(self.folder / name) for name in ARRAYS}
            header = {"version": 1, "count": self.count, "dtype": self.dtype, "checksums": checksums}
            (self.folder / "store.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
