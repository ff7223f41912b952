"""Tagged sentences made ready for training: checked, repaired, split, cut into windows, encoded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from qkv.data.buckets import pad_rows
from qkv.data.report import Report
from qkv.data.spans import spans_of
from qkv.data.tags import TagFiles
from qkv.data.tags_codec import NONE, TagCodec, Window, make_tags
from qkv.data.tags_doctor import by_characters, examine_all
from qkv.data.tags_reading import Sentence
from qkv.data.text_codec import TextCodec
from qkv.data.texts_batches import ByLength, InOrder, TextBatch, padded
from qkv.data.texts_prepare import flat, hashed, learn_vocabulary, split

__all__ = ["PreparedTags", "prepare_tags"]


@dataclass(frozen=True)
class PreparedTags:
    """Sentences made ready; fits `qkv.tasks.task.Prepared`.

    ``dev`` holds each window of the held-out sentences once; ``dev_sentences`` are they themselves.
    """

    train: ByLength
    dev: InOrder
    codec: TagCodec
    report: list[str]
    dev_sentences: list[Sentence]
    summary: dict[str, Any] = field(default_factory=dict)


def prepare_tags(data: TagFiles, folder: Path, seed: int, codec: TagCodec | TextCodec | None = None) -> PreparedTags:
    """Read, check, split, encode; learn the vocabulary unless one is given.

    Args:
        codec: all of it, or the vocabulary alone, of a run that learned something else.

    Raises:
        DataError: the data cannot be used: a column is missing, nothing left to train on, a tag that train has not.
        ConfigError: settings that cannot be.
    """
    report, parts, scheme = examine_all(data)
    report.raise_if_refused()
    files = {part: hashed((one.words, one.tags) for one in some) for part, some in parts.items()}
    # Of several kinds of tags in a sentence the rarest decides (see `hold_out`), so that dev has some of each.
    held_by = [tuple(sorted(set(one.tags))) for one in parts.get("train", ())]
    train, dev = split(parts, held_by, data.hold_out, report)
    characters = by_characters(parts["train"])
    if not isinstance(codec, TagCodec):
        laid = TagCodec(None, (), scheme, characters, data.max_length)
        kind = ("character" if characters else "wordpiece") if data.vocabulary == "auto" else data.vocabulary
        text = codec or learn_vocabulary((laid.layout(one.words)[0] for one in train), len(train), data, report, kind)
        tags = make_tags([one.tags for one in parts["train"]], scheme)
        codec = TagCodec(text, tags, scheme, characters, data.max_length)
    report.remarks.append(f"unit: the {'character' if codec.characters else 'word'}, {len(codec.tags)} tags ({scheme})")
    sets = {"train": _Windows(train, codec), "dev": _Windows(dev, codec)}
    for part, some in sets.items():
        _tell(part, some, report)
    return PreparedTags(
        ByLength(sets["train"].lengths, data.batch, seed, sets["train"].batch),
        InOrder(sets["dev"].lengths, data.batch, sets["dev"].batch),
        codec,
        report.lines(),
        dev,
        {
            **report.summary(),
            "files_hash": files,
            "codec_hash": codec.fingerprint(),
            "sentences": len(train),
            "dev_sentences": len(dev),
            "tags": list(codec.tags),
        },
    )


class _Windows:
    """The windows of some sentences, encoded."""

    def __init__(self, sentences: Sequence[Sentence], codec: TagCodec):
        self.codec, self.spans, self.cut, self.sentences = codec, 0, 0, len(sentences)
        self.first_cut, rows, labels = "", [], []
        for one in sentences:
            text, places = codec.layout(one.words)
            windows = codec.windows(text, places)
            own = codec.labels(windows, one.tags)
            rows += [window.encoded.ids for window in windows]
            labels += own
            if not codec.plain:
                self._count_cut(one, windows, own)
        self.rows, self.labels = flat(rows), flat(labels)
        self.lengths = self.rows.lengths(np.arange(len(rows)))

    def _count_cut(self, one: Sentence, windows: Sequence[Window], labels: Sequence[Sequence[int]]) -> None:
        gold = set(spans_of(one.tags))
        best = spans_of(self.codec.said(windows, labels, [word == " " for word in one.words]))
        lost = len(gold - set(best))
        self.first_cut = self.first_cut or (one.where if lost else "")
        self.spans, self.cut = self.spans + len(gold), self.cut + lost

    def batch(self, ids: np.ndarray) -> TextBatch:
        """The windows of these numbers."""
        rows = [self.rows[int(i)].tolist() for i in ids]
        labels = pad_rows([self.labels[int(i)].tolist() for i in ids], NONE)[0]
        made = padded(rows, [[0] * len(row) for row in rows], self.codec.text.pad)
        return TextBatch(*made, labels, torch.from_numpy(ids.copy()), int((labels != NONE).sum()))


def _tell(part: str, some: _Windows, report: Report) -> None:
    if len(some.lengths) > some.sentences:
        report.remarks.append(f"{part}: {some.sentences:,} sentences are read in {len(some.lengths):,} windows")
    if some.cut:
        report.add(part, "spans whose borders lie inside a piece, where no tagger of pieces finds them", "noted",
                   some.first_cut, some.cut)  # fmt: skip
