"""``qkv train``: see `qkv.train.options` for what it takes and `qkv.train.loop` for what it does."""

import os
from collections.abc import Sequence

from qkv.train.options import from_flags

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    # One process of several: torch warns, from C++, of the search for unused weights that the loop asks for.
    if "WORLD_SIZE" in os.environ:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    run = from_flags(argv)
    from qkv.train.loop import train  # torch is not needed for --help, nor to find a mistyped key

    return 130 if train(run).interrupted else 0
