"""Learning to tell the class of a picture, or its classes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from qkv.data.image_batches import ImageBatch
from qkv.data.image_prepare import PreparedImages
from qkv.errors import ConfigError
from qkv.tasks.class_scores import class_scores, several_scores
from qkv.tasks.losses import balanced, class_loss, several_loss
from qkv.tasks.picture_recipe import recipe
from qkv.tasks.picture_task import PictureTask
from qkv.tasks.task import Loss, Scores

__all__ = ["ClassifyPictures"]

SAMPLES = 3


class ClassifyPictures(PictureTask):
    """Train a model to tell the class of a picture, or (``--data.labels several``) all classes that it has.

    Args:
        smoothing: label smoothing: this share of each picture's label is spread over all classes.
        class_weights: balanced, so that all classes count alike however many pictures they have; or none.
    """

    name = "classify"
    best = "accuracy"
    higher_is_better: Mapping[str, bool] = {
        "loss": False,
        "accuracy": True,
        "top5": True,
        "macro_f1": True,
        "micro_f1": True,
        "map": True,
    }

    def __init__(self, smoothing: float = 0.1, class_weights: Literal["none", "balanced"] = "none"):
        if not 0 <= smoothing < 1:
            raise ConfigError(f"learn.smoothing is {smoothing}", expected="0 or more, less than 1")
        if class_weights not in ("none", "balanced"):
            raise ConfigError(f"learn.class_weights is {class_weights!r}", expected="none or balanced")
        self.smoothing, self.class_weights = smoothing, class_weights
        self.several = False
        self.weights: Tensor | None = None

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """Settings that suit the model and the pictures; see `qkv.tasks.picture_recipe`."""
        if run.data.labels == "number":
            raise ConfigError("data.labels is 'number'", expected="class or several", remedy="use qkv train regress")
        return recipe(run, run.data.labels)

    def begin(self, run: Any, prepared: PreparedImages) -> list[str]:
        """Weigh the classes."""
        self.several = prepared.codec.labels == "several"
        self.best = "map" if self.several else "accuracy"
        if self.class_weights == "balanced":
            self.weights = balanced(prepared.train.images.labels, self.several)
        return super().begin(run, prepared)

    def loss(self, model: nn.Module, batch: ImageBatch, step: int = 0) -> Loss:
        """Cross entropy with the shares of classes, or binary cross entropy of each class, summed over pictures."""
        logits = model(batch.images)
        weights = None if self.weights is None else self.weights.to(logits.device)
        loss = several_loss if self.several else class_loss
        total = loss(logits, batch.labels, self.smoothing, weights)
        right = logits.detach().argmax(1) == batch.labels.argmax(1)
        return Loss(total, {} if self.several else {"accuracy": right.sum()})

    def score(self, model: nn.Module, prepared: PreparedImages) -> Scores:
        """Scores of the held-out pictures (see `qkv.tasks.class_scores`), and what is most often taken for what.

        ``loss`` is without smoothing and class weights.
        """
        several, classes = prepared.codec.labels == "several", prepared.codec.classes
        device = next(model.parameters()).device
        chances, labels, total = [], [], 0.0
        for batch in prepared.dev:
            batch = batch.to(device)
            logits = model(batch.images).float()
            total += float((several_loss if several else class_loss)(logits, batch.labels))
            chances.append(logits.sigmoid() if several else logits.softmax(1))
            labels.append(batch.labels)
        chances, labels = torch.cat(chances).double().cpu().numpy(), torch.cat(labels).cpu().numpy()
        scores = several_scores(chances, labels) if several else class_scores(chances, labels.argmax(1))
        return Scores({"loss": total / len(labels)} | scores, [] if several else _mistakes(chances, labels, classes))


def _mistakes(chances, labels, classes) -> list[str]:
    said, true = chances.argmax(1), labels.argmax(1)
    pairs = Counter((t, s) for t, s in zip(true.tolist(), said.tolist(), strict=True) if t != s)
    return [f"  {classes[t]} taken for {classes[s]}: {n}" for (t, s), n in pairs.most_common(SAMPLES)]
