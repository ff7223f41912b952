"""What published image models say beside their weights, both ways: ``config.json`` and how pictures are prepared.

timm's ``config.json`` holds it all (``pretrained_cfg``); Hugging Face's has a ``preprocessor_config.json`` beside it.
A file of weights alone says nothing: `assumed` then takes what its origin does with all models of the kind, and asks
where that differs.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import IMAGENET, Preprocess
from qkv.errors import ConfigError, RunError

__all__ = [
    "SCALING", "assumed", "heads_told", "hf_config", "hf_preprocess", "hf_preprocessor", "image_told", "read_hf",
    "sides", "timm_config", "timm_preprocess",
]  # fmt: skip

HALF = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
SCALING = {"imagenet": IMAGENET, "half": HALF}
PILLOW = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # as Hugging Face numbers them
NUMBERS = {name: number for number, name in PILLOW.items()}

HF = {  # model -> their key and our field; what shapes tell is compared, the others are taken
    "vit": {
        "hidden_size": "dim", "num_hidden_layers": "depth", "num_attention_heads": "heads",
        "intermediate_size": "hidden", "patch_size": "patch", "image_size": "image", "layer_norm_eps": "eps",
    },
    "swin": {
        "embed_dim": "dim", "depths": "depths", "num_heads": "heads", "window_size": "window", "patch_size": "patch",
        "mlp_ratio": "ratio", "layer_norm_eps": "eps",
    },
    "resnet": {"embedding_size": "stem_width", "depths": "depths", "layer_type": "block"},
}  # fmt: skip
OURS_ALWAYS = {  # what a config must say, where it says anything
    "num_channels": 3, "qkv_bias": True, "use_absolute_embeddings": False, "encoder_stride": None,
    "downsample_in_first_stage": False, "downsample_in_bottleneck": False, "patch_norm": True,
}  # fmt: skip
ACTIVATION = {"vit": "gelu", "swin": "gelu", "resnet": "relu"}


def read_hf(model: str, config: Mapping[str, Any], ours: Any) -> Any:
    """Our config with what only theirs tells (heads, eps, the image); what both tell must agree.

    Raises:
        RunError: they differ, or the model does something that ours does not.
    """
    for key, value in {**OURS_ALWAYS, "hidden_act": ACTIVATION[model]}.items():
        if value is not None and config.get(key, value) != value:
            raise RunError(f"config.json says {key} = {config[key]}, which ours does not do", expected=str(value))
    told = {}
    for key, field in HF[model].items():
        value = config.get(key)
        if value is None:
            continue
        if field == "image":
            value = (value, value) if isinstance(value, int) else tuple(value)
        value = tuple(value) if isinstance(value, list) else value
        if field in ("heads", "eps", "image"):
            told[field] = value
        elif value != getattr(ours, field):
            raise RunError(f"config.json says {key} = {value}, and the weights say {getattr(ours, field)}")
    if model == "swin" and told.get("eps", ours.eps) != ours.eps:
        raise RunError(f"config.json says layer_norm_eps = {told['eps']} for some norms only", expected=f"{ours.eps}")
    return dataclasses.replace(ours, **told, **({"resampling": "hf"} if model == "vit" else {}))


def heads_told(about: Mapping[str, Any]) -> int | None:
    """A ViT's heads, of either ``config.json``."""
    heads = about.get("num_attention_heads", (about.get("model_args") or {}).get("num_heads"))
    return heads if isinstance(heads, int) else None


