"""Published image models as runs of ours, and back: ViT, DeiT, Swin, MLP-Mixer and ResNet.

================  ============================================================================================
origin            what is read
================  ============================================================================================
``timm``          a file of weights, or a folder or hub name with ``config.json``
``torchvision``   a file of weights
``hf``            a folder or hub name with ``config.json`` and ``preprocessor_config.json``
``npz``           a file of the original release of ViT or Mixer
``cifar``         a file of the residual networks for CIFAR-10
================  ============================================================================================

None of these libraries is needed, and nothing that is read here can run code.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.errors import ConfigError, RunError, nearest
from qkv.models.saved import build, fill_but_head, load_model, read_config, save_model
from qkv.store import new_file, read_json, write_json, write_tensors
from qkv.tasks.settings import family, read_settings, write_settings
from qkv.weights.files import find_published, read_weights
from qkv.weights.image_configs import (
    SCALING,
    assumed,
    heads_told,
    hf_config,
    hf_preprocess,
    hf_preprocessor,
    image_told,
    read_hf,
    sides,
    timm_config,
    timm_preprocess,
)  # fmt: skip
from qkv.weights.image_shapes import LAYOUTS, ours_of, recognise

__all__ = ["ORIGINS", "export_images", "import_hf", "import_images"]

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ORIGINS = ("timm", "torchvision", "hf", "npz", "cifar")
FILES = ("config.json", "preprocessor_config.json", "model.safetensors", "pytorch_model.bin")
RESAMPLING = {"timm": "timm", "torchvision": "torchvision", "hf": "hf", "npz": "linear"}
BARE = ("embeddings.", "encoder.", "layernorm.", "embedder.")  # of Hugging Face's models that were saved without a head


def import_images(
    origin: str,
    name: str,
    out: str | Path,
    *,
    classes: str | None = None,
    heads: int | None = None,
    image: str | None = None,
    scaling: str | None = None,
) -> list[str]:
    """Make a run of ours in ``out`` of a published image model.

    Args:
        origin: whose names and habits; one of `ORIGINS`.
        name: a file, a folder, or a name on the Hugging Face hub.
        classes: how many classes, or a file with a name on each line. Where it is another number than the weights
            have, the head is new and everything else is loaded.
        heads: of a ViT whose width does not tell.
        image: height and width (``224x288``) that a ViT's positions or a Mixer's tokens are for, if they are no square.
        scaling: of pixels, ``half`` or ``imagenet``, where nothing beside the weights says it.

    Returns:
        Lines that tell the user what the run is, what was taken for granted, and what of it is new.

    Raises:
        RunError: there is no such model, a file is missing or broken, or the model does something that ours does not.
    """
    out = Path(out)
    if scaling is not None and scaling not in SCALING:
        raise ConfigError(f"--scaling is {scaling!r}", remedy=nearest(scaling, SCALING))
    if (out / "model.json").exists():
        raise RunError("holds a model already", file=out, remedy="choose another folder")
    where, about = _find(origin, name)
    theirs, notes = _whole(read_weights(where), about.get("model_type", ""), origin)
    kind = recognise(theirs, origin, where)
    told = {"heads": heads or heads_told(about), "image": sides(image) if image else image_told(about)}
    try:
        config, ours = ours_of(kind, origin, theirs, **told)
        if origin == "hf":
            config = read_hf(kind, about, config)
        elif kind == "vit":
            config = dataclasses.replace(config, resampling=RESAMPLING[origin])
        given = _preprocess(origin, where, about)
        prepare = given or assumed(kind, origin, config, scaling)
    except (RunError, ConfigError) as error:
        raise RunError(str(error), file=where) from None
    known = {"id2label": dict(enumerate(CIFAR10))} if origin == "cifar" and config.classes == len(CIFAR10) else about
    names = _class_names(classes, config.classes, known)
    model = build(kind, dataclasses.replace(config, classes=len(names)))
    new = fill_but_head(model, ours, where)
    codec = ImageCodec(prepare, names)
    codec.save(out / "codec")
    write_settings(out, task="classify", kind="pictures", origin=origin)
    save_model(model, out)
    millions = sum(weight.numel() for weight in model.parameters()) / 1e6
    taken = "" if given else f" (no file beside the weights says so; {origin} does it with most of its models)"
    told = f"all {len(ours)} tensors are loaded"
    if new:
        told = f"new, to be learned: {', '.join(new)}; the other {len(ours.keys() - set(new))} tensors are loaded"
    return [
        f"{name}: a {type(model).__name__} by {origin}'s names, {millions:.1f} million weights, {len(names)} classes",
        f"pictures: {prepare}{taken}",
        *notes,
        told,
    ]


def import_hf(name: str, out: str | Path, **options: Any) -> list[str]:
    """`import_images` from Hugging Face."""
    return import_images("hf", name, out, **options)


def export_images(run: str | Path, out: str | Path, to: str | None = None) -> None:
    """Write a run of pictures as others have it.

    Args:
        out: a file of weights (``.safetensors``; ``.npz`` for the original release), or for ``timm`` and ``hf`` a
            folder with the configuration beside them, which is what their libraries load.
        to: whose names, one of `ORIGINS`; those that it came with if not given.

    Raises:
        RunError: the model is one that they cannot have.
    """
    run, out = Path(run), Path(out)
    if not family(run).endswith("pictures"):
        raise RunError(f"a run of {family(run)!r}", file=run, expected="a run of pictures")
    if (to := to or read_settings(run).get("origin", "")) not in ORIGINS:
        raise ConfigError(f"--to is {to!r}" if to else "--to is missing", remedy=nearest(to, ORIGINS))
    name, config = read_config(run)
    codec = ImageCodec.load(run / "codec")
    _can_be(to, name, config, codec, run)
    weights = LAYOUTS[name](to, config).save(load_model(run).state_dict())
    suffix = ".npz" if to == "npz" else ".safetensors"
    if out.suffix == suffix:
        _write_weights(out, weights)
        return
    if out.suffix or to not in ("timm", "hf"):
        raise RunError(f"weights of {to} are not written to {out.name!r}", expected=f"a file name ending in {suffix}")
    configs = {"config.json": timm_config(name, config, codec)}
    if to == "hf":
        configs = {
            "config.json": hf_config(name, config, codec),
            "preprocessor_config.json": hf_preprocessor(codec.preprocess),
        }
    out.mkdir(parents=True, exist_ok=True)
    for file, content in configs.items():
        write_json(out / file, content)
    _write_weights(out / "model.safetensors", weights)


def _find(origin: str, name: str) -> tuple[Path, Mapping[str, Any]]:
    """Where the weights are, and what ``config.json`` beside them says, if there is one."""
    if origin not in ORIGINS:
        raise ConfigError(f"published weights of {origin!r}", remedy=nearest(origin, ORIGINS))
    if Path(name).is_file():
        if origin == "hf":
            raise RunError("is a file", file=name, expected="a folder with config.json and model.safetensors")
        return Path(name), {}
    if origin not in ("timm", "hf"):
        raise RunError("there is no such file", file=name)
    if origin == "timm" and "/" not in name and not Path(name).is_dir():
        name = f"timm/{name}"
    folder = find_published(name, FILES)
    return folder, read_json(folder / "config.json")


def _preprocess(origin: str, where: Path, about: Mapping[str, Any]) -> Preprocess | None:
    """How pictures are prepared, if something beside the weights says it."""
    if origin == "timm" and about:
        return timm_preprocess(about)
    if origin == "hf" and (file := where / "preprocessor_config.json").is_file():
        return hf_preprocess(read_json(file))
    return None


def _whole(theirs: Mapping[str, Tensor], kind: str, origin: str) -> tuple[dict[str, Tensor], list[str]]:
    """In float32, under the names that a model with a head has."""
    theirs = {key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in theirs.items()}
    if origin == "npz":  # some hold the optimiser beside the weights
        inside = {key.removeprefix("opt/target/"): t for key, t in theirs.items() if key.startswith("opt/target/")}
        return inside or theirs, []
    if origin != "hf" or any(key.startswith(f"{kind}.") for key in theirs):
        return theirs, []
    kept = {f"{kind}.{key}": tensor for key, tensor in theirs.items() if key.startswith(BARE)}
    left = sorted(theirs.keys() - {key.removeprefix(f"{kind}.") for key in kept})
    return kept, [f"left out: {', '.join(left)}, which no class is read from"] if left else []


def _class_names(classes: str | None, count: int, about: Mapping[str, Any]) -> tuple[str, ...]:
    """The user's, or what the model's maker calls them, or numbers."""
    if classes is not None and classes.isdecimal():
        wanted = int(classes)
        if wanted != count:
            return _numbered(wanted)
    elif classes is not None:
        return _read_names(Path(classes))
    elif not count:
        raise RunError("the weights have no head", remedy="say what to tell apart: --classes NUMBER or --classes FILE")
    labels = sorted((int(i), name) for i, name in (about.get("id2label") or {}).items())
    named = list(about.get("label_names") or [name for _, name in labels])
    if len(named) != count:
        return _numbered(count)
    # ImageNet has two cranes: the second one tells its number.
    return tuple(name if name not in named[:i] else f"{name} ({i})" for i, name in enumerate(named))


def _numbered(count: int) -> tuple[str, ...]:
    if count < 1:
        raise ConfigError(f"--classes is {count}", expected="1 or more")
    return tuple(f"class {i}" for i in range(count))


def _read_names(file: Path) -> tuple[str, ...]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise RunError("is not UTF-8 text", file=file) from None
    names = [line.strip() for line in lines]
    while names and not names[-1]:
        names.pop()
    for number, name in enumerate(names, 1):
        if not name:
            raise RunError("an empty line", file=file, line=number, expected="the name of a class")
        if name in names[: number - 1]:
            raise RunError(f"the class {name!r} a second time", file=file, line=number)
    if not names:
        raise RunError("is empty", file=file, expected="the name of a class on each line")
    return tuple(names)


def _can_be(to: str, name: str, config: Any, codec: ImageCodec, run: Path) -> None:
    """Raise where another's model of these weights would say something else than ours."""
    reasons = [(codec.labels == "number", "it says numbers, which only our codec scales")]
    if name == "vit":
        reasons += [
            (config.pool == "attention", "it pools by attention"),
            (config.registers > 0, "it has registers"),
            (config.pool == "mean" and to != "timm", "its head reads the mean of all patches"),
            (not config.class_token and to != "timm", "it has no class token"),
            (config.distilled and to not in ("timm", "hf"), "it has a distillation token"),
            (config.prelogits > 0 and to == "hf", "its head has a hidden layer"),
        ]
    if name == "resnet":
        small = (config.stem, config.shortcut) == ("small", "padded")
        large = (config.stem, config.shortcut) == ("large", "projected")
        said = f"its stem is {config.stem} and its shortcuts are {config.shortcut}"
        reasons += [(not (small if to == "cifar" else large), said)]
    for is_so, reason in reasons:
        if is_so:
            raise RunError(f"{to} has no such {name}: {reason}", file=run)


def _write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    if path.suffix == ".safetensors":
        write_tensors(path, weights, {"format": "pt"})
        return
    with new_file(path, sum(tensor.nbytes for tensor in weights.values())) as partial, open(partial, "wb") as file:
        np.savez(file, **{name: tensor.numpy() for name, tensor in weights.items()})
