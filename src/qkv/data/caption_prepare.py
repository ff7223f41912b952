"""Pictures with captions made ready for training: checked, split by picture, decoded, kept in the run's folder.

What is kept is keyed by the content of the files and by the settings that decide which pictures stay, as with labelled
pictures; captions are encoded anew each time, which is quick.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.caption_batches import CaptionBatches, HeldOutCaptions
from qkv.data.caption_codec import CaptionCodec
from qkv.data.caption_doctor import examine_all
from qkv.data.caption_files import CaptionFiles
from qkv.data.caption_listing import list_captions
from qkv.data.cell_store import CellStore
from qkv.data.image_batches import Images
from qkv.data.image_listing import Example, fingerprint
from qkv.data.image_split import hold_out
from qkv.data.image_store import ImageStore, ImageStoreWriter
from qkv.data.kept import put, scratch_in, tidy
from qkv.data.normalise import Normaliser
from qkv.data.notes import HELD_OUT, KEPT
from qkv.data.preprocess import Preprocess
from qkv.data.report import Report
from qkv.data.store import checksum
from qkv.data.subwords import Subwords, default_words
from qkv.errors import ConfigError, DataError

__all__ = ["PreparedCaptions", "prepare_captions"]

SETTINGS = ("hold_out", "keep_mb")  # that decide what is kept
MEASURED = {"train": 9, "dev": 1}  # parts that are prepared, and their tenths of the room


@dataclass(frozen=True)
class PreparedCaptions:
    """Captions made ready; fits `qkv.tasks.task.Prepared`. ``references`` are the captions of each dev picture, and
    ``contents`` a hash of the pixels of each picture, by part."""

    train: CaptionBatches
    dev: HeldOutCaptions
    codec: CaptionCodec
    references: list[tuple[str, ...]]
    contents: dict[str, np.ndarray]
    report: list[str]
    summary: dict[str, Any] = field(default_factory=dict)

    def with_cells(self, cells: Mapping[str, CellStore]) -> "PreparedCaptions":
        """The same, its pictures being what an encoder has seen of them."""
        old = self.train
        train = CaptionBatches(old.captions.images, old.size, old.augment, old.seed, cells["train"])
        return replace(self, train=train, dev=HeldOutCaptions(self.dev.images, self.dev.size, cells["dev"]))


@dataclass(frozen=True)
class _Kept:
    looks: dict[str, np.ndarray]
    stores: dict[str, ImageStore]
    report: Report


def prepare_captions(
    data: CaptionFiles,
    folder: Path,
    seed: int,
    codec: CaptionCodec | None = None,
    preprocess: Preprocess | None = None,
) -> PreparedCaptions:
    """List, check, split, and make the codec unless one is given; keep what is derived in ``folder/data``.

    Args:
        preprocess: of the encoder, if it was trained before; ``data.size`` may still change its size.

    Raises:
        DataError: the data cannot be used: nothing left to train on.
        ConfigError: settings that cannot be.
    """
    kept = Path(folder) / "data"
    kept.mkdir(parents=True, exist_ok=True)
    examples = list_captions(data, Report())
    if not examples.get("train"):
        raise ConfigError("there is nothing to train on", remedy="name it with --data.train")
    files = fingerprint(examples)
    where = kept / _key(data, files)
    opened = _open(where, examples)
    if opened is None:
        try:
            _make(data, kept, where)
        except OSError as error:  # of writing: what cannot be read is a DataError already
            room = f"{shutil.disk_usage(kept).free / 1e6:,.0f} MB are free"
            raise DataError(
                f"the decoded pictures cannot be written ({error}; {room})", remedy="lower --data.keep_mb", file=kept
            ) from error
        opened = _open(where, examples)
        if opened is None:
            raise DataError("the decoded pictures cannot be read back", remedy="look for a failing disk", file=where)
    tidy(kept, where)
    rows, report = _rows(opened), opened.report
    codec = codec or _codec(data, examples, opened, rows["train"], preprocess, report)
    report.remarks.append(f"preprocessing: {codec.preprocess}")
    images, contents = {}, {}
    for part, chosen in rows.items():
        listed = part if part in opened.looks else "train"  # what is held out lies in train
        fitting, chosen = _fitting(examples[listed], chosen, codec, data, part, report)
        images[part] = Images(fitting, chosen, codec, opened.stores[listed])
        contents[part] = opened.looks[listed]["content"][chosen]
    dev = images["dev"]
    train = CaptionBatches(images["train"], data.batch, data.augment, seed)
    return PreparedCaptions(
        train,
        HeldOutCaptions(dev, data.batch),
        codec,
        [dev.examples[row].label for row in dev.rows],
        contents,
        report.lines(),
        {
            **report.summary(),
            "files_hash": files,
            "codec_hash": codec.fingerprint(),
            "pictures": len(images["train"]),
            "captions": len(train),
            "dev_pictures": len(dev),
        },
    )


def _key(data: CaptionFiles, files: dict[str, str]) -> str:
    settings = {name: getattr(data, name) for name in SETTINGS}
    return hashlib.blake2b(json.dumps([1, files, settings], sort_keys=True).encode(), digest_size=12).hexdigest()


def _make(data: CaptionFiles, kept: Path, where: Path) -> None:
    """Check, decode, split; the new folder ``where``."""
    with scratch_in(kept) as scratch:
        whole = scratch / "whole"
        whole.mkdir()
        with ExitStack() as stack:

            def keep(part: str):
                if part not in MEASURED:
                    return None
                room = data.keep_mb * 1_000_000 * MEASURED[part] // 10
                return stack.enter_context(ImageStoreWriter(whole / part, room)).add

            report, examples, looks = examine_all(data, keep)
        report.raise_if_refused()
        if "dev" not in looks:
            _hold_out(looks["train"], data.hold_out, report)
        for part in set(looks) & set(MEASURED):
            np.save(whole / f"{part}.npy", looks[part])
        sums = {file.name: checksum(file) for file in sorted(whole.glob("*.npy"))}
        plain = report.summary() | {"checksums": sums}
        (whole / "report.json").write_text(json.dumps(plain, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        if where.exists() and _open(where, examples) is None:  # a whole one is another process's, and as good
            shutil.rmtree(where)
        put(whole, where)


def _hold_out(look: np.ndarray, share: float, report: Report) -> None:
    """Some pictures of train become dev; copies of one picture share a hash, and go together."""
    kept = np.flatnonzero(look["state"] == KEPT)
    chosen = kept[hold_out(look["content"][kept], [""] * len(kept), share)]
    if not len(chosen):
        raise DataError(
            f"{len(kept)} pictures are too few to hold some out", remedy="name held-out pictures with --data.dev"
        )
    look["state"][chosen] = HELD_OUT
    report.kept["train"] -= len(chosen)
    report.remarks.append(f"dev: none is named, so {len(chosen):,} pictures of train are held out as dev")


def _open(where: Path, examples: dict[str, list[Example]]) -> _Kept | None:
    """What `_make` wrote, or None if it is not there or not whole."""
    try:
        plain = json.loads((where / "report.json").read_text(encoding="utf-8"))
        looks, stores = {}, {}
        for name, known in plain["checksums"].items():
            part = name.removesuffix(".npy")
            if checksum(where / name) != known:
                return None
            looks[part], stores[part] = np.load(where / name), ImageStore(where / part)
            if not len(looks[part]) == len(stores[part]) == len(examples[part]):
                return None
        return _Kept(looks, stores, Report.from_summary(plain))
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return None


def _rows(kept: _Kept) -> dict[str, np.ndarray]:
    """Which of the listed pictures are train and dev."""
    state = {part: look["state"] for part, look in kept.looks.items()}
    dev = np.flatnonzero(state["dev"] == KEPT) if "dev" in state else np.flatnonzero(state["train"] == HELD_OUT)
    return {"train": np.flatnonzero(state["train"] == KEPT), "dev": dev}


def _fitting(
    examples: list[Example], rows: np.ndarray, codec: CaptionCodec, data: CaptionFiles, part: str, report: Report
) -> tuple[list[Example], np.ndarray]:
    """The pictures with their captions of at most ``max_length`` pieces, and which have any; the others are told."""
    fitting, kept = list(examples), []
    for row, encoded in zip(rows.tolist(), codec.encode([examples[row].label for row in rows]), strict=True):
        short = []
        for caption, ids in zip(examples[row].label, encoded, strict=True):
            if len(ids) - 2 <= data.max_length:
                short.append(caption)
            else:
                where = f"{examples[row].where}: {len(ids) - 2:,} pieces"
                report.add(part, f"captions of more than {data.max_length} pieces", "dropped", where)
        fitting[row] = examples[row]._replace(label=tuple(short))
        kept += [row] * bool(short)
    if not kept:
        raise DataError(f"no caption of {part} has at most {data.max_length} pieces", remedy="raise --data.max_length")
    return fitting, np.array(kept, np.int64)


def _codec(
    data: CaptionFiles,
    examples: dict[str, list[Example]],
    kept: _Kept,
    rows: np.ndarray,
    preprocess: Preprocess | None,
    report: Report,
) -> CaptionCodec:
    """The vocabulary of the captions that are learned from, and their pictures' size, mean and deviation."""
    seen = kept.looks["train"][rows]
    if preprocess is not None:
        preprocess = replace(preprocess, size=(data.size, data.size)) if data.size else preprocess
    else:
        mean = data.mean or tuple(round(float(value), 4) for value in seen["mean"].mean(0))
        variance = seen["square"].mean(0) - seen["mean"].mean(0) ** 2
        std = data.std or tuple(max(round(float(value), 4), 1 / 255) for value in np.sqrt(np.maximum(variance, 0)))
        side = data.size or _size(seen)
        preprocess = Preprocess((side, side), data.crop, mean, std, data.interpolation, data.antialias)
    captions = [caption for row in rows for caption in examples["train"][row].label]
    words = data.words or default_words(len(captions))
    vocabulary = Subwords.learn(captions, words, data.vocabulary, Normaliser(data.lowercase))
    report.remarks.append(
        f"vocabulary: {vocabulary.size:,} pieces ({data.vocabulary}), learned from {len(captions):,} captions"
    )
    return CaptionCodec(preprocess, vocabulary)


def _size(seen: np.ndarray) -> int:
    """As large as most pictures are, up to 224 (see `qkv.data.image_prepare`)."""
    side = int(np.median(np.minimum(seen["height"], seen["width"])))
    return max(side // 4 * 4, 4) if side <= 96 else min(side // 16 * 16, 224)
