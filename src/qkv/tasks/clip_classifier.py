"""Clip in, class (or number) and marked frames out: what a trained run of clips does."""

import base64
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import nn

from qkv.data.clip_batches import stack
from qkv.data.clip_codec import ClipCodec
from qkv.data.clip_sources import Clip, open_clip, why
from qkv.data.frame_labels import BACKGROUND
from qkv.data.lines import windows
from qkv.data.pictures import UNREADABLE, PictureError
from qkv.look.record import Trace
from qkv.look.trace import position_maps, trace
from qkv.models.saved import load_model

__all__ = ["ClipAnswer", "ClipClassifier"]


@dataclass(frozen=True)
class ClipAnswer:
    """What a model says of a clip.

    ``label`` is its class, or its number in the unit of the training data; None where ``mark`` says why there is none.
    ``probabilities`` are of every class, the likeliest first; none for a number. ``times`` begin the frames that were
    read, in seconds; ``frames`` are their classes, with ``frame_probabilities`` of each, where the model tells them.
    """

    clip: str
    label: str | float | None = None
    probabilities: dict[str, float] | None = None
    times: tuple[float, ...] = ()
    frames: tuple[str, ...] = ()
    frame_probabilities: tuple[float, ...] = ()
    mark: str = ""

    @property
    def spans(self) -> tuple[tuple[float, float, str], ...]:
        """The marked stretches: times of the first and last frame read, and the class."""
        found: list[tuple[float, float, str]] = []
        before = BACKGROUND
        for time, name in zip(self.times, self.frames, strict=bool(self.frames)):
            if name != BACKGROUND:
                found[len(found) - (name == before) :] = [(found[-1][0] if name == before else time, time, name)]
            before = name
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """As plain data, without what is not told."""
        return {key: value for key, value in asdict(self).items() if value not in (None, (), "")}

    def __str__(self) -> str:
        if self.mark:
            return f"-- {self.mark}"
        if not self.probabilities:
            return f"{self.label:g}"
        spans = ", ".join(f"{name}: {begin:g} to {end:g} s" for begin, end, name in self.spans)
        return f"{self.label}  {self.probabilities[self.label]:.3f}" + (f"  {spans}" if spans else "")


class ClipClassifier:
    """A trained model of clips with its codec."""

    def __init__(self, model: nn.Module, codec: ClipCodec, folder: Path | None = None):
        self.model, self.codec, self.folder = model.eval(), codec, folder
        self.device = next(model.parameters()).device
        self.counts: Counter[str] = Counter()

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None) -> "ClipClassifier":
        folder = Path(folder)
        return cls(load_model(folder, device=device or "cpu"), ClipCodec.load(folder / "codec"), folder)

    def __call__(self, clip: Path | str) -> ClipAnswer:
        """What the model says of a clip: a folder of frames, an animation, or a video.

        Raises:
            DataError: it cannot be read, or has no frame.
        """
        return self.answer([self._read(Path(clip))], [str(clip)])[0]

    def answers(self, clips: Iterable[Path | str | Clip], batch: int = 8) -> Iterator[ClipAnswer]:
        """An answer for each clip, in order; one that cannot be read has a mark. ``counts`` adds them up."""
        with ThreadPoolExecutor(4) as pool:
            for some in windows(clips, batch):
                read = list(pool.map(self._read_or_why, some))
                good = [i for i, one in enumerate(read) if not isinstance(one, str)]
                names = [str(_path(one)) for one in some]
                said = dict(zip(good, self.answer([read[i] for i in good], [names[i] for i in good]), strict=True))
                for i, name in enumerate(names):
                    self.counts["clips"] += 1
                    self.counts["unreadable"] += i not in said
                    yield said.get(i) or ClipAnswer(name, mark=read[i])

    @torch.inference_mode()
    def answer(
        self, clips: Sequence[tuple[UInt8[np.ndarray, "frame row column 3"], list[float]]], names: Sequence[str]
    ) -> list[ClipAnswer]:
        """What the model says of clips that were read (`ClipCodec.read`)."""
        if not clips:
            return []
        images, lengths = (tensor.to(self.device) for tensor in stack([frames for frames, _ in clips], self.codec))
        states = self.model(images, lengths)
        outputs = self.model.of_clip(states, lengths).float().cpu()
        labels = self.codec.images.decode(outputs)
        found = [
            ClipAnswer(name, label, times=tuple(times))
            for name, label, (_, times) in zip(names, labels, clips, strict=True)
        ]
        if self.codec.images.labels == "class":
            for i, chances in enumerate(outputs.double().softmax(1).tolist()):
                order = sorted(zip(chances, self.codec.images.classes, strict=True), key=lambda one: -one[0])
                found[i] = replace(found[i], probabilities={name: chance for chance, name in order})
        if self.codec.frame_classes:
            best, which = self.model.of_frames(states).float().softmax(-1).cpu().max(-1)
            for i, answer in enumerate(found):
                count = len(answer.times)
                said = tuple(self.codec.frame_classes[place] for place in which[i, :count].tolist())
                found[i] = replace(answer, frames=said, frame_probabilities=tuple(best[i, :count].tolist()))
        return found

    def look(self, clip: Path | str | Clip, layers: str | Sequence[str] = "blocks.*", **which: Any) -> Trace:
        """What the model looks at in a clip: over frames by default, with ``layers="*"`` inside each frame too.

        The trace's notes hold the frames as they were shown (``film``, PNG in base64), and the answer. ``which`` goes
        to `qkv.trace`.
        """
        frames, times = read = self._read(clip)
        images, lengths = (tensor.to(self.device) for tensor in stack([frames], self.codec))
        axes = self.model.axes(images, lengths, torch.tensor([times]))
        with torch.inference_mode(), trace(self.model, layers=layers, axes=axes, **which) as seen:
            self.model(images, lengths)
        seen.maps.update(position_maps(self.model, axes, layers).maps)
        answer = self.answer([read], [str(_path(clip))])[0]
        seen.notes.update(
            shows="film", film=[_png(pixels) for pixels in frames], answer=answer.to_json(), run=str(self.folder or "")
        )
        return seen

    def _read(self, clip: Path | str | Clip) -> tuple[UInt8[np.ndarray, "frame row column 3"], list[float]]:
        clip = open_clip(Path(clip), self.codec.rate) if isinstance(clip, (Path, str)) else clip
        frames, times = self.codec.read(clip)
        if not len(frames):
            expected = "a folder of pictures, or a video"
            raise PictureError(UNREADABLE, "there is no frame", expected=expected, file=clip.path)
        return frames, times

    def _read_or_why(self, clip: Path | str | Clip):
        try:
            return self._read(clip)
        except PictureError as error:
            return why(error, _path(clip))


def _path(clip: Path | str | Clip) -> Path:
    return Path(clip) if isinstance(clip, (Path, str)) else clip.path


def _png(pixels: UInt8[np.ndarray, "row column 3"]) -> str:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()
