"""A model in a folder: ``model.json`` says what it is, ``model.safetensors`` holds its weights, tied ones once."""

import dataclasses
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor, nn

from qkv import models
from qkv.errors import ConfigError, RunError, nearest
from qkv.store import read_json, read_tensors, write_json, write_tensors

__all__ = ["build", "fill", "fill_but_head", "load_model", "load_weights", "read_config", "save_model", "save_weights"]

HEADS = ("head.", "distilled_head.", "frame_head.", "pooler.")  # what models of other tasks have otherwise


def save_model(model: nn.Module, folder: Path, name: str | None = None) -> None:
    """Write ``model.json`` and ``model.safetensors``; ``model.config`` must be the config it was made from.

    Args:
        name: as in ``--model``; needed for a class that is not in `MODELS`.
    """
    name = name or _name_of(type(model))
    save_weights(model, folder / "model.safetensors")
    write_json(
        folder / "model.json",
        {"class": name, "version": version("qkv"), "config": dataclasses.asdict(model.config)},
    )


def load_model(folder: Path, *, own: str | None = None, device: str | torch.device = "cpu") -> nn.Module:
    """The model saved in a folder, in evaluation mode.

    Args:
        own: ``own.py:Mine``, for a class that is the user's: it must be spelled out, since importing it runs code.

    Raises:
        RunError: the folder holds no model, or weights that do not fit it.
    """
    name, config = read_config(folder, own)
    model = build(name, config)
    load_weights(model, folder / "model.safetensors")
    return model.to(device).eval()


def build(name: str, config: Any) -> nn.Module:
    """A new model; it keeps its config as ``model.config``, for `save_model`."""
    model = models.find(name)(config)
    model.config = config
    return model


def read_config(folder: Path, own: str | None = None) -> tuple[str, Any]:
    """Name and config of the model in a folder; of `load_model`'s ``own`` see there."""
    file = Path(folder) / "model.json"
    record = read_json(file)
    name = record["class"]
    if name not in models.MODELS and name != own:
        raise RunError(
            f"the model is {name!r}, which is not one of ours, and using it would run its code",
            file=file,
            remedy=f"if you trust it, say so: --model {name}" if ".py:" in name else nearest(name, models.MODELS),
        )
    try:
        return name, _make(models.find(name).Config, record["config"])
    except ConfigError as error:
        raise RunError(str(error), file=file) from None


def save_weights(model: nn.Module, path: Path, extra: Mapping[str, Tensor] | None = None) -> None:
    """Save a model's state, every tensor once; the file's metadata says which names share one."""
    tensors, tied = untie({**model.state_dict(), **(extra or {})})
    write_tensors(path, tensors, {"tied": json.dumps(tied)})


def load_weights(model: nn.Module, path: Path) -> None:
    """Fill a model from `save_weights`'s file; what was tied is tied again.

    Raises:
        RunError: names or shapes differ, or the model ties what the file holds apart.
    """
    tensors, metadata = read_tensors(path)
    tied = json.loads(metadata.get("tied", "{}"))
    fill(model, {**tensors, **{alias: tensors[name] for alias, name in tied.items()}}, path)
    for alias, name in tied.items():
        parent, _, leaf = alias.rpartition(".")
        if leaf in model.get_submodule(parent)._parameters:  # else a buffer: nothing learns, nothing drifts apart
            setattr(model.get_submodule(parent), leaf, model.get_parameter(name))


def fill(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors into a model; each name and shape must be there on both sides."""
    own = model.state_dict()
    if missing := sorted(own.keys() - tensors.keys()):
        raise RunError(
            f"has no {missing[0]!r} ({len(missing)} such)", file=path, expected="the weights of this very model"
        )
    if unknown := sorted(tensors.keys() - own.keys()):
        raise RunError(f"holds {unknown[0]!r} ({len(unknown)} such), which the model has not", file=path)
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise RunError(
                f"{name} has the shape {list(tensors[name].shape)}",
                file=path,
                expected=f"{list(tensor.shape)}, as in the model",
            )
    for alias, name in untie(own)[1].items():
        if not torch.equal(tensors[alias], tensors[name]):
            raise RunError(
                f"{alias} and {name} differ, but the model ties them", file=path, remedy="build the model untied"
            )
    model.load_state_dict(tensors)


def fill_but_head(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> list[str]:
    """As `fill`, but where a head is for other classes or another task, the model keeps its new one.

    Returns:
        The names of what is new, which must be learned: everything else is as in ``tensors``.
    """
    own = model.state_dict()
    new = [name for name in own if name.startswith(HEADS)]
    new = [name for name in new if name not in tensors or tensors[name].shape != own[name].shape]
    kept = {name: tensor for name, tensor in tensors.items() if name in own or not name.startswith(HEADS)}
    fill(model, {**kept, **{name: own[name] for name in new}}, path)
    return new


def untie(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Each tensor once, under its first name, and the other names with the one that they share."""
    first: dict[tuple, str] = {}
    tied = {}
    for name, tensor in tensors.items():
        if tensor.numel():
            kept = first.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype), name)
            if kept != name:
                tied[name] = kept
    return {name: tensor for name, tensor in tensors.items() if name not in tied}, tied


def _name_of(cls: type) -> str:
    path = f"{cls.__module__}:{cls.__qualname__}"
    for name, where in models.MODELS.items():
        if where == path:
            return name
    raise RunError(f"{path} is not in qkv.models.MODELS", remedy="give its name, as in own.py:Mine")


def _make(cls: type, values: Mapping[str, Any]) -> Any:
    """A config dataclass from JSON: nested dataclasses are made too, lists become tuples where the field wants one."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = get_type_hints(cls)
    made = {}
    for key, value in values.items():
        if key not in fields:
            raise ConfigError(f"{cls.__name__} has no {key!r}", remedy=nearest(key, fields))
        kind = hints[key]
        if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
            value = _make(kind, value)
        elif isinstance(value, list) and "tuple" in str(kind):
            value = tuple(tuple(item) if isinstance(item, list) else item for item in value)
        made[key] = value
    return cls(**made)
