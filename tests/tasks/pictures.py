"""Runs of small picture models on drawn shapes, trained for some steps; the learning is for other tests."""

from pathlib import Path

from qkv.data.shapes import write_shapes
from qkv.train.loop import train
from qkv.train.options import from_mapping

SIZES = {
    "vit": {"patch": 4, "dim": 16, "depth": 2, "heads": 2, "hidden": 32},
    "swin": {"patch": 2, "window": 4, "dim": 8, "depths": [2, 2], "heads": [1, 2]},
    "mixer": {"patch": 4, "dim": 16, "depth": 2, "token_hidden": 8, "channel_hidden": 32},
    "resnet": {"stem": "small", "stem_width": 4, "widths": [4, 8], "depths": [1, 1]},
}


def shapes(folder: Path, classes: int = 3, **counts: int) -> Path:
    """Pictures of 16 x 16 pixels: checks, cross, disc ..."""
    write_shapes(folder, counts or {"train": 36, "val": 9, "test": 12}, size=16, classes=classes)
    return folder


def settings(data: Path | dict, out: Path, model: str = "vit", **changes) -> dict:
    """Of a run of four steps; ``changes`` are nested keys of its YAML file."""
    own = {
        "model": model,
        "data": {"batch": 8} | ({"folder": str(data)} if isinstance(data, Path) else data),
        "out": out,
        "loop": {"steps": 4, "evaluate_every": 2},
        "optimize": {"lr": 1e-2, "warmup": 1, "schedule": "constant"},
    }
    if "init" not in changes:
        own["size"] = SIZES[model]
    else:
        del own["model"]
    return own | {
        key: {**own[key], **value} if isinstance(value, dict) and key in own else value
        for key, value in changes.items()
    }


def trained(task: str, data: Path | dict, out: Path, model: str = "vit", **changes) -> Path:
    """The folder of such a run."""
    return train(from_mapping(task, settings(data, out, model, **changes))).folder
