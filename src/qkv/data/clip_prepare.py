"""Labelled clips made ready for training: checked, split, their frames decoded and kept in the run's folder.

What is kept is keyed by the content of the files, the codec and the settings, as with `qkv.data.image_prepare`; of each
clip the frames that are read are kept at the size at which they are read.
"""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.classes import class_list, unknown
from qkv.data.clip_batches import ClipBatches, Clips, HeldOutClips, Told
from qkv.data.clip_codec import ClipCodec
from qkv.data.clip_doctor import Examined, examine_all
from qkv.data.clip_files import ClipFiles
from qkv.data.clip_listing import ClipExample, fingerprint, list_clips
from qkv.data.clip_sources import spread
from qkv.data.frame_labels import BACKGROUND, frame_classes
from qkv.data.image_codec import ImageCodec
from qkv.data.image_store import ImageStore, ImageStoreWriter
from qkv.data.kept import scratch_in, tidy
from qkv.data.kept_pictures import hold_out_some, key_of, seal, sealed, settle, writing_told
from qkv.data.lines import windows
from qkv.data.notes import DROPPED, HELD_OUT, KEPT
from qkv.data.preprocess import Preprocess
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError, UserError

__all__ = ["PreparedClips", "prepare_clips"]

SETTINGS = ("labels", "hold_out", "keep_duplicates", "keep_mb")  # that decide what is kept, beside the codec
MEASURED = {"train": 4, "dev": 1}  # parts that are prepared, and their fifths of the room


@dataclass(frozen=True)
class PreparedClips:
    """Clips made ready; fits `qkv.tasks.task.Prepared`. ``dev`` holds each held-out clip once, unchanged, and
    ``dev.clips`` tells where each one lies."""

    train: ClipBatches
    dev: HeldOutClips
    codec: ClipCodec
    report: list[str]
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Kept:
    codec: ClipCodec
    state: dict[str, np.ndarray]
    told: dict[str, list[Told]]
    stores: dict[str, ImageStore]
    report: Report


def prepare_clips(data: ClipFiles, folder: Path, seed: int, codec: ClipCodec | None = None) -> PreparedClips:
    """List, check, split, and make the codec unless one is given; keep what is derived in ``folder/data``.

    With a codec and unchanged files and settings, what is kept is used again and nothing is decoded to find out.

    Args:
        codec: one without classes says how clips are read only: the classes are those of the data.

    Raises:
        DataError: the data cannot be used: nothing left to train on, a class that the codec does not know.
        ConfigError: settings that cannot be.
    """
    kept = Path(folder) / "data"
    kept.mkdir(parents=True, exist_ok=True)
    examples = list_clips(data, kept, Report(unit="clips"))
    if not examples.get("train"):
        raise ConfigError("there is nothing to train on", remedy="name it with --data.train")
    files = fingerprint(examples)
    where = kept / _key(data, files, codec) if codec else None
    opened = _open(where, examples) if where else None
    if opened is None:
        with writing_told(kept, "frames"):
            where = _make(data, files, kept, codec)
        opened = _open(where, examples)
        if opened is None:
            raise DataError("the decoded frames cannot be read back", remedy="look for a failing disk", file=where)
    tidy(kept, where)
    codec, report = opened.codec, opened.report
    clips = {part: _clips(part, examples, opened, codec) for part in MEASURED}
    report.remarks.append(f"preprocessing: at most {codec.frames} frames, {codec.images.preprocess}")
    return PreparedClips(
        ClipBatches(clips["train"], data.batch, seed, most_shift=data.shift, how_often=data.flip),
        HeldOutClips(clips["dev"], data.batch),
        codec,
        report.lines(),
        {
            **report.summary(),
            "files_hash": files,
            "codec_hash": codec.fingerprint(),
            "clips": len(clips["train"]),
            "dev_clips": len(clips["dev"]),
            "classes": list(codec.images.classes),
            "frame_classes": list(codec.frame_classes),
        },
    )


def _key(data: ClipFiles, files: dict[str, str], codec: ClipCodec) -> str:
    return key_of(data, SETTINGS, files, codec.fingerprint())


def _make(data: ClipFiles, files: dict[str, str], kept: Path, codec: ClipCodec | None) -> Path:
    """Check, split, make the codec, decode; the new folder under ``kept``."""
    with scratch_in(kept) as scratch:
        whole = scratch / "whole"
        whole.mkdir()
        report, parts = examine_all(data, kept)
        report.raise_if_refused()
        if "dev" not in parts:
            train = parts["train"]
            hold_out_some(train.look, [example.label for example in train.examples], data.hold_out, report)
        if codec is None or not (codec.images.classes or codec.images.labels == "number"):
            codec = _codec(data, parts["train"], codec)
        where = kept / _key(data, files, codec)
        examples = {part: seen.examples for part, seen in parts.items()}
        if _open(where, examples) is not None:
            return where
        codec.save(whole / "codec")
        plain = {}
        for part, seen in parts.items():
            if part in MEASURED:
                room = data.keep_mb * 1_000_000 * MEASURED[part] // 5
                plain[part] = [asdict(told) for told in _decode(seen, codec, whole / part, room)]
                np.save(whole / f"{part}.npy", seen.look["state"])
                _tell_missed(part, seen, plain[part], report)
        (whole / "told.json").write_text(json.dumps(plain, ensure_ascii=False), encoding="utf-8")
        seal(whole, report)
        settle(whole, where, lambda: _open(where, examples) is not None)
        return where


