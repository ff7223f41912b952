"""Opening a run: its folder says what it is, and what it can do follows."""

import importlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from qkv.errors import RunError
from qkv.tasks.settings import family

__all__ = ["OPENED", "load", "require_family", "require_run"]

# What opens the runs of a family (see `qkv.tasks.settings.family`): a class with ``load(folder, device)``.
OPENED = {
    "translate": "qkv.tasks.translator:Translator",
    "classify clips": "qkv.tasks.clip_classifier:ClipClassifier",
    "regress clips": "qkv.tasks.clip_classifier:ClipClassifier",
    "classify pictures": "qkv.tasks.picture_classifier:PictureClassifier",
    "regress pictures": "qkv.tasks.picture_classifier:PictureClassifier",
    "pretrain": "qkv.tasks.text_encoder:TextEncoder",
    "classify texts": "qkv.tasks.text_classifier:TextClassifier",
    "regress texts": "qkv.tasks.text_classifier:TextClassifier",
    "tag": "qkv.tasks.tagger:Tagger",
    "vectors": "qkv.tasks.word_vectors:WordVectors",
    "caption": "qkv.tasks.captioner:Captioner",
}
ANSWERED = {"pretrain": "fill"}  # by which verb, where it is not called as the task is


def load(folder: str | Path, device: str | None = None) -> Any:
    """The trained run in ``folder``: call it on what it answers, ``look`` at what it does, or reach its ``model``.

    Raises:
        RunError: there is no finished run there.
    """
    folder = Path(folder)
    require_run(folder)
    if (what := family(folder)) not in OPENED:
        raise RunError(f"a run of the task {what!r}", expected=", ".join(OPENED), remedy="use a newer qkv", file=folder)
    module, cls = OPENED[what].split(":")
    return getattr(importlib.import_module(module), cls).load(folder, device)


def require_family(folder: str | Path, verb: str, families: Collection[str]) -> str:
    """The family of a run, which is one of those that ``verb`` knows.

    Raises:
        RunError: there is no finished run, or it is one that other verbs are for.
    """
    require_run(folder)
    if (what := family(folder)) not in families:
        own = ANSWERED.get(what, what.split()[0])
        remedy = f"qkv {own} {folder} ... is for it" if what in OPENED and own != verb else "use a newer qkv"
        raise RunError(
            f"{verb} does not know runs of {what!r}", expected=", ".join(families), remedy=remedy, file=folder
        )
    return what


def require_run(folder: str | Path) -> None:
    """Raise RunError if there is no finished run in a folder."""
    folder = Path(folder)
    if not (folder / "model.json").is_file():
        unfinished = (folder / "run.yaml").is_file()
        raise RunError(
            "there is no trained model" if folder.is_dir() else "there is no such folder",
            expected="a run's folder, with model.json in it",
            remedy=f"go on training with: qkv train --config {folder / 'run.yaml'}"
            if unfinished
            else "train one with: qkv train",
            file=folder,
        )
