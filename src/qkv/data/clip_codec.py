"""What a clip model's numbers mean, as one folder that travels with it: how frames are read, the classes of clips and
of frames."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from qkv.data.clip_sources import Clip, read
from qkv.data.image_codec import ImageCodec
from qkv.errors import DataError, RunError, nearest

__all__ = ["ClipCodec"]

FILE = "clips.json"


@dataclass(frozen=True)
class ClipCodec:
    """Clips to numbers and back.

    Args:
        images: the classes of a clip, or its number, and the preprocessing of each frame.
        frames: most frames read of a clip.
        rate: frames a second of folders of pictures.
        frame_classes: classes of single frames, the one that marks nothing first; none if they have no labels.
    """

    images: ImageCodec
    frames: int = 16
    rate: float = 1.0
    frame_classes: tuple[str, ...] = ()

    def read(self, clip: Clip) -> tuple[UInt8[np.ndarray, "frame row column 3"], list[float]]:
        """The frames that the model reads, as it is shown them, and their times. Raises PictureError."""
        frames, times = read(clip, self.frames)
        height, width = self.images.preprocess.size
        shown = [self.images.preprocess.shown(pixels) for pixels in frames]
        return np.stack(shown) if shown else np.empty((0, height, width, 3), np.uint8), times

    def encode_frames(self, labels: Sequence[str] | None, count: int) -> Int[Tensor, "frame"]:
        """The class of each of ``count`` frames; -1 where it is not told."""
        if labels is None:
            return torch.full((count,), -1)
        place = {name: i for i, name in enumerate(self.frame_classes)}
        if missing := [name for name in labels if name not in place]:
            raise DataError(f"frames have no class {missing[0]!r}", remedy=nearest(missing[0], place))
        return torch.tensor([place[name] for name in labels], dtype=torch.int64)

    def save(self, folder: Path) -> None:
        """Write ``clips.json`` and what `ImageCodec.save` writes into ``folder``."""
        self.images.save(folder)
        (Path(folder) / FILE).write_text(json.dumps(self._plain(), ensure_ascii=False, indent=1) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ClipCodec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        file = Path(folder) / FILE
        try:
            plain = json.loads(file.read_text(encoding="utf-8"))
            classes = tuple(plain["frame_classes"])
            return cls(ImageCodec.load(folder), int(plain["frames"]), float(plain["rate"]), classes)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the codec of clips cannot be read ({error})", remedy="copy the whole run folder again", file=file
            ) from error

    def fingerprint(self) -> str:
        """Equal for equal codecs."""
        whole = json.dumps([self._plain(), self.images.fingerprint()], sort_keys=True)
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()

    def _plain(self) -> dict:
        return {"frames": self.frames, "rate": self.rate, "frame_classes": list(self.frame_classes)}
