"""The study of inductive biases: models that were told more or less of what pictures are, side by side.

Convolutions are told that what is near belongs together and that a thing is the same wherever it stands; a Vision
Transformer is told neither and must learn both from pictures. So each model learns from few pictures and from many,
from pictures as they are and from rearranged ones, and is tested on moved ones. All have about as many parameters and
make the same number of steps, over batches of the same size; each is trained in a process of its own, a result that
stands is kept, and one that was cut short goes on.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from qkv import models
from qkv.errors import ConfigError, nearest
from qkv.store import write_json
from qkv.studies.apart import in_a_process
from qkv.studies.bias_data import ORDERS, subset
from qkv.studies.bias_rung import attention_memory, learn
from qkv.studies.study import Study, keep_terms, read_results, write_csv
from qkv.train.run import Run

__all__ = ["LEARNERS", "Learner", "chosen", "compare"]


@dataclass(frozen=True)
class Learner:
    """A model of the study: its name for people, its name in ``--model``, and its config at a width.

    ``config`` takes a width and the side of the pictures, which have 8 x 8 patches.
    """

    label: str
    model: str
    config: Callable[[int, int], dict[str, Any]]
    multiple: int = 4  # what the width must be a multiple of
    asked: bool = True  # trained unless others are named


def _stages(width: int) -> dict[str, Any]:
    return dict(stem="small", stem_width=width, widths=(width, 2 * width, 4 * width), depths=(2, 2, 2))


def _tokens(width: int, side: int) -> dict[str, Any]:
    return dict(patch=side // 8, image=(side, side), dim=width, depth=6)


LEARNERS = {
    "resnet": Learner("CNN (ResNet)", "resnet", lambda width, side: _stages(width)),
    "resnet-attention": Learner(
        "ResNet, attention between its stages", "resnet-attention",
        lambda width, side: _stages(width) | dict(looks_after=(1, 2), heads=4),
    ),
    "local-attention": Learner(
        "ResNet, local attention for convolutions", "local-attention",
        lambda width, side: _stages(width) | dict(reach=2, heads=2), multiple=2,
    ),
    "swin": Learner(
        "Swin", "swin",
        lambda width, side: dict(patch=side // 16, window=4, dim=width, depths=(2, 2, 2), heads=(2, 4, 8)), multiple=2,
    ),
    "mixer": Learner(
        "MLP-Mixer", "mixer", lambda width, side: _tokens(width, side) | dict(token_hidden=64, channel_hidden=2 * width)
    ),
    "vit": Learner("ViT", "vit", lambda width, side: _tokens(width, side) | dict(heads=4, hidden=2 * width)),
    "pixels": Learner(
        "every pixel a token", "vit",
        lambda width, side: _tokens(width, side) | dict(heads=4, hidden=2 * width, patch=1), asked=False,
    ),
}  # fmt: skip
REFERENCE, WIDTH = "resnet", 16  # the others get about as many parameters as this one has
FAR = 0.15  # how far from that a count may lie
SHIFTS = (1, 2, 4, 8)
SIDES = (8, 16, 24, 32, 48, 64, 96)  # of pictures, for the memory that every pixel's looking takes


def chosen(names: str | None) -> list[str]:
    """The models named, with commas between; those that are trained unless others are named if none is."""
    if names is None:
        return [name for name, each in LEARNERS.items() if each.asked]
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in LEARNERS:
            raise ConfigError(f"there is no model {name!r} in the study", remedy=nearest(name, LEARNERS))
    return wanted


def compare(run: Run, names: Sequence[str], counts: Sequence[int], side: int, seeds: int = 1) -> Study:
    """Train each model on each count of pictures with each seed, and on rearranged ones at the largest count.

    Args:
        run: budget, optimiser and batches; its data are laid out in ``run.out/data``, which is the study's folder.
        names: of `LEARNERS`.
        counts: pictures of training.
        side: height and width of the pictures.
        seeds: how many times each, with the seeds ``run.seed``, ``run.seed + 1`` and so on.
    """
    keep_terms(replace(run, data=replace(run.data, train="", dev="")), side=side)
    laid, most = run.out / "data", max(counts)
    classes = len({path.name for path in (laid / "plain" / "test").iterdir()})
    sizes = {name: _config(name, side, classes) for name in names}
    plan = [
        (order, count, seed, name)
        for seed in range(run.seed, run.seed + seeds)
        for order, count in [*(("plain", count) for count in sorted(counts)), ("patches", most), ("pixels", most)]
        for name in names
    ]
    read_results(run.out)  # a damaged one must not come out after hours
    interrupted = False
    for order, count, seed, name in plan:
        record = run.out / "results" / f"{name}-{order}-{count}-{seed}.json"
        if record.exists():
            continue
        data = replace(
            run.data, folder="", train=str(subset(laid, order, count, seed)), dev=str(laid / order / "dev.csv")
        )
        own = replace(
            run, model=LEARNERS[name].model, size=sizes[name], data=data, seed=seed, out=run.out / "runs" / record.stem
        )
        print(f"\n{LEARNERS[name].label}, {count:,} pictures, {order}, seed {seed}", flush=True)
        told = in_a_process(learn, own, laid / order / "test.csv", SHIFTS if order == "plain" else ())
        if told is None:
            interrupted = True
            break
        write_json(
            record,
            {"model": name, "label": LEARNERS[name].label, "order": order, "pictures": count, "seed": seed, **told},
        )
    memory = run.out / "memory.json"
    if not interrupted and not memory.exists():
        write_json(memory, _memory())
    results = read_results(run.out)
    results.sort(key=lambda r: (list(LEARNERS).index(r["model"]), ORDERS.index(r["order"]), r["pictures"], r["seed"]))
    write_csv(map(_row, results), run.out / "results.csv")
    return Study(run.out, results, interrupted)


def _config(name: str, side: int, classes: int) -> Any:
    """A model's config, of the width that brings its parameters nearest to the reference's."""

    def made(name: str, width: int) -> Any:
        return models.find(LEARNERS[name].model).Config(classes=classes, **LEARNERS[name].config(width, side))

    def parameters(name: str, width: int) -> int:
        with torch.device("meta"):
            model = models.find(LEARNERS[name].model)(made(name, width))
        return sum(parameter.numel() for parameter in model.parameters())

    wanted, step = parameters(REFERENCE, WIDTH), LEARNERS[name].multiple
    widths = range(step, 400, step)
    at = bisect_left(widths, wanted, key=lambda width: parameters(name, width))
    off, best = min((abs(parameters(name, width) / wanted - 1), width) for width in widths[max(0, at - 1) : at + 1])
    if off > FAR:
        raise ConfigError(f"{LEARNERS[name].label} cannot have about as many parameters as the others")
    return made(name, best)


def _memory() -> list[dict[str, Any]]:
    """What letting every pixel look at every pixel takes, as its matrix and as the fused kernel."""
    told = []
    for side in SIDES:
        told.append({"side": side, "tokens": side * side})
        for how, materialised in (("matrix", True), ("fused", False)):
            told[-1][f"{how}_mb"] = in_a_process(attention_memory, side, materialised)["memory_mb"]
    return told


def _row(result: dict[str, Any]) -> dict[str, Any]:
    """A line of the table: accuracy after each move in a column of its own."""
    shifted = {f"accuracy_moved_{by}": value for by, value in result.get("shifted", {}).items()}
    return {key: value for key, value in result.items() if isinstance(value, (str, int, float))} | shifted
