"""Learning to tell the class of a clip, and of each of its frames where they are labelled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from qkv.data.clip_batches import ClipBatch
from qkv.data.clip_prepare import PreparedClips
from qkv.errors import ConfigError
from qkv.tasks.class_scores import class_scores
from qkv.tasks.clip_task import ClipTask
from qkv.tasks.frame_scores import frame_scores
from qkv.tasks.losses import class_loss
from qkv.tasks.task import Loss, Scores

__all__ = ["ClassifyClips"]


class ClassifyClips(ClipTask):
    """Train a model to tell the class of a clip, and which of its frames are marked.

    Args:
        clip: weight of the clip's class in the loss; 0 learns from frames only.
        frames: weight of the frames' classes, where the data have them: of a clip, the mean over its frames.
        smoothing: label smoothing: this share of each label is spread over all classes.
    """

    name = "classify"
    best = "accuracy"
    higher_is_better: Mapping[str, bool] = {
        "loss": False, "accuracy": True, "top5": True, "macro_f1": True, "frame_accuracy": True, "frame_f1": True,
    }  # fmt: skip

    def __init__(self, clip: float = 1.0, frames: float = 1.0, smoothing: float = 0.0):
        for key, value in (("clip", clip), ("frames", frames)):
            if value < 0:
                raise ConfigError(f"learn.{key} is {value}", expected="0 or more")
        if not clip and not frames:
            raise ConfigError("learn.clip and learn.frames are 0", remedy="leave one of them out")
        if not 0 <= smoothing < 1:
            raise ConfigError(f"learn.smoothing is {smoothing}", expected="0 or more, less than 1")
        self.clip, self.frames, self.smoothing = clip, frames, smoothing
        self.best = "accuracy" if clip else "frame_f1"

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        if run.data.labels == "number":
            raise ConfigError("data.labels is 'number'", expected="class", remedy="use qkv train regress")
        return ClipTask.recipe(run)

    def config(self, codec, size: Any) -> Any:
        if not codec.frame_classes and not self.clip:
            raise ConfigError(
                "learn.clip is 0, and no frame is labelled", remedy="name labelled frames in a column 'frames'"
            )
        return super().config(codec, size)

    def loss(self, model: nn.Module, batch: ClipBatch, step: int = 0) -> Loss:
        """Cross entropy of each clip's class and, in the mean, of its labelled frames', summed over clips."""
        smoothing = self.smoothing if model.training else 0.0
        states = model(batch.images, batch.lengths)
        total, parts = states.new_zeros((), dtype=torch.float32), {}
        if self.clip:
            logits = model.of_clip(states, batch.lengths)
            total = total + self.clip * class_loss(logits, batch.labels, smoothing)
            parts["accuracy"] = (logits.detach().argmax(1) == batch.labels.argmax(1)).sum()
        if self.frames and model.frame_head is not None:
            each = _frame_losses(model.of_frames(states), batch.frame_labels, smoothing)
            total = total + self.frames * each.sum()
            parts["frames"] = each.detach().sum()
        return Loss(total, parts)

    @torch.no_grad()
    def score(self, model: nn.Module, prepared: PreparedClips) -> Scores:
        """Scores of held-out clips (see `qkv.tasks.class_scores`) and frames (`frame_scores`)."""
        device, codec = next(model.parameters()).device, prepared.codec
        clips: list[tuple[np.ndarray, np.ndarray]] = []
        frames: list[tuple[np.ndarray, np.ndarray]] = []
        loss = 0.0
        for batch in prepared.dev:
            batch = batch.to(device)
            states = model(batch.images, batch.lengths)
            logits = model.of_clip(states, batch.lengths).double()
            loss += self.clip * float(class_loss(logits, batch.labels))
            clips.append((logits.softmax(1).cpu().numpy(), batch.labels.argmax(1).cpu().numpy()))
            if codec.frame_classes:
                logits, told = model.of_frames(states).double(), batch.frame_labels >= 0
                loss += self.frames * float(_frame_losses(logits, batch.frame_labels).sum())
                frames.append((logits[told].softmax(1).cpu().numpy(), batch.frame_labels[told].cpu().numpy()))
        chances, labels = map(np.concatenate, zip(*clips, strict=True))
        scores = {"loss": loss / len(labels)} | class_scores(chances, labels)
        if any(len(told) for _, told in frames):
            scores |= frame_scores(*map(np.concatenate, zip(*frames, strict=True)), codec.frame_classes)
        return Scores(scores)


def _frame_losses(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """Of each clip the mean over its labelled frames; 0 where none is."""
    told = labels >= 0
    losses = functional.cross_entropy(
        logits.float().transpose(1, 2), labels, ignore_index=-1, reduction="none", label_smoothing=smoothing
    )
    return losses.sum(1) / told.sum(1).clamp_min(1)
