"""Windows of a text as batches for autograd: the readable twin of the kernel's way through it.

Which words are dropped, and how wide each window is, is the same as in `qkv.kernels.word2vec`: the same hash of
(seed, epoch, place).
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from qkv.data.word_ids import WordIds
from qkv.data.words import Words
from qkv.kernels.word2vec import paths_of
from qkv.tasks.task import Position
from qkv.tasks.word_learner import keep_thresholds

__all__ = ["Windows", "WordWindows", "mixed"]

GOLDEN, ONE, TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Windows:
    """Windows, padded on the right. ``rows`` and ``labels`` are what is predicted; with a softmax there are none."""

    centres: Int[Tensor, "batch"]
    contexts: Int[Tensor, "batch place"]
    lengths: Int[Tensor, "batch"]
    rows: Int[Tensor, "batch row"] | None
    labels: Float[Tensor, "batch row"] | None
    real_rows: Bool[Tensor, "batch row"] | None
    targets: int

    @property
    def size(self) -> int:
        return len(self.centres)

    def to(self, device) -> "Windows":
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **moved)

    def pin_memory(self) -> "Windows":
        return self


def mixed(x: np.ndarray) -> np.ndarray:
    """The kernel's hash of some uint64."""
    x = (x ^ (x >> np.uint64(30))) * ONE
    x = (x ^ (x >> np.uint64(27))) * TWO
    return x ^ (x >> np.uint64(31))


class WordWindows:
    """Batches of the windows around ``places`` of the text each, as a function of (seed, epoch, batch)."""

    def __init__(self, text: WordIds, words: Words, config, seed: int, places: int = 1024):
        self.text, self.config, self.seed, self.places = text, config, seed, places
        self.kept = keep_thresholds(words.counts, config.sample)
        weights = np.asarray(words.counts, np.float64) ** config.power
        self.chance = np.cumsum(weights / weights.sum())
        self.paths = paths_of(words.counts) if config.output == "hierarchical" else None

    def epoch_length(self, epoch: int) -> int:
        return -(-len(self.text.ids) // self.places)

    def batch(self, position: Position) -> Windows:
        begin, window = position.batch * self.places, self.config.window
        end = min(begin + self.places, len(self.text.ids))
        seed = np.random.SeedSequence([self.seed, position.epoch]).generate_state(1, np.uint64)[0]
        centres, contexts = [], []
        s = int(np.searchsorted(self.text.ends, begin, side="right"))
        while begin < end:
            first, last = int(self.text.ends[s - 1]) if s else 0, int(self.text.ends[s])
            s += 1
            words, places, spread = self._sentence(first, last, min(end, last), begin, window, seed)
            for i in np.flatnonzero((places >= begin) & (places < end)):
                around = [*words[max(0, i - spread[i]) : i], *words[i + 1 : i + spread[i] + 1]]
                if around:
                    centres.append(int(words[i]))
                    contexts.append(around)
            begin = last
        return self._windows(centres, contexts, np.random.default_rng([self.seed, position.epoch, position.batch]))

    def _sentence(self, first: int, last: int, upto: int, begin: int, window: int, seed: np.uint64):
        """Kept words around the centres of one sentence: their ids, places, and windows."""
        # Dropped words make room, so the words that a window reaches may be far: look on until enough are kept.
        reach = 64 * window
        low, high = max(first, begin - reach), min(last, upto + reach)
        places = np.arange(low, high)
        draws = mixed(seed + places.astype(np.uint64))
        kept = (draws >> np.uint64(40)) < self.kept[self.text.ids[low:high]]
        spread = 1 + ((draws[kept] & np.uint64(0xFFFFFFFF)) * np.uint64(window) >> np.uint64(32)).astype(np.int64)
        return self.text.ids[low:high][kept], places[kept], spread

    def _windows(self, centres: list[int], contexts: list[list[int]], draw: np.random.Generator) -> Windows:
        count, widest = len(centres), max(map(len, contexts), default=1)
        padded = np.zeros((count, widest), np.int64)
        for i, around in enumerate(contexts):
            padded[i, : len(around)] = around
        lengths = torch.tensor([len(around) for around in contexts], dtype=torch.long)
        middle = torch.tensor(centres, dtype=torch.long)
        targets = count if hasattr(self.config, "combine") else int(lengths.sum())  # CBOW predicts once a window
        rows = labels = real = None
        if self.config.output == "negative":
            drawn = np.searchsorted(self.chance, draw.random((count, self.config.negatives)))
            drawn = np.minimum(drawn, len(self.chance) - 1)
            rows = torch.from_numpy(np.concatenate([np.array(centres, np.int64).reshape(-1, 1), drawn], 1))
            labels = torch.zeros(rows.shape)
            labels[:, 0] = 1
            real = torch.cat([torch.ones(count, 1, dtype=torch.bool), rows[:, 1:] != rows[:, :1]], 1)
        elif self.config.output == "hierarchical":
            codes, turns, starts = self.paths
            longest = max((int(starts[c + 1] - starts[c]) for c in centres), default=1)
            rows = torch.zeros(count, longest, dtype=torch.long)
            labels, real = torch.zeros(count, longest), torch.zeros(count, longest, dtype=torch.bool)
            for i, centre in enumerate(centres):
                begin, end = starts[centre], starts[centre + 1]
                rows[i, : end - begin] = torch.from_numpy(codes[begin:end].astype(np.int64))
                labels[i, : end - begin] = torch.from_numpy(turns[begin:end])
                real[i, : end - begin] = True
        return Windows(middle, torch.from_numpy(padded), lengths, rows, labels, real, targets)
