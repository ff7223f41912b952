"""Learning to tell a number of a picture: an age, a weight, a share."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from qkv.data.image_batches import ImageBatch
from qkv.data.image_prepare import PreparedImages
from qkv.errors import ConfigError
from qkv.tasks.picture_recipe import recipe
from qkv.tasks.picture_task import PictureTask
from qkv.tasks.tells_number import TellsNumber

__all__ = ["RegressPictures"]


class RegressPictures(TellsNumber, PictureTask):
    """Train a model to tell a number of a picture, learned as (number - mean) / deviation of the training pictures."""

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """Settings that suit the model and the pictures; see `qkv.tasks.picture_recipe`."""
        return recipe(run, "number")

    def prepare(self, data, folder, seed, codec=None) -> PreparedImages:
        """As of every picture task; labels must be numbers."""
        if data.labels != "number":
            raise ConfigError(f"data.labels is {data.labels!r}", expected="number", remedy="use qkv train classify")
        return super().prepare(data, folder, seed, codec)

    def outputs(self, model: nn.Module, batch: ImageBatch) -> Float[Tensor, "picture 1"]:
        return model(batch.images)
