"""Labelled pictures made ready for training: checked, split, decoded, kept in the run's folder.

What is kept is keyed by the content of the files and by the settings that decide which pictures stay; pixels are kept
as they were decoded, so that one store serves every size and every augmentation. A resumed run finds it, a run whose
data has changed does not, and a damaged one is made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.classes import class_list, unknown
from qkv.data.image_batches import HeldOut, ImageBatches, Images
from qkv.data.image_codec import ImageCodec
from qkv.data.image_doctor import examine_all
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import Example, fingerprint, list_examples
from qkv.data.kept import tidy
from qkv.data.kept_pictures import KeptPictures, hold_out_some, keep_pictures, key_of
from qkv.data.notes import HELD_OUT, KEPT
from qkv.data.preprocess import Preprocess
from qkv.data.report import Report
from qkv.errors import ConfigError

__all__ = ["PreparedImages", "fitting_size", "prepare_images"]

SETTINGS = ("labels", "hold_out", "keep_duplicates", "keep_mb")  # that decide what is kept
# Parts that are prepared, and their fifths of the room; test is looked at, so that train can be kept apart from it.
MEASURED = {"train": 4, "dev": 1}


@dataclass(frozen=True)
class PreparedImages:
    """Pictures made ready; fits `qkv.tasks.task.Prepared`. ``dev`` holds each held-out picture once, unchanged, and
    ``dev.images`` tells where each one lies."""

    train: ImageBatches
    dev: HeldOut
    codec: ImageCodec
    report: list[str]
    summary: dict[str, Any] = field(default_factory=dict)


def prepare_images(
    data: ImageFiles, folder: Path, seed: int, codec: ImageCodec | Preprocess | None = None
) -> PreparedImages:
    """List, check, split, and make the codec unless one is given; keep what is derived in ``folder/data``.

    Of a run that this one starts from, the preprocessing alone may be given: size, mean and deviation are then its
    own, where ``data`` does not say them, and classes are those of the data.

    With unchanged files and settings, what is kept is used again and nothing is decoded to find out. Several
    processes may call it at once: each result is whole before it is renamed into place, and all are equal.

    Raises:
        DataError: the data cannot be used: nothing left to train on, a class that the codec does not know.
        ConfigError: settings that cannot be.
    """
    kept = Path(folder) / "data"
    kept.mkdir(parents=True, exist_ok=True)
    examples = list_examples(data, kept, Report(unit="pictures"))
    if not examples.get("train"):
        raise ConfigError("there is nothing to train on", remedy="name it with --data.train")
    files = fingerprint(examples)
    key = key_of(data, SETTINGS, files)
    opened = keep_pictures(
        kept,
        key,
        examples,
        {part: data.keep_mb * 1_000_000 * fifths // 5 for part, fifths in MEASURED.items()},
        lambda keep: examine_all(data, kept, keep),
        lambda found: hold_out_some(
            found[2]["train"], [example.label for example in found[1]["train"]], data.hold_out, found[0]
        ),
    )
    tidy(kept, kept / key)
    rows = opened.rows()
    if not isinstance(codec, ImageCodec):
        codec = _codec(data, examples, opened, rows["train"], codec)
    images = {part: _images(part, rows[part], examples, opened, codec) for part in MEASURED}
    report = opened.report
    report.remarks.append(f"preprocessing: {codec.preprocess}")
    return PreparedImages(
        ImageBatches(images["train"], data.batch, data.augment, seed),
        HeldOut(images["dev"], data.batch),
        codec,
        report.lines(),
        {
            **report.summary(),
            "files_hash": files,
            "codec_hash": codec.fingerprint(),
            "pictures": len(images["train"]),
            "dev_pictures": len(images["dev"]),
            "classes": list(codec.classes),
        },
    )


def _images(
    part: str, rows: np.ndarray, examples: dict[str, list[Example]], kept: KeptPictures, codec: ImageCodec
) -> Images:
    listed = part if part in kept.looks else "train"  # what is held out lies in train
    some, file = examples[listed], kept.report.files[listed][0]
    if codec.labels != "number" and (
        error := unknown((some[i].label for i in rows), codec.classes, part, file, "the model")
    ):
        raise error
    return Images(some, rows, codec, kept.stores[listed])


def _codec(
    data: ImageFiles,
    examples: dict[str, list[Example]],
    kept: KeptPictures,
    rows: np.ndarray,
    preprocess: Preprocess | None,
) -> ImageCodec:
    """Classes of all that is not dropped, held out or not; sizes, mean and deviation of what is learned from."""
    look = kept.looks["train"]
    usable = [examples["train"][i].label for i in np.flatnonzero((look["state"] == KEPT) | (look["state"] == HELD_OUT))]
    preprocess = _given(data, preprocess) if preprocess else _measured(data, look[rows])
    if data.labels == "number":
        numbers = np.array([examples["train"][i].label for i in rows])
        return ImageCodec(preprocess, (), "number", float(numbers.mean()), float(numbers.std()) or 1.0)
    return ImageCodec(preprocess, class_list(usable), data.labels)


def _given(data: ImageFiles, preprocess: Preprocess) -> Preprocess:
    size = (data.size, data.size) if data.size else preprocess.size
    return replace(preprocess, size=size, mean=data.mean or preprocess.mean, std=data.std or preprocess.std)


def _measured(data: ImageFiles, seen: np.ndarray) -> Preprocess:
    size = data.size or fitting_size(np.minimum(seen["height"], seen["width"]))
    mean = data.mean or tuple(round(float(value), 4) for value in seen["mean"].mean(0))
    variance = seen["square"].mean(0) - seen["mean"].mean(0) ** 2
    std = data.std or tuple(max(round(float(value), 4), 1 / 255) for value in np.sqrt(np.maximum(variance, 0)))
    return Preprocess((size, size), data.crop, mean, std, data.interpolation, data.antialias)


def fitting_size(sides: Sequence[int]) -> int:
    """As large as most pictures are, up to 224: what small pictures do not hold cannot be learned from more pixels.

    ``sides`` are the shorter ones.
    """
    side = int(np.median(sides))
    return max(side // 4 * 4, 4) if side <= 96 else min(side // 16 * 16, 224)
