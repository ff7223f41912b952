"""Settings that suit a picture model and the pictures that it learns from, in words too, and the traps that are known.

Three cases: few pictures from scratch, many from scratch, and fine-tuning of a trained run. What the user says wins.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from qkv import models
from qkv.data.image_files import ImageFiles
from qkv.data.image_glance import glance
from qkv.tasks.warmup import warmup

__all__ = ["described", "recipe", "traps"]

MANY = 20_000  # pictures from which a model that knows nothing of pictures can be larger, and needs strong augmentation
SMALL = 96  # pixels up to which a picture is moved about by whole pixels; a larger one is cropped
EPOCHS = {"few": 100, "many": 60, "fine": 20}
RATES = {"few": 2e-3, "many": 1e-3}  # a small model takes a higher one; a ResNet always does
FINE_RATES = {"resnet": 5e-4}  # and 3e-4
DECAY = 0.75  # from layer to layer, in fine-tuning (Bao et al. 2022)
PATCHES = (16, 14, 8, 7, 4, 2, 1)
TINY = 16  # pixels up to which there are fewer patches, and below which a pixel is much
ROWS, TINY_ROWS = 7, 4  # of patches at least; and of a tiny picture
FEWEST_TOKENS = 16
FEWEST_PICTURES = {"vit": 10_000, "mixer": 10_000, "swin": 5_000}  # from scratch
SMALL_STEM = 64  # pixels below which a ResNet must not throw three quarters of each side away


def recipe(run: Any, labels: str) -> dict[str, Any]:
    """Nested keys of a run's YAML file.

    Args:
        labels: what the pictures have: class, several or number.
    """
    data: ImageFiles = dataclasses.replace(run.data, labels=labels)
    chosen: dict[str, Any] = {"data": {"labels": labels}}
    if not (data.folder or data.train):
        return chosen
    pictures, side = glance(data)
    if data.batch == ImageFiles.batch and pictures < 2 * data.batch:
        chosen["data"]["batch"] = 1 << max(pictures // 2, 1).bit_length() - 1  # half of them at most
        run = dataclasses.replace(run, data=dataclasses.replace(data, batch=chosen["data"]["batch"]))
    case = _case(run, pictures)
    chosen |= {"optimize": _optimize(run, case), "loop": _loop(run, case, pictures)}
    chosen["optimize"]["warmup"], chosen["optimize"]["schedule"] = _schedule(run, chosen["loop"], pictures)
    chosen["data"]["augment"] = _augment(case, side, labels)
    if labels == "several":
        chosen["learn"] = {"smoothing": 0.0}
    if case != "fine":
        chosen["data"]["size"] = side
        chosen["size"] = _size(run, case, side)
    return chosen


def described(run: Any, pictures: int) -> str:
    """What a run does, in a line."""
    case, o, a = _case(run, pictures), run.optimize, run.data.augment
    what = {"few": "few pictures from scratch", "many": "many pictures from scratch", "fine": "fine-tuning"}[case]
    length = f"{run.loop.epochs} epochs" if run.loop.epochs else f"{run.loop.most_steps or 'any number of'} steps"
    length += f", {run.loop.minutes:g} minutes at most" if run.loop.minutes else ""
    rate = f"{o.name} at {o.lr:g}, {o.schedule} after {o.warmup} steps, weight decay {o.weight_decay:g}"
    rate += f", {o.layer_decay:g} of the rate from layer to layer" if o.layer_decay != 1 else ""
    done = [
        f"cropped to {a.scale:g} of their area or more" if a.scale < 1 else "",
        f"moved by up to {a.shift} pixels" if a.shift else "",
        "flipped" if a.flip else "",
        f"changed by {a.randaugment} random operations" if a.randaugment else "",
        "erased in part" if a.erasing else "",
        "mixed" if a.mixed and (a.mixup or a.cutmix) else "",
    ]
    done = ", ".join(filter(None, done)) or "left as they are"
    sides = "; where left and right matter, as in writing, say --data.augment.flip 0" if a.flip else ""
    return f"recipe for {what}: {length}, {rate}; pictures are {done}{sides}"


def traps(run: Any, pictures: int, size: tuple[int, int]) -> list[str]:
    """Warnings of what is known to go wrong.

    Args:
        pictures: of train.
        size: height and width of what the model reads.
    """
    said, patch = [], getattr(run.size, "patch", None)
    if patch and math.prod(side / patch for side in size) < FEWEST_TOKENS:
        tokens = math.prod(math.ceil(side / patch) for side in size)
        said.append(
            f"patches of {patch} pixels cut {size[0]} x {size[1]} into {tokens} only: "
            f"take smaller ones, --size.patch {_patch(min(size))}"
        )
    if not run.init and pictures < (few := FEWEST_PICTURES.get(run.model, 0)):
        said.append(
            f"{pictures:,} pictures are few for a {run.model} from scratch (fewer than {few:,}), which must learn from "
            "them even what is near what: try --model resnet, or start from trained weights with --init"
        )
    if pictures < run.data.batch:
        said.append(f"a batch of {run.data.batch} holds all {pictures:,} pictures: lower --data.batch")
    if getattr(run.size, "stem", "") == "large" and min(size) < SMALL_STEM:
        said.append(f"the large stem leaves a quarter of {min(size)} pixels a side: take --size.stem small")
    if run.optimize.schedule == "constant" and run.loop.minutes and not run.init:
        said.append("minutes do not tell the last step, so that the rate cannot fall to it: give --loop.epochs too")
    return [f"WARNING: {line}" for line in said]


def _case(run: Any, pictures: int) -> str:
    return "fine" if run.init else "few" if pictures < MANY else "many"


def _optimize(run: Any, case: str) -> dict[str, Any]:
    chosen = {"betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.05}
    if case != "fine":
        return chosen | {"lr": RATES["few" if run.model == "resnet" else case]}
    tells = hasattr(models.find(run.model), "layers")
    return chosen | {"lr": FINE_RATES.get(run.model, 3e-4)} | ({"layer_decay": DECAY} if tells else {})


def _loop(run: Any, case: str, pictures: int) -> dict[str, Any]:
    """As many epochs as suit, unless the user has set a limit; twenty evaluations."""
    limited = run.loop.steps or run.loop.epochs or run.loop.minutes
    chosen = {} if limited else {"epochs": EPOCHS[case]}
    steps = _steps(run, {**chosen}, pictures)
    return chosen | {"evaluate_every": min(max(steps // 20, 20), 1000) if steps else 200}


def _steps(run: Any, loop: Mapping[str, Any], pictures: int) -> int | None:
    """All steps of one process, if steps or epochs tell them."""
    if run.loop.steps:
        return run.loop.steps
    epochs = run.loop.epochs or loop.get("epochs")
    return epochs and epochs * math.ceil(pictures / (run.data.batch * run.optimize.accumulate))


def _schedule(run: Any, loop: Mapping[str, Any], pictures: int) -> tuple[int, str]:
    steps = _steps(run, loop, pictures)
    return warmup(steps, most=1000), "cosine" if steps else "constant"


def _augment(case: str, side: int, labels: str) -> dict[str, Any]:
    if side < TINY:  # a move by a whole pixel is a large one; a crop, stretched again, moves by parts of one
        chosen: dict[str, Any] = {"scale": 0.7}
    else:
        chosen = {"scale": 1.0, "shift": side // 8} if side <= SMALL else {"scale": 0.5}
    if case == "few" and side >= 24:
        chosen |= {"randaugment": 1, "magnitude": 5.0}
    if case == "many":
        chosen |= {"randaugment": 2, "erasing": 0.25}
        chosen |= {"mixup": 0.8, "cutmix": 1.0} if labels != "number" else {}
    return chosen


def _size(run: Any, case: str, side: int) -> dict[str, Any]:
    fields = {field.name for field in dataclasses.fields(run.size)}
    chosen: dict[str, Any] = {}
    name = "nano" if case == "few" or side <= 64 else "tiny"
    if name in getattr(models.find(run.model), "SIZES", {}):
        chosen[""] = name
    if "window" in fields:
        chosen["patch"] = 4 if side >= SMALL else 2
        chosen["window"] = 7 if side // chosen["patch"] >= 28 else 4
    elif "patch" in fields:
        chosen["patch"] = _patch(side)
    if "stem" in fields:
        chosen["stem"] = "small" if side < SMALL_STEM else "large"
    if case == "many" and "stochastic_depth" in fields:
        chosen["stochastic_depth"] = 0.1
    return chosen


def _patch(side: int) -> int:
    """The largest patch that divides the side into as many rows as a model can learn from."""
    fewest = TINY_ROWS if side <= TINY else ROWS
    return next((p for p in PATCHES if side % p == 0 and side // p >= fewest), 1)
