"""What learning from pictures has in common, whatever is said of them: data, codec, sizes, where it starts."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from qkv.data.image_codec import ImageCodec
from qkv.data.image_files import ImageFiles
from qkv.data.image_prepare import PreparedImages, prepare_images
from qkv.data.preprocess import Preprocess
from qkv.errors import ConfigError
from qkv.layers.position import LearnedGrid
from qkv.models.saved import fill_but_head, load_model
from qkv.tasks.picture_recipe import described, traps

__all__ = ["PictureTask"]

OUTPUTS = ("head.output.", "distilled_head.output.")


class PictureTask:
    """A task whose data are pictures; loss, score and answer are for those that are made of it."""

    Data = ImageFiles
    models = ("vit", "swin", "mixer", "resnet", "resnet-attention", "local-attention")
    from_codec = ("classes", "image")
    unit = "pictures"

    codec: ImageCodec | None = None  # of the run, once its data are ready
    own = ""  # the name of its model
    test = "photos/test"  # where pictures to evaluate on are

    def prepare(
        self, data: ImageFiles, folder: Path, seed: int, codec: ImageCodec | Preprocess | None = None
    ) -> PreparedImages:
        """List, check, split and decode the user's pictures; see `qkv.data.image_prepare`."""
        return prepare_images(data, folder, seed, codec)

    def load_codec(self, folder: Path) -> ImageCodec:
        """The codec of a run that is gone on with."""
        return ImageCodec.load(folder)

    def codec_from(self, folder: Path) -> Preprocess:
        """Of a run that this one starts from, how it sees pictures; classes are those of the new data."""
        return ImageCodec.load(folder).preprocess

    def config(self, codec: ImageCodec, size: Any) -> Any:
        """The model's config with its outputs, and the image where it is made for one."""
        known = {"classes": codec.outputs, "image": codec.preprocess.size}
        own = {field.name for field in fields(size)}
        return replace(size, **{key: value for key, value in known.items() if key in own})

    def begin(self, run: Any, prepared: PreparedImages) -> list[str]:
        """Know the classes; say which recipe it is, and its traps."""
        self.codec, self.own = prepared.codec, run.model
        self.test = run.data.test or run.data.dev or run.data.folder or self.test
        pictures = len(prepared.train.images)
        return [described(run, pictures), *traps(run, pictures, prepared.codec.preprocess.size)]

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """Take over all weights of a run of the same architecture but the head's, where it says something else.

        Positions on another grid are resampled by the rule of the weights' origin.

        Raises:
            ConfigError: the other model is made for one image, and this one for another.
            RunError: weights do not fit.
        """
        old, theirs = load_model(init, own=self.own), ImageCodec.load(init / "codec")
        tensors, told = dict(old.state_dict()), []
        for name, module in model.named_modules():
            if isinstance(module, LearnedGrid) and (before := old.get_submodule(name)).grid != module.grid:
                tensors[f"{name}.table"] = before(*module.grid).detach()
                sides = [f"{grid[0]} x {grid[1]}" for grid in (before.grid, module.grid)]
                told.append(f"{name} is resampled from {sides[0]} to {sides[1]} cells, by the rule of {before.rule}")
        image = getattr(old.config, "image", None)
        if not told and image != getattr(model.config, "image", None):
            raise ConfigError(
                f"the {self.own} of {init} keeps to its image of {image[0]} x {image[1]} pixels, and the new one is "
                f"{model.config.image[0]} x {model.config.image[1]}",
                remedy="leave --data.size out, or start from a ViT or Swin",
            )
        if not _same(theirs, self.codec):
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(OUTPUTS)}
        new = fill_but_head(model, tensors, init / "model.safetensors")
        what = f"new are {', '.join(new)}, for {_said(self.codec)} instead of {_said(theirs)}" if new else "nothing new"
        return [f"weights are those of {init}; {what}", *told]

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv {self.name} {folder} photo.jpg",
            f"qkv look {folder} photo.jpg --out look.html",
            f"qkv evaluate {folder} --data {self.test} --page worst.html",
        ]

    name: str
    higher_is_better: Mapping[str, bool]


def _same(one: ImageCodec, other: ImageCodec) -> bool:
    """Whether the outputs of two models say the same thing."""
    return replace(one, preprocess=other.preprocess) == other


def _said(codec: ImageCodec) -> str:
    if codec.labels == "number":
        return "a number"
    few = ", ".join(codec.classes[:3]) + (" ..." if len(codec.classes) > 3 else "")
    return f"{len(codec.classes)} classes ({few})"