def _codec(data: ClipFiles, train: Examined, read_as: ClipCodec | None) -> ClipCodec:
    """Classes of all that is not dropped, held out or not; sizes, mean and deviation of what is learned from, or how
    another codec reads."""
    usable = np.flatnonzero(train.look["state"] != DROPPED)
    labels = [train.examples[i].label for i in usable]
    marks = frame_classes([some for i in usable if (some := train.marks[i])])
    if read_as:
        preprocess, frames, rate = read_as.images.preprocess, read_as.frames, read_as.rate
    else:
        preprocess, frames, rate = _measured(data, train.look[train.look["state"] == KEPT]), data.frames, data.rate
    if data.labels == "number":
        numbers = np.array([train.examples[i].label for i in np.flatnonzero(train.look["state"] == KEPT)])
        images = ImageCodec(preprocess, (), "number", float(numbers.mean()), float(numbers.std()) or 1.0)
    else:
        images = ImageCodec(preprocess, class_list(labels))
    return ClipCodec(images, frames, rate, marks if len(marks) > 1 else ())


def _measured(data: ClipFiles, seen: np.ndarray) -> Preprocess:
    mean = data.mean or tuple(round(float(value), 4) for value in seen["mean"].mean(0))
    variance = seen["square"].mean(0) - seen["mean"].mean(0) ** 2
    std = data.std or tuple(max(round(float(value), 4), 1 / 255) for value in np.sqrt(np.maximum(variance, 0)))
    size = data.size or _size(seen)
    return Preprocess((size, size), data.crop, mean, std, data.interpolation, data.antialias)


def _size(seen: np.ndarray) -> int:
    """As large as most frames are, in eights, up to 112: a clip is many pictures."""
    return min(max(int(np.median(np.minimum(seen["height"], seen["width"]))) // 8 * 8, 8), 112)


def _decode(seen: Examined, codec: ClipCodec, folder: Path, room: int) -> Iterable[Told]:
    """The frames of each clip into a store, as one picture below the other; what is told of each."""

    def one(i: int) -> tuple[np.ndarray | None, Told]:
        example, marks = seen.examples[i], seen.marks[i]
        if seen.look["state"][i] == DROPPED:
            return None, Told(example.label, ())
        frames, times = codec.read(example.clip)
        if marks is not None and codec.frame_classes:
            marks = tuple(marks[number] for number in spread(len(marks), codec.frames))
        else:
            marks = None
        return frames.reshape(-1, *frames.shape[2:]), Told(example.label, tuple(times), marks)

    told = []
    with ImageStoreWriter(folder, room) as store, ThreadPoolExecutor(4) as pool:
        for some in windows(range(len(seen.examples)), 64):
            for pixels, what in pool.map(one, some):
                store.add(pixels)
                told.append(what)
    return told


def _tell_missed(part: str, seen: Examined, told: list[dict], report: Report) -> None:
    """Clips with marks of which none is among the frames that are read: there is nothing to see."""
    for example, marks, what in zip(seen.examples, seen.marks, told, strict=True):
        if what["marks"] and set(marks) != {BACKGROUND} and set(what["marks"]) == {BACKGROUND}:
            kind = "clips whose marked frames fall between those that are read (raise --data.frames)"
            report.add(part, kind, "noted", example.where)


def _open(where: Path, examples: dict[str, list[ClipExample]]) -> _Kept | None:
    """What `_make` wrote, or None if it is not there or not whole."""
    try:
        if (plain := sealed(where)) is None:
            return None
        every = json.loads((where / "told.json").read_text(encoding="utf-8"))
        told = {part: [_told(one) for one in some] for part, some in every.items()}
        state = {part: np.load(where / f"{part}.npy") for part in told}
        stores = {part: ImageStore(where / part) for part in told}
        if any(not len(told[p]) == len(state[p]) == len(stores[p]) == len(examples[p]) for p in told):
            return None
        return _Kept(ClipCodec.load(where / "codec"), state, told, stores, Report.from_summary(plain))
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None


def _told(plain: dict) -> Told:
    return Told(plain["label"], tuple(plain["times"]), None if plain["marks"] is None else tuple(plain["marks"]))


def _clips(part: str, examples: dict[str, list[ClipExample]], kept: _Kept, codec: ClipCodec) -> Clips:
    listed = part if part in kept.told else "train"  # what is held out lies in train
    state, told = kept.state[listed], kept.told[listed]
    rows = np.flatnonzero(state == (KEPT if part == listed else HELD_OUT))
    file = kept.report.files[listed][0]
    if codec.images.labels != "number" and (
        error := unknown((told[i].label for i in rows), codec.images.classes, part, file, "the model")
    ):
        raise error
    return Clips(examples[listed], told, rows, codec, kept.stores[listed])
