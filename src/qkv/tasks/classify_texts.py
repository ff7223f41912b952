"""Learning to tell the class of a text, or of a pair of texts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from qkv.data.labels import LabelCodec
from qkv.data.text_codec import TextCodec
from qkv.data.texts import TextFiles
from qkv.data.texts_batches import TextBatch
from qkv.data.texts_prepare import PreparedTexts, prepare_texts
from qkv.errors import ConfigError
from qkv.tasks.class_scores import class_scores, several_scores
from qkv.tasks.losses import balanced, class_loss, several_loss
from qkv.tasks.reading import Reads
from qkv.tasks.task import Loss, Scores
from qkv.tasks.text_outcomes import probabilities

__all__ = ["ClassifyTexts"]

SAMPLES = 3


class ClassifyTexts(Reads):
    """Train a classifier of texts, or of pairs of texts; one class each, or several.

    Args:
        smoothing: label smoothing: this share of each text's mass is spread over all classes.
        class_weights: balanced: all classes count alike, however many texts they have; none: all texts do.
        embeddings: a file of word vectors (text format of word2vec or GloVe) that the token vectors of a new model
            start from; with --data.vocabulary word most words have one.
    """

    name = "classify"
    Data = TextFiles
    unit = "texts"
    best = "accuracy"
    higher_is_better: Mapping[str, bool] = {
        "loss": False,
        "accuracy": True,
        "top5": True,
        "macro_f1": True,
        "micro_f1": True,
        "map": True,
    }

    def __init__(
        self, smoothing: float = 0.0, class_weights: Literal["none", "balanced"] = "none", embeddings: str = ""
    ):
        super().__init__(embeddings)
        if not 0 <= smoothing < 1:
            raise ConfigError(f"learn.smoothing is {smoothing}", expected="0 or more, less than 1")
        if class_weights not in ("none", "balanced"):
            raise ConfigError(f"learn.class_weights is {class_weights!r}", expected="none or balanced")
        self.smoothing, self.class_weights = smoothing, class_weights
        self.several = False
        self.weights: Tensor | None = None

    def prepare(
        self, data: TextFiles, folder: Path, seed: int, codec: LabelCodec | TextCodec | None = None
    ) -> PreparedTexts:
        """Read, check and encode the user's texts; see `qkv.data.texts_prepare`."""
        if data.labels == "number":
            raise ConfigError(
                "data.labels is 'number'", expected="class or several", remedy="numbers are learned by regress"
            )
        return prepare_texts(data, folder, seed, codec)

    def begin(self, run: Any, prepared: PreparedTexts) -> list[str]:
        """Weigh the classes."""
        self.several = prepared.codec.targets.labels == "several"
        self.best = "map" if self.several else "accuracy"
        if self.class_weights == "balanced":
            self.weights = balanced(prepared.labels, self.several)
        return []

    def load_codec(self, folder: Path) -> LabelCodec:
        """The codec of a run that is gone on with."""
        return LabelCodec.load(folder)

    def loss(self, model: nn.Module, batch: TextBatch, step: int = 0) -> Loss:
        """Cross entropy of the true class, or of each class for itself, summed over texts."""
        logits = model.classify(model(batch.tokens, batch.lengths, batch.segments), batch.lengths)
        smoothing = self.smoothing if model.training else 0.0
        weights = self.weights.to(logits.device) if self.weights is not None and model.training else None
        measure = several_loss if self.several else class_loss
        return Loss(measure(logits, batch.labels, smoothing, weights), {"accuracy": self._right(logits, batch.labels)})

    def _right(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.several:
            return ((logits > 0) == (labels > 0.5)).float().mean(1).sum().detach()
        return (logits.argmax(1) == labels.argmax(1)).sum().detach()

    def score(self, model: nn.Module, prepared: PreparedTexts) -> Scores:
        """Dev loss, accuracy and macro F1 (of several labels mean average precision and F1), and a few answers."""
        device, total, said, true, ids = next(model.parameters()).device, 0.0, [], [], []
        with torch.inference_mode():
            for batch in prepared.dev:
                batch = batch.to(device)
                logits = model.classify(model(batch.tokens, batch.lengths, batch.segments), batch.lengths)
                total += float((several_loss if self.several else class_loss)(logits, batch.labels))
                said.append(probabilities(logits, prepared.codec.targets).cpu())
                true.append(batch.labels.cpu())
                ids += batch.ids.tolist()
        said, true = torch.cat(said).numpy(), torch.cat(true).numpy()
        scores = several_scores(said, true > 0.5) if self.several else class_scores(said, true.argmax(1))
        return Scores({"loss": total / len(ids)} | scores, self._samples(said, true, ids, prepared))

    def _samples(self, said, true, ids: list[int], prepared: PreparedTexts) -> list[str]:
        classes, found = prepared.codec.targets.classes, []
        for row in sorted(range(len(ids)), key=ids.__getitem__)[:SAMPLES]:
            named = ", ".join(name for name, share in zip(classes, true[row], strict=True) if share > 0.5)
            best = said[row].argmax()
            text = " / ".join(prepared.dev_texts[ids[row]].texts)
            found.append(f"{text[:80]}\n  = {named}\n  > {classes[best]} ({said[row][best]:.2f})")
        return found

    def names_of(self, folder: Path) -> tuple[str, ...] | None:
        """The classes of a run."""
        return LabelCodec.load(folder).targets.classes if (folder / "labels.json").is_file() else None

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv classify {folder} < lines.txt",
            f"qkv look {folder} 'a text' --out look.html",
            f"qkv evaluate {folder} --data test.tsv",
        ]
