"""The known answer for captions: drawn scenes, from scratch, then combinations that were never trained on.

    python benchmarks/scenes.py                          # English; some minutes on 2 cores
    python benchmarks/scenes.py --language ko
    python benchmarks/scenes.py --attention none         # the same without a look

Written are the share of captions that are exactly right, and, for nouns and colours, how much of the attention's mass
lies on the cells that the right shape touches, beside the share of all cells that those are (chance), read off the same
maps that the picture is drawn from.
"""

import argparse
import json
import math
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from qkv.data.scenes import Scene, scenes, write_scenes
from qkv.decode.search import Search
from qkv.look.told import look_at_picture, told_words
from qkv.tasks.load import load
from qkv.train.loop import train
from qkv.train.options import from_mapping

SIZE = 64
# Stem 7 x 7 of stride 2, pooling over 3 x 3 of stride 2, two blocks, the second of stride 2: cells of 8 x 8 pixels that
# see 51 x 51.
ENCODER = {"stem": "large", "stem_width": 24, "widths": [32, 64], "depths": [1, 1]}
STRIDE, FIELD = 8, 51


def settings(folder: Path, out: Path, steps: int, attention: str = "additive", positions: str = "learned") -> dict:
    """The run that is measured."""
    return {
        "model": "captioner",
        "size": {
            "dim": 96, "dropout": 0.0, "attention": attention, "positions": positions, "encoder": "resnet",
            "encoder_size": json.dumps(ENCODER),
        },
        "data": {"folder": str(folder), "batch": 32},
        "learn": {"smoothing": 0.0, "doubly": 0.0},
        "optimize": {"lr": 3e-3, "warmup": 100, "schedule": "cosine"},
        "loop": {"steps": steps, "evaluate_every": max(1, min(500, steps)), "best": "loss"},
        "out": out,
    }  # fmt: skip


def mass(scene: Scene, words: list, language: str, grid) -> list[tuple[float, float]]:
    """For each noun and colour: the attention on the cells that its shape touches, and the share of cells they are."""
    found = []
    for said, word in zip(scene.said(language), words, strict=False):
        if said.box is None or word.text != said.word:
            continue
        left, top, right, bottom = said.box
        rows = slice(int(top // STRIDE), math.ceil(bottom / STRIDE))
        columns = slice(int(left // STRIDE), math.ceil(right / STRIDE))
        touched = word.heat[rows, columns]
        found.append((float(touched.sum()), touched.size / word.heat.size))
    return found


def measure(run: Path, language: str, count: int) -> dict[str, float]:
    """Exact captions of unseen combinations, and where their words looked while the right caption is said."""
    captioner = load(run)
    test = list(islice(scenes(0, "test", SIZE), count))
    told = captioner([scene.pixels for scene in test], how=Search(beam=3))
    exact = sum(answer.text == scene.caption(language) for answer, scene in zip(told, test, strict=True)) / count
    if captioner.model.config.attention == "none":
        return {"exact": exact}
    looks = [look_at_picture(captioner, scene.pixels, caption=scene.caption(language)) for scene in test]
    grid = captioner.grid()
    pairs = [
        pair for seen, scene in zip(looks, test, strict=True) for pair in mass(scene, told_words(seen), language, grid)
    ]
    on, chance = np.array(pairs).mean(0)
    return {"exact": exact, "mass": float(on), "chance": float(chance), "words": len(pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=("en", "ko"), default="en")
    parser.add_argument("--attention", default="additive")
    parser.add_argument("--positions", default="learned")
    parser.add_argument("--train", type=int, default=8000)
    parser.add_argument("--test", type=int, default=300)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=Path, help="keep the run here")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, out = Path(scratch) / "scenes", wanted.out or Path(scratch) / "run"
        write_scenes(folder, {"train": wanted.train, "dev": 100, "test": 10}, wanted.language, size=SIZE)
        begun, work = time.monotonic(), time.process_time()
        train(from_mapping("caption", settings(folder, out, wanted.steps, wanted.attention, wanted.positions)))
        seconds, work = time.monotonic() - begun, time.process_time() - work
        found = measure(out, wanted.language, wanted.test)
    print(f"trained {wanted.steps} steps of 32 scenes in {seconds:.0f} s ({work:.0f} s of one core)")
    print(f"grid stride {STRIDE} pixels, receptive field {FIELD} pixels, picture {SIZE} x {SIZE}")
    print("  ".join(f"{name} {value:.3f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
