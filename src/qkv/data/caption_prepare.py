"""Pictures with captions made ready for training: checked, split by picture, decoded, kept in the run's folder.

What is kept is keyed by the content of the files and by the settings that decide which pictures stay, as with labelled
pictures; captions are encoded anew each time, which is quick.
"""

from collections.abc import Mapping
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
from qkv.data.kept import tidy
from qkv.data.kept_pictures import KeptPictures, hold_out_some, keep_pictures, key_of
from qkv.data.normalise import Normaliser
from qkv.data.preprocess import Preprocess
from qkv.data.report import Report
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
    examples = list_captions(data, Report(unit="pictures"))
    if not examples.get("train"):
        raise ConfigError("there is nothing to train on", remedy="name it with --data.train")
    files = fingerprint(examples)
    key = key_of(data, SETTINGS, files)
    opened = keep_pictures(
        kept,
        key,
        examples,
        {part: data.keep_mb * 1_000_000 * tenths // 10 for part, tenths in MEASURED.items()},
        lambda keep: examine_all(data, keep),
        lambda found: hold_out_some(found[2]["train"], None, data.hold_out, found[0]),
    )
    tidy(kept, kept / key)
    rows, report = opened.rows(), opened.report
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
    kept: KeptPictures,
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
