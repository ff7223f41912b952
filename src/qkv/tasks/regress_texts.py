"""Learning to tell a number of a text, or of a pair of texts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from qkv.data.labels import LabelCodec
from qkv.data.text_codec import TextCodec
from qkv.data.texts import TextFiles
from qkv.data.texts_batches import TextBatch
from qkv.data.texts_prepare import PreparedTexts, prepare_texts
from qkv.errors import ConfigError
from qkv.tasks.losses import number_loss
from qkv.tasks.number_scores import number_scores
from qkv.tasks.reading import Reads
from qkv.tasks.task import Loss, Scores

__all__ = ["RegressTexts"]

SAMPLES = 3


class RegressTexts(Reads):
    """Train a model that says a number of each text, or of each pair of texts.

    Args:
        huber: errors up to this (in deviations of the target) count squared and larger ones linearly; 0: all squared.
        embeddings: a file of word vectors (text format of word2vec or GloVe) that the token vectors of a new model
            start from; with --data.vocabulary word most words have one.
    """

    name = "regress"
    Data = TextFiles
    unit = "texts"
    best = "r2"
    higher_is_better: Mapping[str, bool] = {
        "loss": False, "mae": False, "rmse": False, "r2": True, "spearman": True,
    }  # fmt: skip

    def __init__(self, huber: float = 0.0, embeddings: str = ""):
        super().__init__(embeddings)
        if huber < 0:
            raise ConfigError(f"learn.huber is {huber}", expected="0 or more")
        self.huber = huber

    def prepare(
        self, data: TextFiles, folder: Path, seed: int, codec: LabelCodec | TextCodec | None = None
    ) -> PreparedTexts:
        """Read, check and encode the user's texts; their labels are read as numbers."""
        return prepare_texts(replace(data, labels="number"), folder, seed, codec)

    def load_codec(self, folder: Path) -> LabelCodec:
        """The codec of a run that is gone on with."""
        return LabelCodec.load(folder)

    def loss(self, model: nn.Module, batch: TextBatch, step: int = 0) -> Loss:
        """Squared error of the scaled number, summed over texts."""
        said = model.classify(model(batch.tokens, batch.lengths, batch.segments), batch.lengths)
        return Loss(number_loss(said, batch.labels, self.huber))

    def score(self, model: nn.Module, prepared: PreparedTexts) -> Scores:
        """Dev loss of the scaled numbers, and errors in the target's own unit."""
        device, total, said, true, ids = next(model.parameters()).device, 0.0, [], [], []
        targets = prepared.codec.targets
        with torch.inference_mode():
            for batch in prepared.dev:
                batch = batch.to(device)
                found = model.classify(model(batch.tokens, batch.lengths, batch.segments), batch.lengths)
                total += float(number_loss(found, batch.labels, self.huber))
                said += targets.decode(found.cpu())
                true += targets.decode(batch.labels.cpu())
                ids += batch.ids.tolist()
        first = sorted(range(len(ids)), key=ids.__getitem__)[:SAMPLES]
        samples = [
            f"{' / '.join(prepared.dev_texts[ids[i]].texts)[:80]}\n  = {true[i]:g}\n  > {said[i]:g}" for i in first
        ]
        return Scores({"loss": total / len(ids)} | number_scores(np.array(said), np.array(true)), samples)

    def names_of(self, folder: Path) -> tuple[str, ...] | None:
        """A number has no names; another run's head is taken over if it said a number too."""
        if not (folder / "labels.json").is_file() or LabelCodec.load(folder).targets.labels != "number":
            return None
        return ()

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv regress {folder} < lines.txt",
            f"qkv look {folder} 'a text' --out look.html",
            f"qkv evaluate {folder} --data test.tsv",
        ]
