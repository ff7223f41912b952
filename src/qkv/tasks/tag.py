"""Learning to tag the words of a sentence: names in it, or parts of speech."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from qkv.data.tags import TagFiles
from qkv.data.tags_codec import NONE, TagCodec
from qkv.data.tags_prepare import PreparedTags, prepare_tags
from qkv.data.text_codec import TextCodec
from qkv.data.texts_batches import TextBatch
from qkv.errors import ConfigError
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.tasks.reading import Reads
from qkv.tasks.tag_scores import span_scores, word_scores
from qkv.tasks.tagger import Tagger
from qkv.tasks.task import Loss, Scores

__all__ = ["Tag"]

SAMPLES = 3


class Tag(Reads):
    """Train a tagger of words, or of characters where the files hold those.

    Args:
        smoothing: label smoothing: this share of each word's mass is spread over all tags.
        embeddings: a file of word vectors (text format of word2vec or GloVe) that the token vectors of a new model
            start from; with --data.vocabulary word most words have one.
    """

    name = "tag"
    Data = TagFiles
    unit = "words"
    head = "tag"
    best = "f1"
    higher_is_better: Mapping[str, bool] = {
        "loss": False, "accuracy": True, "f1": True, "precision": True, "recall": True, "macro_f1": True,
    }  # fmt: skip

    def __init__(self, smoothing: float = 0.0, embeddings: str = ""):
        super().__init__(embeddings)
        if not 0 <= smoothing < 1:
            raise ConfigError(f"learn.smoothing is {smoothing}", expected="0 or more, less than 1")
        self.smoothing = smoothing

    def prepare(
        self, data: TagFiles, folder: Path, seed: int, codec: TagCodec | TextCodec | None = None
    ) -> PreparedTags:
        """Read, check and encode the user's sentences; see `qkv.data.tags_prepare`."""
        return prepare_tags(data, folder, seed, codec)

    def begin(self, run: Any, prepared: PreparedTags) -> list[str]:
        """Plain tags have no spans to score."""
        self.best = "accuracy" if prepared.codec.plain else "f1"
        return []

    def load_codec(self, folder: Path) -> TagCodec:
        """The codec of a run that is gone on with."""
        return TagCodec.load(folder)

    def outputs(self, codec: TagCodec) -> tuple[str, ...]:
        """The tags."""
        return codec.tags

    def loss(self, model: nn.Module, batch: TextBatch, step: int = 0) -> Loss:
        """Cross entropy of the true tag of each unit, at its first piece, summed over units."""
        states = model(batch.tokens, batch.lengths, batch.segments)
        real = batch.labels != NONE
        smoothing = self.smoothing if model.training else 0.0
        output = model.head.output
        states = model.dropout(states[real])
        total, nll, right = linear_cross_entropy(states, output.weight, output.bias, batch.labels[real], smoothing)
        return Loss(total, {"nll": nll, "accuracy": right})

    def score(self, model: nn.Module, prepared: PreparedTags) -> Scores:
        """Dev loss, and F1 of spans or accuracy of plain tags, at the unit of the files."""
        tagger = Tagger(model, prepared.codec)
        total, targets = 0.0, 0
        with torch.inference_mode():
            for batch in prepared.dev:
                total += float(self.loss(model, batch.to(tagger.device)).parts["nll"])
                targets += batch.targets
        answers = list(tagger.tag_words(one.words for one in prepared.dev_sentences))
        true, said = [one.tags for one in prepared.dev_sentences], [answer.tags for answer in answers]
        scores = (word_scores if prepared.codec.plain else span_scores)(true, said)
        return Scores({"loss": total / max(targets, 1)} | scores, [str(answer) for answer in answers[:SAMPLES]])

    def names_of(self, folder: Path) -> tuple[str, ...] | None:
        """The tags of a run."""
        return TagCodec.load(folder).tags if (folder / "tags.json").is_file() else None

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv tag {folder} < lines.txt",
            f"qkv look {folder} 'a sentence' --out look.html",
            f"qkv evaluate {folder} --data test.conll",
        ]
