"""Learning to tell a number of a clip: how many, how fast, how long."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from qkv.data.clip_batches import ClipBatch
from qkv.data.clip_codec import ClipCodec
from qkv.data.image_codec import ImageCodec
from qkv.errors import ConfigError
from qkv.tasks.clip_task import ClipTask
from qkv.tasks.tells_number import TellsNumber

__all__ = ["RegressClips"]


class RegressClips(TellsNumber, ClipTask):
    """Train a model to tell a number of a clip, learned as (number - mean) / deviation of the training clips."""

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        return {**ClipTask.recipe(run), "data": {"labels": "number"}}

    def config(self, codec: ClipCodec, size: Any) -> Any:
        if codec.images.labels != "number":
            raise ConfigError("the labels are classes", expected="numbers", remedy="use qkv train classify")
        return super().config(codec, size)

    def outputs(self, model: nn.Module, batch: ClipBatch) -> Float[Tensor, "clip 1"]:
        return model.of_clip(model(batch.images, batch.lengths), batch.lengths)

    def numbers(self, codec: ClipCodec) -> ImageCodec:
        return codec.images