def image_told(about: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width that the model is for, of either ``config.json``."""
    args, told = about.get("model_args") or {}, about.get("pretrained_cfg", about)
    size = about.get("image_size") or args.get("img_size") or (told["input_size"][1:] if "input_size" in told else None)
    return size and ((size, size) if isinstance(size, int) else tuple(size))


def sides(text: str) -> tuple[int, int]:
    """``224x288`` as numbers."""
    height, _, width = text.partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise ConfigError(f"--image is {text!r}", expected="height and width in pixels, such as 224x288")
    return int(height), int(width)


def timm_preprocess(about: Mapping[str, Any]) -> Preprocess:
    """How pictures are prepared, of timm's ``config.json``."""
    told = about.get("pretrained_cfg", about)
    if (mode := told.get("crop_mode", "center")) not in ("center", "squash"):
        raise RunError(f"config.json says crop_mode = {mode!r}", expected="center or squash")
    size = tuple(told["input_size"][1:])
    return Preprocess(
        size,
        told["crop_pct"],
        tuple(told["mean"]),
        tuple(told["std"]),
        told.get("interpolation", "bicubic"),
        stretch=mode == "squash",
    )


def hf_preprocess(config: Mapping[str, Any]) -> Preprocess:
    """How pictures are prepared, of Hugging Face's ``preprocessor_config.json``.

    Raises:
        RunError: they are prepared in a way that ours does not know.
    """
    size, kind = config.get("size"), config.get("image_processor_type", config.get("feature_extractor_type", ""))
    if not config.get("do_resize", True):
        raise RunError("preprocessor_config.json does not resize pictures", expected="do_resize true")
    if config.get("do_rescale", True) and abs(config.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        raise RunError(f"preprocessor_config.json says rescale_factor = {config['rescale_factor']}", expected="1/255")
    stretch = not (isinstance(size, Mapping) and "shortest_edge" in size)
    resized = _sides(size)
    if kind.startswith("ConvNext"):
        cut, stretch = resized, resized[0] >= 384  # by its rule large pictures are stretched, and not cut
        if not stretch:
            resized = [int(side / config.get("crop_pct", 224 / 256)) for side in cut]
    elif config.get("do_center_crop", False):
        cut = _sides(config["crop_size"])
    elif stretch:
        cut = resized
    else:
        raise RunError("preprocessor_config.json leaves pictures of several shapes", expected="a height and a width")
    scale = {"mean": config["image_mean"], "std": config["image_std"]} if config.get("do_normalize", True) else PLAIN
    return Preprocess(
        tuple(cut),
        _share(cut, resized),
        tuple(scale["mean"]),
        tuple(scale["std"]),
        PILLOW.get(config.get("resample", 2), "bilinear"),
        stretch=stretch,
    )


def assumed(model: str, origin: str, config: Any, scaling: str | None) -> Preprocess:
    """How pictures are prepared for weights that come alone.

    Raises:
        RunError: ViTs of this origin were trained with different scaling of pixels, and nothing says which.
    """
    image = getattr(config, "image", None) or _image_of(config)
    scale = SCALING.get(scaling or "")
    if origin == "hf" and scale:
        return Preprocess(image, 1.0, **scale, interpolation="bilinear", stretch=True)
    match model, origin:
        case _, "hf":
            raise RunError(
                "there is no preprocessor_config.json to say how pixels are scaled",
                remedy="give --scaling half or --scaling imagenet",
            )
        case _, "npz":
            return Preprocess(image, 1.0, **(scale or HALF), interpolation="bilinear", antialias=False, stretch=True)
        case _, "cifar":
            return Preprocess((32, 32), 1.0, **(scale or IMAGENET))
        case _, "torchvision":
            swin = model == "swin"
            crop = _share(image, [round(side * (232 if swin else 256) / 224) for side in image])
            return Preprocess(image, crop, **(scale or IMAGENET), interpolation="bicubic" if swin else "bilinear")
        case "mixer", _:
            return Preprocess(image, 0.875, **(scale or HALF))
        case "resnet", _:
            return Preprocess(image, 0.875, **(scale or IMAGENET))
        case "swin", _:
            return Preprocess(image, 0.9, **(scale or IMAGENET))
    if scale is None and not config.distilled:
        raise RunError(
            "nothing beside the weights says how pixels were scaled, and ViTs of this shape were trained with mean and "
            "deviation 0.5 as well as with those of ImageNet",
            remedy="give --scaling half (the ViTs of Google and timm) or --scaling imagenet (DeiT), or a folder with "
            "config.json",
        )
    return Preprocess(image, 0.9, **(scale or IMAGENET))


def hf_config(model: str, config: Any, codec: ImageCodec) -> dict[str, Any]:
    """Hugging Face's ``config.json`` for our config."""
    kind = "deit" if getattr(config, "distilled", False) else model
    classes = dict(enumerate(codec.classes))
    name = {
        "vit": "ViTForImageClassification", "deit": "DeiTForImageClassificationWithTeacher",
        "swin": "SwinForImageClassification", "resnet": "ResNetForImageClassification",
    }[kind]  # fmt: skip
    told = {key: getattr(config, field) for key, field in HF[model].items()}
    if model == "vit":
        height, width = config.image
        told["image_size"] = height if height == width else [height, width]
    if model == "swin":
        told["image_size"] = codec.preprocess.size[0]
    if model == "resnet":
        wider = 4 if config.block == "bottleneck" else 1
        told["hidden_sizes"] = [wider * width for width in config.widths]
    return {
        "architectures": [name],
        "model_type": kind,
        **told,
        **({"hidden_dropout_prob": config.dropout} if model != "resnet" else {}),
        "hidden_act": ACTIVATION[model],
        "num_channels": 3,
        "id2label": {str(i): each for i, each in classes.items()},
        "label2id": {each: i for i, each in classes.items()},
        "problem_type": "multi_label_classification" if codec.labels == "several" else "single_label_classification",
    }


def hf_preprocessor(prepare: Preprocess) -> dict[str, Any]:
    """Hugging Face's ``preprocessor_config.json`` for our preprocessing.

    Raises:
        RunError: none of its processors does that.
    """
    rows, columns = prepare.size
    resized = [int(side / prepare.crop) for side in prepare.size]
    if not prepare.stretch and rows != columns:
        raise RunError("Hugging Face has no processor that keeps a picture's shape and cuts a rectangle out of it")
    cut = {"do_center_crop": True, "crop_size": {"height": rows, "width": columns}}
    whole = {"size": {"height": resized[0], "width": resized[1]}}
    if not prepare.stretch:
        kind = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": resized[0]}, **cut}
    elif resized == [rows, columns]:
        kind = {"image_processor_type": "ViTImageProcessor", **whole}
    else:
        kind = {"image_processor_type": "DeiTImageProcessor", **whole, **cut}
    return {
        **kind,
        "do_resize": True, "resample": NUMBERS[prepare.interpolation], "do_rescale": True, "rescale_factor": 1 / 255,
        "do_normalize": True, "image_mean": list(prepare.mean), "image_std": list(prepare.std),
    }  # fmt: skip


def timm_config(model: str, config: Any, codec: ImageCodec) -> dict[str, Any]:
    """timm's ``config.json`` for our config: an architecture of its own, and in what ours is another."""
    prepare = codec.preprocess
    match model:
        case "vit":
            name = "deit_base_distilled_patch16_224" if config.distilled else "vit_base_patch16_224"
            args = {
                "img_size": list(config.image), "patch_size": config.patch, "embed_dim": config.dim,
                "depth": config.depth, "num_heads": config.heads, "mlp_ratio": config.hidden / config.dim,
                "class_token": config.class_token, "global_pool": "token" if config.pool == "class" else "avg",
            }  # fmt: skip
        case "swin":
            name = "swin_tiny_patch4_window7_224"
            args = {
                "img_size": list(prepare.size), "patch_size": config.patch, "window_size": config.window,
                "embed_dim": config.dim, "depths": list(config.depths), "num_heads": list(config.heads),
                "mlp_ratio": config.ratio,
            }  # fmt: skip
        case "mixer":
            name = "mixer_b16_224"
            ratios = [hidden / config.dim for hidden in (config.token_hidden, config.channel_hidden)]
            args = {
                "img_size": config.image[0], "patch_size": config.patch, "embed_dim": config.dim,
                "num_blocks": config.depth, "mlp_ratio": ratios,
            }  # fmt: skip
        case "resnet":
            name = "resnet18" if config.block == "basic" else "resnet50"
            args = {"layers": list(config.depths), "channels": list(config.widths), "stem_width": config.stem_width}
    return {
        "architecture": name,
        "num_classes": codec.outputs,
        "model_args": args,
        "label_names": list(codec.classes),
        "pretrained_cfg": {
            "input_size": [3, *prepare.size],
            "num_classes": codec.outputs,
            "crop_pct": prepare.crop,
            "crop_mode": "squash" if prepare.stretch else "center",
            "interpolation": prepare.interpolation,
            "mean": list(prepare.mean),
            "std": list(prepare.std),
        },
    }


def _image_of(config: Any) -> tuple[int, int]:
    """The image that a model without a grid of its own was published for: a Swin's last grid is one window."""
    side = 224 if not hasattr(config, "window") else config.window * config.patch * 2 ** (len(config.depths) - 1)
    return (side, side)


def _sides(size: int | Mapping[str, int]) -> list[int]:
    if isinstance(size, int):
        return [size, size]
    if "shortest_edge" in size:
        return [size["shortest_edge"]] * 2
    return [size["height"], size["width"]]


def _share(cut: Sequence[int], resized: Sequence[int]) -> float:
    """The crop for which `Preprocess` resizes to just these whole pixels."""
    share = cut[0] / resized[0]
    for candidate in (share, math.nextafter(share, 0), math.nextafter(share, 1)):
        if all(int(side / candidate) == whole for side, whole in zip(cut, resized, strict=True)):
            return candidate
    raise RunError(f"pictures are resized to {list(resized)} and {list(cut)} are cut out of them: not the same share")
