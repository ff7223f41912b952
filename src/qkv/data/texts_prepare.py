"""Labelled texts made ready for training: checked, split, encoded. Nothing is kept on the disk: reading anew is quick.

What is held out depends on the texts alone (`qkv.data.image_split.hold_out`), so runs of any seed are judged on the
same ones, and copies of a text never straddle.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from qkv.data.classes import Label, class_list, unknown
from qkv.data.image_split import hold_out
from qkv.data.labels import LabelCodec
from qkv.data.normalise import Normaliser
from qkv.data.report import Report
from qkv.data.store import Side
from qkv.data.subwords import Subwords, default_words
from qkv.data.targets import Targets
from qkv.data.text_codec import TextCodec
from qkv.data.texts import TextFiles
from qkv.data.texts_batches import ByLength, InOrder, TextBatch, padded
from qkv.data.texts_doctor import examine_all
from qkv.data.texts_listing import LabelledText
from qkv.errors import ConfigError, DataError

__all__ = ["PreparedTexts", "flat", "hashed", "learn_vocabulary", "prepare_texts", "split"]


@dataclass(frozen=True)
class PreparedTexts:
    """Texts made ready; fits `qkv.tasks.task.Prepared`.

    ``dev`` holds each held-out text once, and a batch's ``ids`` are places in ``dev_texts``; ``labels`` are those of
    train, as they are learned.
    """

    train: ByLength
    dev: InOrder
    codec: LabelCodec
    report: list[str]
    dev_texts: list[LabelledText]
    labels: Float[Tensor, "text output"]
    summary: dict[str, Any] = field(default_factory=dict)


def prepare_texts(
    data: TextFiles, folder: Path, seed: int, codec: LabelCodec | TextCodec | None = None
) -> PreparedTexts:
    """Read, check, split, encode; learn the vocabulary unless one is given.

    Args:
        codec: all of it, or the vocabulary alone, of a run that learned something else.

    Raises:
        DataError: the data cannot be used: nothing left to train on, a class that the codec does not know.
        ConfigError: settings that cannot be.
    """
    report, examples = examine_all(data)
    report.raise_if_refused()
    files = {part: hashed((one.texts, one.label) for one in some) for part, some in examples.items()}
    train, dev = split(examples, [one.label for one in examples.get("train", ())], data.hold_out, report)
    if not isinstance(codec, LabelCodec):
        text = codec or learn_vocabulary((side for one in train for side in one.texts), len(train), data, report)
        pair = len(train[0].texts) == 2
        codec = LabelCodec(text, _targets(data, [one.label for one in examples["train"]]), data.max_length, pair)
    _check(codec, examples, report)
    encoded = {"train": _encoded(train, "train", codec, report), "dev": _encoded(dev, "dev", codec, report)}
    labels = {
        part: codec.targets.encode([one.label for one in some]) for part, some in (("train", train), ("dev", dev))
    }
    lengths = {part: side.lengths(np.arange(len(side.ends))) for part, (side, _) in encoded.items()}

    def make(part: str):
        rows, firsts = encoded[part]

        def batch(ids: np.ndarray) -> TextBatch:
            pieces = [rows[int(i)].tolist() for i in ids]
            segments = [[0] * first + [1] * (len(row) - first) for first, row in zip(firsts[ids], pieces, strict=True)]
            made = padded(pieces, segments, codec.text.pad)
            return TextBatch(*made, labels[part][ids], torch.from_numpy(ids.copy()), len(ids))

        return batch

    return PreparedTexts(
        ByLength(lengths["train"], data.batch, seed, make("train")),
        InOrder(lengths["dev"], data.batch, make("dev")),
        codec,
        report.lines(),
        dev,
        labels["train"],
        {
            **report.summary(),
            "files_hash": files,
            "codec_hash": codec.fingerprint(),
            "texts": len(train),
            "dev_texts": len(dev),
            "classes": list(codec.targets.classes),
        },
    )


def split(examples: dict[str, list], labels: Sequence[Label], share: float, report: Report) -> tuple[list, list]:
    """Train and dev; where no dev is named, some of train are held out, of each class alike.

    Examples have ``texts``; ``labels`` are those of train.
    """
    train = examples.get("train")
    if not train:
        raise ConfigError("there is nothing to train on", remedy="name it with --data.train")
    if "dev" in examples:
        return train, examples["dev"]
    content = np.array([int(hashed([one.texts])[:16], 16) for one in train], np.uint64)
    held = hold_out(content, labels, share)
    if not held.any():
        raise DataError(
            f"{len(train)} {report.unit} are too few to hold some out", remedy="name held-out data with --data.dev"
        )
    report.kept["train"] -= int(held.sum())
    report.remarks.append(
        f"dev: none is named, so {int(held.sum()):,} {report.unit} of train are held out as dev, chosen by their words"
    )
    return [one for one, out in zip(train, held, strict=True) if not out], [
        one for one, out in zip(train, held, strict=True) if out
    ]


def learn_vocabulary(texts: Iterator[str], count: int, data, report: Report, kind: str = "") -> TextCodec:
    """A vocabulary of train's texts as the data's settings say.

    Args:
        count: examples, by which its size is chosen where none is given.
        kind: in place of ``data.vocabulary``.
    """
    kind = kind or data.vocabulary
    normaliser = Normaliser(data.lowercase, data.strip_accents)
    vocabulary = Subwords.learn(list(texts), data.words or default_words(count), kind, normaliser)
    report.remarks.append(f"vocabulary: {vocabulary.size:,} pieces ({kind}), learned from train")
    return TextCodec(vocabulary)


def hashed(values) -> str:
    """A hash of some values, equal while they are."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        digest.update(repr(value).encode("utf-8", errors="surrogatepass") + b"\n")
    return digest.hexdigest()


def flat(rows: Sequence[Sequence[int]]) -> Side:
    """Rows of ids in one array: millions of them in little memory."""
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return Side(np.fromiter((i for row in rows for i in row), np.int32, int(ends[-1]) if len(ends) else 0), ends)


def _targets(data: TextFiles, labels: list[Label]) -> Targets:
    """Classes of all of train, held out or not."""
    if data.labels == "number":
        numbers = np.array(labels)
        return Targets((), "number", float(numbers.mean()), float(numbers.std()) or 1.0)
    return Targets(class_list(labels), data.labels)


def _check(codec: LabelCodec, examples: dict[str, list[LabelledText]], report: Report) -> None:
    """A codec that came from elsewhere knows the classes, and as many texts."""
    for part, some in examples.items():
        file = report.files[part][0]
        labels = () if codec.targets.labels == "number" else (one.label for one in some)
        if error := unknown(labels, codec.targets.classes, part, file, "the model"):
            raise error
        if odd := next((one for one in some if len(one.texts) != 1 + codec.pair), None):
            raise DataError(
                f"{odd.where} has {len(odd.texts)} text{'s' * (len(odd.texts) > 1)}",
                expected="two, as train has" if codec.pair else "one, as train has",
                remedy="see --data.pair",
            )


def _encoded(some: list[LabelledText], part: str, codec: LabelCodec, report: Report) -> tuple[Side, np.ndarray]:
    """Ids of each text, and how many of them are of the first segment."""
    rows = codec.encode([one.texts for one in some])
    cut = [one.where for one, (ids, _) in zip(some, rows, strict=True) if len(ids) >= codec.longest]
    if cut:
        kind = f"texts of {codec.longest} pieces or more, cut there (--data.max_length)"
        report.add(part, kind, "mended", cut[0], len(cut))
    return flat([ids for ids, _ in rows]), np.array([segments.count(0) for _, segments in rows])
