"""Batches of captions with their pictures as a pure function of (seed, epoch, position), so that resuming is a jump.

A batch holds captions of all lengths, and each of their pictures once. (Xu et al. 2015, section 4.3, make batches of
one length. But then a batch is easily of one meaning: "left of" has a word more than "above", and which of them it is
was not learned in such batches.) Several ranks share an epoch by taking the places ``step * ranks + rank``, as with
`qkv.data.buckets`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkv.data.augment import augmented, erase
from qkv.data.buckets import pad_rows
from qkv.data.cell_store import CellStore
from qkv.data.image_batches import Images
from qkv.data.image_files import Augment

__all__ = ["CaptionBatch", "CaptionBatches", "HeldOutCaptions"]


class Position(Protocol):
    """`qkv.tasks.task.Position`, of which this file knows no more than: an epoch, and a batch in it."""

    epoch: int
    batch: int


@dataclass(frozen=True)
class CaptionBatch:
    """Some captions, padded on the right, and their pictures.

    ``pictures`` are images, or cells where an encoder has seen them before; ``which`` is the row of them that each
    caption tells about. A target row is the start id, pieces and the end mark, and ``lengths`` count them all.
    ``targets`` is how many real pieces are to be predicted (all but the start).
    """

    pictures: Float[Tensor, "picture 3 row column"] | Float[Tensor, "picture cell width"]
    which: Int[Tensor, "caption"]
    target: Int[Tensor, "caption target"]
    lengths: Int[Tensor, "caption"]
    targets: int

    @property
    def size(self) -> int:
        return len(self.target)

    @property
    def seen(self) -> bool:
        """Whether ``pictures`` are cells."""
        return self.pictures.ndim == 3

    def to(self, device: torch.device | str, non_blocking: bool = True) -> "CaptionBatch":
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "CaptionBatch":
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, move: Callable[[Tensor], Tensor]) -> "CaptionBatch":
        return replace(self, **{name: move(getattr(self, name)) for name in ("pictures", "which", "target", "lengths")})


class _Captions:
    """The captions of the pictures of one part: ``pairs[i]`` is a picture and which of its captions."""

    def __init__(self, images: Images, cells: CellStore | None):
        self.images, self.cells, self.codec = images, cells, images.codec
        self.pairs = np.array([(i, n) for i, some in enumerate(images.labels) for n in range(len(some))], np.int64)
        self.widths = np.array([len(ids) for some in images.labels for ids in some], np.int64)

    def make(self, rows: np.ndarray, see: Callable[[list[int]], Tensor]) -> CaptionBatch:
        ids, which = np.unique(self.pairs[rows, 0], return_inverse=True)
        target, lengths = pad_rows([self.images.labels[i][n] for i, n in self.pairs[rows].tolist()], self.codec.pad)
        pictures = see(ids.tolist()) if self.cells is None else self.cells[ids]
        return CaptionBatch(pictures, torch.from_numpy(which), target, lengths, int(lengths.sum()) - len(rows))


class CaptionBatches:
    """Training batches; fits `qkv.tasks.task.Batches`. Every caption occurs once an epoch.

    Args:
        images: the pictures, their labels being the ids of their captions (see `CaptionCodec.encode`).
        cells: what an encoder has seen of each; then no picture is read, and nothing is augmented.
    """

    def __init__(self, images: Images, batch: int, augment: Augment, seed: int = 0, cells: CellStore | None = None):
        self.captions, self.size, self.augment, self.seed = _Captions(images, cells), batch, augment, seed
        self._order = lru_cache(2)(self._shuffled)

    def __len__(self) -> int:
        return len(self.captions.pairs)

    def epoch_length(self, epoch: int) -> int:
        """The number of batches of an epoch: the same for all."""
        return -(-len(self) // self.size)

    def batch(self, position: Position) -> CaptionBatch:
        """The batch at a place.

        Raises:
            IndexError: the epoch has no such batch.
            DataError: a picture's file has gone or changed meanwhile.
        """
        length = self.epoch_length(position.epoch)
        if not 0 <= position.batch < length:
            raise IndexError(f"epoch {position.epoch} has {length} batches, there is no batch {position.batch}")
        seed = (self.seed, position.epoch, 1 + position.batch)
        begin = position.batch * self.size
        rows = self._order(position.epoch)[begin : begin + self.size]
        return self.captions.make(rows, partial(self._see, seed))

    def _shuffled(self, epoch: int) -> np.ndarray:
        return np.random.default_rng((self.seed, epoch)).permutation(len(self))

    def _see(self, seed: tuple[int, ...], ids: list[int]) -> Float[Tensor, "picture 3 row column"]:
        preprocess = self.captions.codec.preprocess
        # From 1: a seed that ends in zero is the seed without it.
        chances = [np.random.default_rng((*seed, 1 + i)) for i in range(len(ids))]
        pixels = self.captions.images.each(partial(augmented, self.augment, preprocess), ids, chances)
        images = preprocess.normalise(torch.from_numpy(np.stack(pixels)))
        for image, chance in zip(images, chances, strict=True):
            erase(image, self.augment.erasing, chance)
        return images


class HeldOutCaptions(Sequence[CaptionBatch]):
    """Each caption once, by length, its picture unchanged but for the preprocessing; made when asked for."""

    def __init__(self, images: Images, batch: int, cells: CellStore | None = None):
        self.captions, self.images, self.size = _Captions(images, cells), images, batch
        self.order = np.argsort(self.captions.widths, kind="stable")

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)

    def __getitem__(self, place: int) -> CaptionBatch:
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} batches, there is no batch {place}")
        return self.captions.make(self.order[place * self.size : (place + 1) * self.size], self.shown)

    def pictures(self, ids: Sequence[int]) -> Tensor:
        """Images, or cells, of some pictures."""
        return self.shown(list(ids)) if self.captions.cells is None else self.captions.cells[np.array(ids, np.int64)]

    def shown(self, ids: list[int]) -> Float[Tensor, "picture 3 row column"]:
        preprocess = self.images.codec.preprocess
        return preprocess.normalise(torch.from_numpy(np.stack(self.images.each(preprocess.shown, ids))))
