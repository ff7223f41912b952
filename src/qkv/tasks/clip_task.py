"""What learning from clips has in common, whatever is said of them: data, codec, sizes, starting from another run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from qkv.data.clip_codec import ClipCodec
from qkv.data.clip_files import ClipFiles
from qkv.data.clip_prepare import PreparedClips, prepare_clips
from qkv.data.image_codec import ImageCodec
from qkv.models.saved import fill_but_head
from qkv.store import read_tensors
from qkv.tasks.settings import write_settings
from qkv.tasks.warmup import warmup

__all__ = ["ClipTask"]


class ClipTask:
    """A task whose data are clips; loss and score are for those that are made of it."""

    Data = ClipFiles
    models = ("video",)
    from_codec = ("classes", "frame_classes", "frames", "image")
    unit = "clips"

    codec: ClipCodec | None = None  # of the run, once its data are ready
    test = "clips/test"  # where clips to evaluate on are

    def prepare(self, data: ClipFiles, folder: Path, seed: int, codec: ClipCodec | None = None) -> PreparedClips:
        """List, check, split and decode the user's clips; see `qkv.data.clip_prepare`."""
        return prepare_clips(data, folder, seed, codec)

    def load_codec(self, folder: Path) -> ClipCodec:
        """The codec of a run that is gone on with."""
        return ClipCodec.load(folder)

    def codec_from(self, folder: Path) -> ClipCodec:
        """Of a run that this one starts from, how it reads clips; classes are those of the new data."""
        theirs = ClipCodec.load(folder)
        return replace(theirs, images=ImageCodec(theirs.images.preprocess), frame_classes=())

    def config(self, codec: ClipCodec, size: Any) -> Any:
        """The model's config with what only the codec knows."""
        self.codec = codec
        known = {
            "classes": codec.images.outputs,
            "frame_classes": len(codec.frame_classes),
            "frames": codec.frames,
            "image": codec.images.preprocess.size,
        }
        return replace(size, **known)

    def begin(self, run: Any, prepared: PreparedClips) -> list[str]:
        """Know the user's test; a hint where a class token is to find alone which frames matter (docs/video.md)."""
        self.test = run.data.test or run.data.dev or run.data.folder or self.test
        if prepared.codec.frame_classes or run.init or run.size.pool != "class":
            return []
        return ["no frame is labelled: if a few frames decide what a clip is, --size.pool max learns that much sooner"]

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """A Transformer's usual settings; the rate falls to 0 where the last step is known."""
        limits = {key: getattr(run.loop, key) for key in ("steps", "epochs", "minutes")}
        told = not any(limits.values()) or limits["steps"] or limits["epochs"]
        return {
            "optimize": {
                "lr": 3e-4 if run.init else 1e-3,
                "betas": [0.9, 0.999],
                "weight_decay": 0.05,
                "warmup": warmup(limits["steps"]),
                "schedule": "cosine" if told else "inverse-sqrt",
            },
            "loop": {"evaluate_every": 100} | ({} if any(limits.values()) else {"epochs": 50}),
        }

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """Take over all weights of a run of the same architecture but those of heads that say something else.

        Raises:
            RunError: weights do not fit.
        """
        theirs = ClipCodec.load(init / "codec")
        tensors, _ = read_tensors(init / "model.safetensors")
        others = {
            "head.": replace(theirs.images, preprocess=self.codec.images.preprocess) != self.codec.images,
            "frame_head.": theirs.frame_classes != self.codec.frame_classes,
        }
        dropped = tuple(head for head, other in others.items() if other)
        kept = {name: tensor for name, tensor in tensors.items() if not (dropped and name.startswith(dropped))}
        new = fill_but_head(model, kept, init / "model.safetensors")
        return [f"weights are those of {init}; " + (f"new are {', '.join(new)}" if new else "nothing is new")]

    def finish(self, model: nn.Module, prepared: PreparedClips, folder: Path) -> None:
        """Say what the run answers."""
        write_settings(folder, task=self.name, kind="clips")

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv {self.name} {folder} clip.gif",
            f"qkv look {folder} clip.gif --out film.html",
            f"qkv evaluate {folder} --data {self.test}",
        ]

    name: str
    higher_is_better: Mapping[str, bool]
