"""What a picture model's numbers mean, as one folder that travels with it: the classes, and the preprocessing."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from qkv.data.classes import Label
from qkv.data.preprocess import Preprocess
from qkv.data.targets import Targets
from qkv.errors import RunError

__all__ = ["ImageCodec"]

FILE = "codec.json"


@dataclass(frozen=True)
class ImageCodec:
    """Labels to numbers and back, and pictures to numbers.

    ``classes`` are the names of the outputs, in their order; none for numbers. ``labels`` is what a picture has: one
    class, ``several``, or a ``number``, which is learned as ``(number - centre) / spread``.
    """

    preprocess: Preprocess
    classes: tuple[str, ...] = ()
    labels: Literal["class", "several", "number"] = "class"
    centre: float = 0.0
    spread: float = 1.0

    @property
    def targets(self) -> Targets:
        """The classes, or the scale of the numbers."""
        return Targets(self.classes, self.labels, self.centre, self.spread)

    @property
    def outputs(self) -> int:
        """How many numbers the model says of a picture."""
        return self.targets.outputs

    def encode(self, labels: Sequence[Label]) -> Float[Tensor, "image output"]:
        """What is to be learned; see `Targets.encode`."""
        return self.targets.encode(labels)

    def decode(self, outputs: Float[Tensor, "image output"]) -> list[str] | list[float]:
        """The class of the largest output of each picture, or its number; see `Targets.decode`."""
        return self.targets.decode(outputs)

    def save(self, folder: Path) -> None:
        """Write ``codec.json`` and ``preprocess.json`` into ``folder``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.preprocess.save(folder)
        (folder / FILE).write_text(json.dumps(self._plain(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ImageCodec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        folder = Path(folder)
        try:
            plain = json.loads((folder / FILE).read_text(encoding="utf-8"))
            if (plain.pop("version"), plain.pop("kind")) != (1, "images"):
                raise ValueError("it is no codec of pictures, version 1")
            plain["classes"] = tuple(plain["classes"])
            if plain["labels"] not in ("class", "several", "number"):
                raise ValueError(f"labels are {plain['labels']!r}")
            return cls(Preprocess.load(folder), **plain)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the codec cannot be read ({error})",
                expected="codec.json and preprocess.json",
                remedy="copy the whole run folder again",
                file=folder,
            ) from error

    def fingerprint(self) -> str:
        """Equal for equal codecs."""
        whole = json.dumps([self._plain(), repr(self.preprocess)], sort_keys=True)
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()

    def _plain(self) -> dict:
        return {
            "version": 1,
            "kind": "images",
            "labels": self.labels,
            "classes": list(self.classes),
            "centre": self.centre,
            "spread": self.spread,
        }
