"""``qkv shapes``: drawn pictures and clips with what decides their class, to train and study on."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv shapes --out shapes                        # class folders, and which patch decides
  qkv shapes --out clips --clips --train 1200    # 16 frames a clip, 1 to 3 of them holding the event
"""


def shapes(
    *,
    out: Path,
    clips: bool = False,
    train: int = 600,
    val: int = 120,
    test: int = 120,
    classes: int = 6,
    size: int = 32,
    patch: int = 8,
    seed: int = 0,
) -> None:
    """Write drawn pictures or clips in which one patch, or one to three frames, decide the class.

    Args:
        out: a new folder for train, val and test.
        clips: clips as folders of frames, and tables that say which frames hold the event.
        train: how many to train on.
        val: how many to choose weights by.
        test: how many to report on.
        classes: kinds of marks, from 2 to 6.
        size: height and width in pixels.
        patch: side of the grid's patches; a mark fills one.
        seed: the same seed draws the same.
    """
    from qkv.data.shapes import write_clips, write_shapes
    from qkv.errors import ConfigError

    for name, value in (("train", train), ("val", val), ("test", test)):
        if value < 1:
            raise ConfigError(f"--{name} is {value}", expected="a whole number from 1")
    if out.exists() and any(out.iterdir()):
        raise ConfigError("there is something in it already", file=out, remedy="name a new folder")
    counts = {"train": train, "val": val, "test": test}
    (write_clips if clips else write_shapes)(out, counts, seed, size=size, patch=patch, classes=classes)
    print(f"wrote {train:,} + {val:,} + {test:,} {'clips' if clips else 'pictures'} into {out}")


def main(argv: Sequence[str]) -> int:
    run_verb(shapes, "shapes", argv, EXAMPLES)
    return 0
