"""Which image model a table of published weights is, and its config, told by names and shapes alone.

What no shape shows is a ViT's number of heads: it is told by the width where published models agree, or asked for.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor

from qkv.errors import RunError
from qkv.models.mixer import MixerConfig
from qkv.models.mixer_names import mixer
from qkv.models.resnet import ResNetConfig
from qkv.models.resnet_names import resnet
from qkv.models.swin import SwinConfig
from qkv.models.swin_names import swin
from qkv.models.vit import ViTConfig
from qkv.models.vit_names import vit
from qkv.weights.names import Layout

__all__ = ["LAYOUTS", "ours_of", "recognise"]

LAYOUTS: dict[str, Callable[[str, Any], Layout]] = {"vit": vit, "swin": swin, "mixer": mixer, "resnet": resnet}

SIGNS = {  # a name that every model of this kind has, and no other; and whose names those are
    "blocks.0.attn.qkv.weight": ("vit", ("timm",)),
    "encoder.layers.encoder_layer_0.ln_1.weight": ("vit", ("torchvision",)),
    "vit.encoder.layer.0.layernorm_before.weight": ("vit", ("hf",)),
    "deit.encoder.layer.0.layernorm_before.weight": ("vit", ("hf",)),
    "Transformer/encoderblock_0/LayerNorm_0/scale": ("vit", ("npz",)),
    "layers.0.blocks.0.attn.qkv.weight": ("swin", ("timm",)),
    "features.1.0.attn.qkv.weight": ("swin", ("torchvision",)),
    "swin.encoder.layers.0.blocks.0.layernorm_before.weight": ("swin", ("hf",)),
    "blocks.0.mlp_tokens.fc1.weight": ("mixer", ("timm",)),
    "MixerBlock_0/LayerNorm_0/scale": ("mixer", ("npz",)),
    "layer1.0.conv1.weight": ("resnet", ("timm", "torchvision")),
    "resnet.encoder.stages.0.layers.0.layer.0.convolution.weight": ("resnet", ("hf",)),
    "module.layer1.0.conv1.weight": ("resnet", ("cifar",)),
}
FOREIGN = {  # parts of a name, and what the model does that ours does not
    r"\.ls1\.|lambda_1": "scales what its layers add (layer scale)",
    r"\.q_norm\.": "norms queries and keys",
    r"attn_pool\.": "pools by an attention of its own kind",
    r"reg_token": "has registers with positions",
    r"rel_pos|relative_position_bias_table": "has relative positions",
    r"norm_pre\.": "norms its patches",
    r"conv1\.0\.": "has a stem of several convolutions",
    r"\.se\.": "weighs channels (squeeze and excitation)",
}
HEADS = {192: 3, 384: 6, 768: 12, 1024: 16, 1280: 16, 1408: 16, 1664: 16}  # of published ViTs, by width
# Which names are there depends on a few things that the names themselves tell; stages that are not there do no harm.
STAGES = 8


def recognise(names: Iterable[str], origin: str, file: Any = None) -> str:
    """The model, as in `qkv.models.MODELS`, whose weights have these names.

    Raises:
        RunError: no model is known by such names, or they are of another origin.
    """
    names = set(names)
    for sign, (model, origins) in SIGNS.items():
        if sign not in names:
            continue
        if origin not in origins:
            raise RunError(f"these are the names of {origins[0]}", file=file, remedy=f"import it as {origins[0]}:...")
        _refuse_foreign(names, model, file)
        return model
    raise RunError(
        f"no image model is known whose weights are called {', '.join(sorted(names)[:3])} ...",
        file=file,
        expected="a ViT, DeiT, Swin, MLP-Mixer or ResNet of timm, torchvision, Hugging Face or the original release",
    )


def ours_of(
    model: str,
    origin: str,
    theirs: Mapping[str, Tensor],
    heads: int | None = None,
    image: tuple[int, int] | None = None,
) -> tuple[Any, dict[str, Tensor]]:
    """The config that published tensors tell, and the tensors by our names.

    Args:
        heads: of a ViT, where neither its width nor its tensors tell.
        image: height and width that positions or tokens are for; a square if not given.

    Raises:
        RunError: names are missing or unknown, or the shapes are of no model of ours.
    """
    known = PRELIMINARY[model](theirs)
    ours = LAYOUTS[model](origin, known).load(theirs)
    kernel = "Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel"
    heads = theirs[kernel].shape[1] if kernel in theirs else heads
    try:
        match model:
            case "vit":
                config = _vit(ours, known, heads, image)
            case "swin":
                config = _swin(ours)
            case "mixer":
                config = _mixer(ours, image)
            case "resnet":
                config = _resnet(ours)
    except KeyError as error:
        raise RunError(f"weights that do not fit the model: missing what we call {error}") from None
    return config, ours


def _of_vit(theirs: Mapping[str, Tensor]) -> ViTConfig:
    distilled = any(name.endswith(("dist_token", "distillation_token")) for name in theirs)
    return ViTConfig(pool="mean" if "fc_norm.weight" in theirs else "class", distilled=distilled)


PRELIMINARY = {
    "vit": _of_vit,
    "swin": lambda theirs: SwinConfig(depths=(1,) * STAGES, heads=(1,) * STAGES),
    "mixer": lambda theirs: MixerConfig(),
    "resnet": lambda theirs: ResNetConfig(widths=(1,) * STAGES, depths=(1,) * STAGES),
}


def _vit(ours: Mapping[str, Tensor], known: ViTConfig, heads: int | None, image: tuple[int, int] | None) -> ViTConfig:
    dim, _, patch, _ = ours["patches.patch.projection.weight"].shape
    first = ours["patches.first.table"].shape[1] if "patches.first.table" in ours else 0
    if heads is None and dim not in HEADS:
        raise RunError(f"how many heads a ViT of width {dim} has cannot be seen in its weights", remedy="give --heads")
    return ViTConfig(
        classes=_classes(ours),
        image=_image(ours["patches.position.table"].shape[1] - first, patch, image, first),
        patch=patch,
        dim=dim,
        depth=_count(ours, r"blocks\.(\d+)\."),
        heads=heads or HEADS[dim],
        hidden=len(ours["blocks.0.feed_forward.expand.weight"]),
        pool=known.pool,
        class_token=first > 0,
        distilled=known.distilled,
        prelogits=len(ours.get("head.hidden.bias", ())),
    )


def _swin(ours: Mapping[str, Tensor]) -> SwinConfig:
    dim, _, patch, _ = ours["patches.projection.weight"].shape
    stages = range(_count(ours, r"stages\.(\d+)\."))
    tables = [ours[f"stages.{stage}.blocks.0.attention.bias.table"] for stage in stages]
    windows = {(math.isqrt(len(table)) + 1) // 2 for table in tables}
    if len(windows) > 1:
        raise RunError(f"stages have windows of {' and '.join(map(str, sorted(windows)))}", expected="one for all")
    return SwinConfig(
        classes=_classes(ours),
        patch=patch,
        window=windows.pop(),
        dim=dim,
        depths=tuple(_count(ours, rf"stages\.{stage}\.blocks\.(\d+)\.") for stage in stages),
        heads=tuple(table.shape[1] for table in tables),
        ratio=len(ours["stages.0.blocks.0.feed_forward.expand.weight"]) // dim,
    )


def _mixer(ours: Mapping[str, Tensor], image: tuple[int, int] | None) -> MixerConfig:
    dim, _, patch, _ = ours["patches.projection.weight"].shape
    token_hidden, tokens = ours["blocks.0.mixing.mlp.expand.weight"].shape
    return MixerConfig(
        classes=_classes(ours),
        image=_image(tokens, patch, image),
        patch=patch,
        dim=dim,
        depth=_count(ours, r"blocks\.(\d+)\."),
        token_hidden=token_hidden,
        channel_hidden=len(ours["blocks.0.feed_forward.expand.weight"]),
    )


def _resnet(ours: Mapping[str, Tensor]) -> ResNetConfig:
    stages = range(_count(ours, r"stages\.(\d+)\."))
    stem = ours["stem.first.convolution.weight"]
    return ResNetConfig(
        classes=_classes(ours),
        block="bottleneck" if "stages.0.0.third.convolution.weight" in ours else "basic",
        stem="large" if stem.shape[-1] > 3 else "small",
        shortcut="projected" if any("shortcut" in name for name in ours) else "padded",
        stem_width=len(stem),
        widths=tuple(len(ours[f"stages.{stage}.0.first.convolution.weight"]) for stage in stages),
        depths=tuple(_count(ours, rf"stages\.{stage}\.(\d+)\.") for stage in stages),
    )


def _classes(ours: Mapping[str, Tensor]) -> int:
    return len(ours.get("head.output.bias", ()))


def _count(ours: Iterable[str], pattern: str) -> int:
    """How many numbers stand in the place of the pattern, from 0."""
    return 1 + max(int(match[1]) for name in ours if (match := re.match(pattern, name)))


def _image(cells: int, patch: int, image: tuple[int, int] | None, first: int = 0) -> tuple[int, int]:
    """Height and width of the image that has so many patches."""
    side = math.isqrt(cells)
    image = image or (side * patch, side * patch)
    if image[0] // patch * (image[1] // patch) == cells:
        return image
    if first and math.isqrt(cells + first) ** 2 == cells + first:
        raise RunError("its first tokens have no position", expected="a position for each, as in the paper")
    raise RunError(
        f"there are {cells} patches, which an image of {image[0]} x {image[1]} pixels has not",
        remedy="give its height and width: --image 224x288",
    )


def _refuse_foreign(names: Iterable[str], model: str, file: Any) -> None:
    for pattern, what in FOREIGN.items():
        if model == "swin" and "relative_position" in pattern:
            continue
        if found := sorted(name for name in names if re.search(pattern, name)):
            raise RunError(f"the model {what}, as {found[0]!r} says, and ours does not", file=file)
