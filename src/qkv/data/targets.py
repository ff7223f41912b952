"""Labels to numbers and back: what a classifier of pictures, clips or texts is to say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.data.classes import Label
from qkv.errors import DataError, nearest

__all__ = ["Targets"]


@dataclass(frozen=True)
class Targets:
    """``classes`` are the names of the outputs, in their order; none for numbers. ``labels`` is what an example has:
    one class, ``several``, or a ``number``, which is learned as ``(number - centre) / spread``.
    """

    classes: tuple[str, ...] = ()
    labels: Literal["class", "several", "number"] = "class"
    centre: float = 0.0
    spread: float = 1.0

    @property
    def outputs(self) -> int:
        """How many numbers the model says of an example."""
        return len(self.classes) or 1

    def encode(self, labels: Sequence[Label]) -> Float[Tensor, "example output"]:
        """What is to be learned: 1 for each class that an example has and 0 for the others, or its scaled number.

        Raises:
            DataError: a class that is not among ``classes``.
        """
        if self.labels == "number":
            return ((torch.tensor(labels, dtype=torch.float64) - self.centre) / self.spread).float().reshape(-1, 1)
        place = {name: i for i, name in enumerate(self.classes)}
        encoded = torch.zeros(len(labels), self.outputs)
        for row, label in zip(encoded, labels, strict=True):
            for name in (label,) if isinstance(label, str) else label:
                if name not in place:
                    raise DataError(f"there is no class {name!r}", remedy=nearest(name, self.classes))
                row[place[name]] = 1
        return encoded

    def decode(self, outputs: Float[Tensor, "example output"]) -> list[str] | list[float]:
        """The class of the largest output of each example, or its number in the user's units.

        With several labels, see ``classes`` and each output: where to cut is not for this to say.
        """
        if self.labels == "number":
            return (outputs[:, 0].double() * self.spread + self.centre).tolist()
        return [self.classes[i] for i in outputs.argmax(1).tolist()]
