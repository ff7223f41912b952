"""What tasks share that learn a number of something seen: its error, and its scores in the unit of the targets."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.errors import ConfigError
from qkv.tasks.losses import number_loss
from qkv.tasks.number_scores import number_scores
from qkv.tasks.task import Loss, Prepared, Scores

__all__ = ["TellsNumber"]


class TellsNumber:
    """A number is learned as (number - mean) / deviation of the training data.

    Args:
        huber: deviations from which an error counts linearly and no more by its square; 0 is the squared error.
    """

    outputs: Callable[[nn.Module, Any], Float[Tensor, "example 1"]]  # what a model says of each example: the task's own
    name = "regress"
    best = "mae"
    higher_is_better: Mapping[str, bool] = {"loss": False, "mae": False, "rmse": False, "r2": True, "spearman": True}

    def __init__(self, huber: float = 0.0):
        if huber < 0:
            raise ConfigError(f"learn.huber is {huber}", expected="0 or more")
        self.huber = huber

    def numbers(self, codec: Any) -> Any:
        """The part of the codec that scales numbers back."""
        return codec

    def loss(self, model: nn.Module, batch: Any, step: int = 0) -> Loss:
        """Squared or Huber's error of the scaled number, summed over examples."""
        return Loss(number_loss(self.outputs(model, batch), batch.labels, self.huber))

    @torch.no_grad()
    def score(self, model: nn.Module, prepared: Prepared) -> Scores:
        """Scores of what is held out in the unit of the targets (see `qkv.tasks.number_scores`)."""
        device, numbers = next(model.parameters()).device, self.numbers(prepared.codec)
        said, targets, total = [], [], 0.0
        for batch in prepared.dev:
            batch = batch.to(device)
            outputs = self.outputs(model, batch)
            total += float(number_loss(outputs, batch.labels, self.huber))
            said += numbers.decode(outputs.cpu())
            targets += numbers.decode(batch.labels.cpu())
        return Scores({"loss": total / len(said)} | number_scores(np.array(said), np.array(targets)))
