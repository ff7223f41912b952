"""Dropout and the like as a pure function of the batch: its random numbers depend on (seed, epoch, batch) alone.

So there is no random state to save or to restore, a resumed run drops what the unbroken one would have, and two
processes drop what one would have.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import torch

from qkv.tasks.task import Position

__all__ = ["kept", "seed_all", "seed_batch"]


def seed_batch(seed: int, position: Position) -> None:
    """Set every generator (python's, numpy's, torch's, the GPUs') for the batch at a position."""
    words = numpy.random.SeedSequence([seed, position.epoch, position.batch]).generate_state(2)
    seed_all(int(words[0]) << 32 | int(words[1]))


def seed_all(seed: int) -> None:
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed % 2**63)


@contextmanager
def kept() -> Iterator[None]:
    """Whatever the block draws, the generators stand afterwards where they stood before."""
    python, numbers = random.getstate(), numpy.random.get_state()
    with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
        try:
            yield
        finally:
            random.setstate(python)
            numpy.random.set_state(numbers)
