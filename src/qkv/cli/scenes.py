"""``qkv scenes``: the built-in drawn scenes with captions, to train and study on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from qkv.cli.verb import run_verb
from qkv.errors import ConfigError

__all__ = ["main"]

EXAMPLES = """examples:
  qkv scenes --out scenes
  qkv scenes --out scenes --language ko --train 20000 --size 96
"""


def scenes(
    *,
    out: Path,
    train: int = 8000,
    dev: int = 200,
    test: int = 300,
    language: Literal["en", "ko"] = "en",
    size: int = 64,
    seed: int = 0,
) -> None:
    """Draw scenes of two shapes ("a red circle left of a blue square") with their captions, as qkv train caption takes
    them; for each word of a caption the box of the shape that it means stands beside.

    Args:
        out: the folder for the pictures and {train,dev,test}.jsonl.
        train: training scenes.
        dev: held-out scenes to choose weights by.
        test: held-out scenes to report on; no combination in them is in the training scenes, all their parts are.
        language: of the captions.
        size: height and width in pixels.
        seed: of the scenes.
    """
    from qkv.data.scenes import write_scenes

    for name, value in (("train", train), ("dev", dev), ("test", test)):
        if value < 1:
            raise ConfigError(f"--{name} is {value}", expected="a whole number from 1")
    write_scenes(out, {"train": train, "dev": dev, "test": test}, language, seed, size)
    print(f"wrote {train:,} + {dev:,} + {test:,} scenes into {out}")


def main(argv: Sequence[str]) -> int:
    run_verb(scenes, "scenes", argv, EXAMPLES)
    return 0
