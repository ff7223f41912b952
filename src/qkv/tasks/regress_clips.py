"""Learning to tell a number of a clip: how many, how fast, how long."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from qkv.data.clip_batches import ClipBatch
from qkv.data.clip_prepare import PreparedClips
from qkv.errors import ConfigError
from qkv.tasks.clip_task import ClipTask
from qkv.tasks.losses import number_loss
from qkv.tasks.number_scores import number_scores
from qkv.tasks.task import Loss, Scores

__all__ = ["RegressClips"]


class RegressClips(ClipTask):
    """Train a model to tell a number of a clip, learned as (number - mean) / deviation of the training clips.

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
        return {**ClipTask.recipe(run), "data": {"labels": "number"}}

    def config(self, codec, size: Any) -> Any:
        if codec.images.labels != "number":
            raise ConfigError("the labels are classes", expected="numbers", remedy="use qkv train classify")
        return super().config(codec, size)

    def loss(self, model: nn.Module, batch: ClipBatch, step: int = 0) -> Loss:
        """Squared or Huber's error of the scaled number, summed over clips."""
        outputs = model.of_clip(model(batch.images, batch.lengths), batch.lengths)
        return Loss(number_loss(outputs, batch.labels, self.huber))

    @torch.no_grad()
    def score(self, model: nn.Module, prepared: PreparedClips) -> Scores:
        """Scores of the held-out clips in the unit of the targets (see `qkv.tasks.number_scores`)."""
        device, codec = next(model.parameters()).device, prepared.codec.images
        said, targets, total = [], [], 0.0
        for batch in prepared.dev:
            batch = batch.to(device)
            outputs = model.of_clip(model(batch.images, batch.lengths), batch.lengths)
            total += float(number_loss(outputs, batch.labels, self.huber))
            said += codec.decode(outputs.cpu())
            targets += codec.decode(batch.labels.cpu())
        return Scores({"loss": total / len(said)} | number_scores(np.array(said), np.array(targets)))
