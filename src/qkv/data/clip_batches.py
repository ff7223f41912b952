"""Batches of clips as a pure function of (seed, epoch, position), so that resuming is a jump."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from qkv.data.augment import flip, shift
from qkv.data.clip_codec import ClipCodec
from qkv.data.clip_listing import ClipExample
from qkv.data.image_batches import Position, SeenBatch
from qkv.data.image_store import ImageStore

__all__ = ["ClipBatch", "ClipBatches", "Clips", "HeldOutClips", "Told", "stack"]


@dataclass(frozen=True)
class Told:
    """What is known of a clip beside its pixels: its label, the times of the frames read, and their classes if told."""

    label: str | float
    times: tuple[float, ...]
    marks: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ClipBatch(SeenBatch):
    """Some clips, padded on the right to the longest, and what is to be learned of them.

    ``lengths`` are their real frames; ``times`` begin each frame, in seconds. ``labels`` are as in
    `qkv.data.image_batches.ImageBatch`; ``frame_labels`` are -1 where nothing is told. ``targets`` is the number of
    clips: what a loss is summed over.
    """

    images: Float[Tensor, "clip frame 3 row column"]
    lengths: Int[Tensor, "clip"]
    times: Float[Tensor, "clip frame"]
    labels: Float[Tensor, "clip output"]
    frame_labels: Int[Tensor, "clip frame"]
    ids: Int[Tensor, "clip"]


class Clips:
    """Clips of one part with what is told of them, numbered from 0.

    Args:
        rows: which of ``examples``, ``told`` and ``store`` they are.
    """

    def __init__(
        self,
        examples: Sequence[ClipExample],
        told: Sequence[Told],
        rows: np.ndarray,
        codec: ClipCodec,
        store: ImageStore | None = None,
    ):
        self.examples, self.told, self.rows, self.codec, self.store = examples, told, rows, codec, store
        self.labels = codec.images.encode([told[row].label for row in rows])

    def __len__(self) -> int:
        return len(self.rows)

    def pixels(self, i: int) -> UInt8[np.ndarray, "frame row column 3"]:
        """The frames that are read of a clip. Raises DataError: a file has gone or changed meanwhile."""
        row = int(self.rows[i])
        kept = self.store[row] if self.store is not None else None
        if kept is None:
            return self.codec.read(self.examples[row].clip)[0]
        return kept.reshape(-1, *self.codec.images.preprocess.size, 3)

    def batch(self, ids: np.ndarray, frames: Sequence[UInt8[np.ndarray, "frame row column 3"]]) -> ClipBatch:
        """Clips by number, with these pixels."""
        told = [self.told[int(self.rows[i])] for i in ids]
        images, lengths = stack(frames, self.codec)
        longest = images.shape[1]
        times, marks = torch.zeros(len(ids), longest), torch.full((len(ids), longest), -1)
        for row, one in enumerate(told):
            times[row, : len(one.times)] = torch.tensor(one.times)
            marks[row, : len(one.times)] = self.codec.encode_frames(one.marks, len(one.times))
        return ClipBatch(images, lengths, times, self.labels[ids], marks, torch.from_numpy(ids.copy()))

    def each(self, ids: Sequence[int]) -> list[UInt8[np.ndarray, "frame row column 3"]]:
        """`pixels` of several clips; what must be decoded is so on several threads."""
        if self.store is not None and all(self.store.holds(int(self.rows[i])) for i in ids):
            return list(map(self.pixels, ids))
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return list(pool.map(self.pixels, ids))

    def where(self, i: int) -> str:
        """What messages call a clip."""
        return self.examples[int(self.rows[i])].where


def stack(
    frames: Sequence[UInt8[np.ndarray, "frame row column 3"]], codec: ClipCodec
) -> tuple[Float[Tensor, "clip frame 3 row column"], Int[Tensor, "clip"]]:
    """Clips side by side as the model reads them, zeros after the shorter ones, and their lengths."""
    lengths = torch.tensor([len(some) for some in frames])
    images = torch.zeros(len(frames), int(lengths.max()), 3, *codec.images.preprocess.size)
    for row, some in zip(images, frames, strict=True):
        if len(some):
            row[: len(some)] = codec.images.preprocess.normalise(torch.from_numpy(some.copy()))
    return images, lengths


class ClipBatches:
    """Training batches; fits `qkv.tasks.task.Batches`. Every clip occurs once an epoch; the last batch is smaller.

    Each clip is moved and mirrored, all its frames alike, by a generator of (seed, epoch, batch, its place).
    """

    def __init__(self, clips: Clips, batch: int, seed: int = 0, *, most_shift: int = 0, how_often: float = 0.0):
        self.clips, self.size, self.seed = clips, batch, seed
        self.most_shift, self.how_often = most_shift, how_often
        self._order = lru_cache(2)(self._shuffled)

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch: the same for all."""
        return -(-len(self.clips) // self.size)

    def batch(self, position: Position) -> ClipBatch:
        """The batch at a place.

        Raises:
            IndexError: the epoch has no such batch.
            DataError: a clip's file has gone or changed meanwhile.
        """
        length = self.epoch_length(position.epoch)
        if not 0 <= position.batch < length:
            raise IndexError(f"epoch {position.epoch} has {length} batches, there is no batch {position.batch}")
        begin = position.batch * self.size
        ids = self._order(position.epoch)[begin : begin + self.size]
        # Places count from 1: a seed that ends in zero is the seed without it.
        seeds = [(self.seed, position.epoch, 1 + position.batch, 1 + place) for place in range(len(ids))]
        frames = [self._changed(some, seed) for some, seed in zip(self.clips.each(ids), seeds, strict=True)]
        return self.clips.batch(ids, frames)

    def _changed(self, frames: np.ndarray, seed: tuple[int, ...]) -> np.ndarray:
        if not (self.most_shift or self.how_often) or not len(frames):
            return frames

        def change(pixels: np.ndarray) -> np.ndarray:
            chance = np.random.default_rng(seed)  # the same again for each frame
            return flip(shift(pixels, self.most_shift, chance), self.how_often, chance)

        return np.stack([change(pixels) for pixels in frames])

    def _shuffled(self, epoch: int) -> np.ndarray:
        return np.random.default_rng((self.seed, epoch)).permutation(len(self.clips))


class HeldOutClips(Sequence[ClipBatch]):
    """Each clip once, in order, unchanged but for the preprocessing; made when asked for, not held in memory."""

    def __init__(self, clips: Clips, batch: int):
        self.clips, self.size = clips, batch

    def __len__(self) -> int:
        return -(-len(self.clips) // self.size)

    def __getitem__(self, place: int) -> ClipBatch:
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} batches, there is no batch {place}")
        ids = np.arange(place * self.size, min((place + 1) * self.size, len(self.clips)))
        return self.clips.batch(ids, self.clips.each(ids))
