"""Settings that suit a model that tells about pictures, and the pictures that it learns from; in words too.

Four cases: few pictures from scratch, many from scratch, an encoder that was trained before, and fine-tuning of a run.
What the user says wins.
"""

import json
import math
from typing import Any

from qkv.data.caption_listing import list_captions
from qkv.data.image_glance import glance_at
from qkv.data.report import Report
from qkv.tasks.picture_recipe import MANY, SMALL_STEM
from qkv.tasks.warmup import warmup

__all__ = ["described", "recipe"]

STEPS = {"few": (600, 4000), "many": (5000, 50_000), "trained": (800, 10_000), "fine": (200, 4000)}  # least and most
EPOCHS = {"few": 60, "many": 20, "trained": 20, "fine": 10}
RATES = {"few": 3e-3, "many": 1e-3, "trained": 1e-3, "fine": 3e-4}
# Of a few small pictures: cells of 8 x 8 pixels that see 51 x 51. A larger picture has a stage more.
WIDTHS, WIDE = (32, 64, 128), 112  # pixels from which there is a third stage


def recipe(run: Any) -> dict[str, Any]:
    """Nested keys of a run's YAML file."""
    data = run.data
    if not (data.folder or data.train):
        return {}
    examples = list_captions(data, Report(unit="pictures"))
    pictures, side = glance_at(examples, data.hold_out, data.size)
    captions = sum(len(example.label) for example in examples.get("train", ()))
    case, chosen = _case(run, pictures), {}
    batch = data.batch
    if case == "few" and batch == type(data).batch:
        batch = min(32, 1 << max(captions // 2, 1).bit_length() - 1)  # half of them at most
        chosen["data"] = {"batch": batch}
    steps = run.loop.steps
    epoch = math.ceil(captions / (batch * run.optimize.accumulate))
    if not steps and run.loop.epochs:
        steps = run.loop.epochs * epoch
    limited = steps or run.loop.minutes
    if not limited:
        least, most = STEPS[case]
        steps = min(max(EPOCHS[case] * epoch, least), most)
    chosen["loop"] = {} if limited else {"steps": steps}
    chosen["loop"]["evaluate_every"] = min(max(steps // 6, 20), 1000) if steps else 200
    schedule = "cosine" if steps else "constant"
    chosen["optimize"] = {
        "lr": RATES[case],
        "warmup": warmup(steps, 1000 if case == "many" else 100, part=10),
        "schedule": schedule,
    }
    if case == "few":
        chosen["learn"] = {"smoothing": 0.0, "doubly": 0.0}  # so few captions are of few words, each said for sure
    if case in ("few", "many"):
        chosen["size"] = _size(run, case, side)
    return chosen


def described(run: Any, pictures: int) -> str:
    """What a run does, in a line."""
    case, o = _case(run, pictures), run.optimize
    what = {
        "few": "few pictures from scratch",
        "many": "many pictures from scratch",
        "trained": "an encoder that was trained before",
        "fine": "fine-tuning",
    }[case]
    length = f"{run.loop.epochs} epochs" if run.loop.epochs else f"{run.loop.most_steps or 'any number of'} steps"
    length += f", {run.loop.minutes:g} minutes at most" if run.loop.minutes else ""
    rate = f"{o.name} at {o.lr:g}, {o.schedule} after {o.warmup} steps"
    return f"recipe for {what}: {length} of {run.data.batch} captions, {rate}"


def _case(run: Any, pictures: int) -> str:
    if run.init:
        return "fine"
    return "trained" if run.learn.get("encoder") else "few" if pictures < MANY else "many"


def _size(run: Any, case: str, side: int) -> dict[str, Any]:
    """Of a model whose encoder is new: a size by name, and the encoder where it is a residual network."""
    chosen: dict[str, Any] = {"positions": "learned"}  # a small encoder cannot tell left from right without
    if case == "few":
        chosen[""] = "tiny"
    if run.size.encoder != "resnet" or run.size.encoder_size != type(run.size).encoder_size:
        return chosen
    if case == "many":
        return chosen | ({"encoder_size": "20"} if side < SMALL_STEM else {})
    if side < SMALL_STEM:
        return chosen | {"encoder_size": "nano"}
    widths = WIDTHS if side >= WIDE else WIDTHS[:2]
    make = {"stem": "large", "stem_width": 24, "widths": widths, "depths": [1] * len(widths)}
    return chosen | {"encoder_size": json.dumps(make)}
