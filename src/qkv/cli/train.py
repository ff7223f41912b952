"""``qkv train``: see `qkv.train.options` for what it takes and `qkv.train.loop` for what it does."""

from collections.abc import Sequence

from qkv.train.options import from_flags

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    run = from_flags(argv)
    from qkv.train.loop import train  # torch is not needed for --help, nor to find a mistyped key

    return 130 if train(run).interrupted else 0
