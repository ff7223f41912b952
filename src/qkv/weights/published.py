"""Published weights of every kind: which part of the package turns them into a run, and a run into them."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError, RunError, nearest
from qkv.store import read_json
from qkv.tasks.settings import family
from qkv.weights.files import find_published

__all__ = ["export_run", "import_published"]

IMAGES = ("timm", "torchvision", "npz", "cifar")  # origins that publish nothing else that we read
HF = {  # what a Hugging Face config.json calls its model -> who imports it
    "marian": "qkv.weights.marian:import_marian",
    "bert": "qkv.weights.bert:import_bert",
    "distilbert": "qkv.weights.bert:import_bert",
    "vit": "qkv.weights.images:import_hf",
    "deit": "qkv.weights.images:import_hf",
    "swin": "qkv.weights.images:import_hf",
    "resnet": "qkv.weights.images:import_hf",
}
PACKAGES = {"efficientnet-lite0": "qkv.weights.efficientnet:import_lite0"}  # weights that come as a Python package
EXPORT = {  # family of runs -> who exports it
    "translate": "qkv.weights.marian:export_marian",
    "pretrain": "qkv.weights.bert:export_bert",
    "classify texts": "qkv.weights.bert:export_bert",
    "regress texts": "qkv.weights.bert:export_bert",
    "tag": "qkv.weights.bert:export_bert",
    "classify pictures": "qkv.weights.images:export_images",
}
NEXT = {
    "translate": "qkv translate {} < in.txt > out.txt",
    "classify pictures": "qkv classify {} photo.jpg",
    "pretrain": "qkv embed {} < lines.txt > vectors.npy",
    "classify texts": "qkv classify {} < lines.txt",
    "tag": "qkv tag {} < lines.txt",
}


def import_published(published: str, out: str | Path, **options: Any) -> list[str]:
    """Make a run of ours in ``out``; lines that tell the user what it is.

    Args:
        published: the origin, a colon, and a file, a folder or a name on the Hugging Face hub; ``hf`` if no origin.
        options: those that importers of images take (see `qkv.weights.images.import_images`), None if not given.

    Raises:
        RunError: it cannot be found or read, or no model of ours is like it.
    """
    if published in PACKAGES:
        if given := [key for key, value in options.items() if value is not None]:
            raise ConfigError(f"--{given[0]} is not for {published}", remedy="leave it out: it is imported as it is")
        return _named(PACKAGES[published])(out)
    origin, colon, name = published.partition(":")
    if not colon or Path(published).exists():
        origin, name = "hf", published
    options = {key: value for key, value in options.items() if value is not None}
    if origin in IMAGES:
        where = "qkv.weights.images:import_images"
        lines = _named(where)(origin, name, out, **options)
    elif origin == "hf":
        kind = read_json(find_published(name, ("config.json",)) / "config.json").get("model_type")
        if kind not in HF:
            raise RunError(f"{name} is a model of the type {kind!r}", expected=", ".join(HF))
        where = HF[kind]
        if options and "images" not in where:
            raise ConfigError(f"--{next(iter(options))} is not for a {kind} model")
        lines = _named(where)(name, out, **options)
    else:
        raise ConfigError(f"published weights of {origin!r}", remedy=nearest(origin, ("hf", *IMAGES)))
    what = family(out)
    return lines + ([f"next: {NEXT[what].format(out)}"] if what in NEXT else [])


def export_run(run: str | Path, out: str | Path, to: str | None = None) -> None:
    """Write a run as others publish it.

    Raises:
        RunError: no one publishes such runs, or not like this one.
    """
    if (what := family(run)) not in EXPORT:
        raise RunError(f"a run of {what!r}", file=run, expected=", ".join(EXPORT))
    if what == "classify pictures":
        _named(EXPORT[what])(run, out, to)
        return
    if to not in (None, "hf"):
        raise ConfigError(f"--to is {to!r}", expected="hf, for a run that reads text")
    _named(EXPORT[what])(run, out)


def _named(where: str) -> Callable:
    module, name = where.split(":")
    return getattr(importlib.import_module(module), name)
