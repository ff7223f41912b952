"""Batches of pictures as a pure function of (seed, epoch, position), so that resuming is a jump.

Several ranks share an epoch by taking the places ``step * ranks + rank``, as with `qkv.data.buckets`.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Protocol, Self

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from qkv.data.augment import augmented, erase
from qkv.data.image_codec import ImageCodec
from qkv.data.image_files import Augment
from qkv.data.image_listing import Example
from qkv.data.image_store import ImageStore
from qkv.data.mix import cutmix, mixup
from qkv.data.pictures import decode

__all__ = ["HeldOut", "ImageBatch", "ImageBatches", "Images", "SeenBatch"]


class Position(Protocol):
    """`qkv.tasks.task.Position`, of which this file knows no more than: an epoch, and a batch in it."""

    epoch: int
    batch: int


class SeenBatch:
    """What batches of something seen share: tensors, of which ``images`` has a row for each example."""

    images: Tensor

    @property
    def targets(self) -> int:
        return len(self.images)

    @property
    def size(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str, non_blocking: bool = True) -> Self:
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, move: Callable[[Tensor], Tensor]) -> Self:
        return replace(self, **{name: move(value) for name, value in vars(self).items()})


@dataclass(frozen=True)
class ImageBatch(SeenBatch):
    """Some pictures and what is to be learned of them.

    ``labels`` are shares: 1 for each class that a picture has and 0 for the others, between them where pictures were
    mixed; or one scaled number (`ImageCodec.encode`). ``ids`` count the pictures of their part from 0. ``targets`` is
    the number of pictures: what a loss is summed over.
    """

    images: Float[Tensor, "image 3 row column"]
    labels: Float[Tensor, "image output"]
    ids: Int[Tensor, "image"]


class Images:
    """Pictures of one part with their labels, numbered from 0.

    Args:
        rows: which of ``examples`` (and of ``store``, which has as many) they are.
    """

    def __init__(
        self, examples: Sequence[Example], rows: np.ndarray, codec: ImageCodec, store: ImageStore | None = None
    ):
        self.examples, self.rows, self.codec, self.store = examples, rows, codec, store
        self.labels = codec.encode([examples[row].label for row in rows])

    def __len__(self) -> int:
        return len(self.rows)

    def pixels(self, i: int) -> UInt8[np.ndarray, "row column 3"]:
        """A picture as it was decoded. Raises DataError: its file has gone or changed meanwhile."""
        row = int(self.rows[i])
        kept = self.store[row] if self.store is not None else None
        return decode(self.examples[row].read(), self.examples[row].where).pixels if kept is None else kept

    def each(self, make: Callable[..., np.ndarray], ids: Sequence[int], *more: Sequence) -> list[np.ndarray]:
        """``make(pixels, ...)`` of each picture asked for, in order.

        What must be decoded is so on several threads, each with one whole picture in memory at a time.
        """

        def one(i: int, *rest) -> np.ndarray:
            return make(self.pixels(i), *rest)

        if self.store is not None and all(self.store.holds(int(self.rows[i])) for i in ids):
            return list(map(one, ids, *more))
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return list(pool.map(one, ids, *more))

    def where(self, i: int) -> str:
        """What messages call a picture."""
        return self.examples[int(self.rows[i])].where


class ImageBatches:
    """Training batches; fits `qkv.tasks.task.Batches`. Every picture occurs once an epoch; the last batch is smaller.

    What is random in a batch is drawn from a generator of (seed, epoch, batch), and in a picture from one of its own,
    so that no picture depends on what its neighbours drew.
    """

    def __init__(self, images: Images, batch: int, augment: Augment, seed: int = 0):
        self.images, self.size, self.augment, self.seed = images, batch, augment, seed
        self._order = lru_cache(2)(self._shuffled)

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch: the same for all."""
        return -(-len(self.images) // self.size)

    def batch(self, position: Position) -> ImageBatch:
        """The batch at a place.

        Raises:
            IndexError: the epoch has no such batch.
            DataError: a picture's file has gone or changed meanwhile.
        """
        ids = self.ids(position)
        preprocess = self.images.codec.preprocess
        seed = (self.seed, position.epoch, 1 + position.batch)
        # From 1: a seed that ends in zero is the seed without it.
        chances = [np.random.default_rng((*seed, 1 + i)) for i in range(len(ids))]
        change = partial(augmented, self.augment, preprocess)
        pixels = self.images.each(change, ids.tolist(), chances)
        images = preprocess.normalise(torch.from_numpy(np.stack(pixels)))
        for image, chance in zip(images, chances, strict=True):
            erase(image, self.augment.erasing, chance)
        images, labels = self._mixed(images, self.images.labels[ids], np.random.default_rng(seed))
        return ImageBatch(images, labels, torch.from_numpy(ids.copy()))

    def ids(self, position: Position) -> Int[np.ndarray, "image"]:
        """Which pictures make up the batch at a place."""
        length = self.epoch_length(position.epoch)
        if not 0 <= position.batch < length:
            raise IndexError(f"epoch {position.epoch} has {length} batches, there is no batch {position.batch}")
        begin = position.batch * self.size
        return self._order(position.epoch)[begin : begin + self.size]

    def _shuffled(self, epoch: int) -> np.ndarray:
        return np.random.default_rng((self.seed, epoch)).permutation(len(self.images))

    def _mixed(self, images: Tensor, labels: Tensor, chance: np.random.Generator) -> tuple[Tensor, Tensor]:
        ways = [(mix, alpha) for mix, alpha in ((mixup, self.augment.mixup), (cutmix, self.augment.cutmix)) if alpha]
        if not ways or chance.random() >= self.augment.mixed:
            return images, labels
        mix, alpha = ways[int(chance.integers(len(ways)))]
        return mix(images, labels, alpha, chance)


class HeldOut(Sequence[ImageBatch]):
    """Each picture once, in order, unchanged but for the preprocessing; made when asked for, not held in memory."""

    def __init__(self, images: Images, batch: int):
        self.images, self.size = images, batch

    def __len__(self) -> int:
        return -(-len(self.images) // self.size)

    def __getitem__(self, place: int) -> ImageBatch:
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} batches, there is no batch {place}")
        ids = np.arange(place * self.size, min((place + 1) * self.size, len(self.images)))
        preprocess = self.images.codec.preprocess
        shown = np.stack(self.images.each(preprocess.shown, ids.tolist()))
        images = preprocess.normalise(torch.from_numpy(shown))
        return ImageBatch(images, self.images.labels[ids], torch.from_numpy(ids))
