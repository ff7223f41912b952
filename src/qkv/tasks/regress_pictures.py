"""Learning to tell a number of a picture: an age, a weight, a share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from qkv.data.image_batches import ImageBatch
from qkv.data.image_prepare import PreparedImages
from qkv.errors import ConfigError
from qkv.tasks.losses import number_loss
from qkv.tasks.number_scores import number_scores
from qkv.tasks.picture_recipe import recipe
from qkv.tasks.picture_task import PictureTask
from qkv.tasks.task import Loss, Scores

__all__ = ["RegressPictures"]


class RegressPictures(PictureTask):
    """Train a model to tell a number of a picture, learned as (number - mean) / deviation of the training pictures.

    Args:
        huber: deviations from which an error counts linearly and no more by its square; 0 is the squared error.
    """

    name = "regress"
    best = "mae"
    higher_is_better: Mapping[str, bool] = {"loss": False, "mae": False, "rmse": False, "r2": True, "spearman": True}

    def __init__(self, huber: float = 0.0):
        if huber < 0:
            raise ConfigError(f"learn.huber is {huber}", expected="0 or more")
        self.huber = huber

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """Settings that suit the model and the pictures; see `qkv.tasks.picture_recipe`."""
        return recipe(run, "number")

    def prepare(self, data, folder, seed, codec=None) -> PreparedImages:
        """As of every picture task; labels must be numbers."""
        if data.labels != "number":
            raise ConfigError(f"data.labels is {data.labels!r}", expected="number", remedy="use qkv train classify")
        return super().prepare(data, folder, seed, codec)

    def loss(self, model: nn.Module, batch: ImageBatch, step: int = 0) -> Loss:
        """Squared or Huber's error of the scaled number, summed over pictures."""
        return Loss(number_loss(model(batch.images), batch.labels, self.huber))

    def score(self, model: nn.Module, prepared: PreparedImages) -> Scores:
        """Scores of the held-out pictures in the unit of the targets (see `qkv.tasks.number_scores`)."""
        device, codec = next(model.parameters()).device, prepared.codec
        said, targets, total = [], [], 0.0
        for batch in prepared.dev:
            batch = batch.to(device)
            outputs = model(batch.images)
            total += float(number_loss(outputs, batch.labels, self.huber))
            said += codec.decode(outputs.cpu())
            targets += codec.decode(batch.labels.cpu())
        return Scores({"loss": total / len(said)} | number_scores(np.array(said), np.array(targets)))
