"""Checkpoints: where a run stands, complete, in one folder that is there whole or not at all.

::

    checkpoints/step-00000500/  model.safetensors optimizer.safetensors average.safetensors state.json
    checkpoints/weights-00000400.safetensors      the best weights, and the last few for their average

A checkpoint is filled beside its place, flushed and renamed, so that the newest one under its own name is always
whole: after a kill at any moment, and after a full disk. There is nothing in it but tensors and JSON.
"""

import dataclasses
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn, optim

from qkv.errors import RunError
from qkv.models.saved import load_weights, save_weights
from qkv.store import new_folder, numbers, read_json, read_tensors, remove_folder, write_json, write_tensors
from qkv.tasks.task import Position
from qkv.train.averaging import MovingAverage

__all__ = ["State", "latest", "load", "mark_finished", "save", "save_tensors", "weights_file"]


@dataclass
class State:
    """Where the loop stands. Random numbers are a function of ``position`` (see `qkv.train.randomness`)."""

    step: int = 0  # updates made
    position: Position = field(default_factory=Position)  # of the next batch
    seconds: float = 0.0  # by the clock, over all resumes
    evaluated: int = 0  # step of the last score on dev
    best: dict[str, Any] | None = None  # {"step", "scores", "weights": file name}
    waited: int = 0  # evaluations since the best
    recent: list[str] = field(default_factory=list)  # files of weights for the last-k average
    window: dict[str, float] = field(default_factory=dict)  # sums since the last line of training loss
    skipped: int = 0  # fp16 steps in a row whose gradient was not finite
    scaler: dict[str, float] | None = None  # fp16 loss scale
    finished: dict[str, Any] | None = None  # {"why", "weights", "scores"} once the run is at its end

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "State":
        judged = {key: record[key] for key in ("best", "finished") if record[key]}
        judged = {key: {**value, "scores": numbers(value["scores"])} for key, value in judged.items()}
        return cls(**{**record, **judged, "position": Position(**record["position"])})


def save(
    run: Path, state: State, model: nn.Module, optimizer: optim.Optimizer, average: MovingAverage | None, keep: int
) -> None:
    """Save where a run stands, then remove what no kept checkpoint needs.

    Raises:
        RunError: the disk is full; the checkpoints before this one are untouched.
    """
    save_tensors(run, state, model, _optimizer_tensors(model, optimizer), average.tensors if average else {}, keep)


def save_tensors(
    run: Path,
    state: State,
    model: nn.Module,
    tensors: Mapping[str, torch.Tensor],
    averages: Mapping[str, torch.Tensor],
    keep: int,
) -> None:
    """`save`, of what an optimiser or a learner keeps by name."""
    folder = run / "checkpoints"
    size = sum(t.nbytes for t in [*model.state_dict().values(), *tensors.values(), *averages.values()])
    name = f"step-{state.step:08d}"
    if again := sorted(folder.glob(f"{name}*")):  # never replaced: a kill in between would leave none
        name += f"-{len(again) + 1}"
    with new_folder(folder / name, needs=size) as partial:
        save_weights(model, partial / "model.safetensors")
        write_tensors(partial / "optimizer.safetensors", tensors)
        if averages:
            write_tensors(partial / "average.safetensors", averages)
        write_json(partial / "state.json", state.to_json())
    _tidy(folder, keep)


def latest(run: Path) -> tuple[Path, State] | None:
    """The newest checkpoint of a run, and where the run stood; None if there is none yet."""
    steps = sorted((run / "checkpoints").glob("step-*"))
    return (steps[-1], State.from_json(read_json(steps[-1] / "state.json"))) if steps else None


def load(folder: Path, model: nn.Module, optimizer: optim.Optimizer, average: MovingAverage | None) -> None:
    """Fill model, optimiser and average from a checkpoint, to the bit."""
    load_weights(model, folder / "model.safetensors")
    tensors, _ = read_tensors(folder / "optimizer.safetensors")
    names = [name for name, _ in _named(model, optimizer)]
    states: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        kind, _, name = key.partition("/")
        if name not in names:
            raise RunError(
                f"holds the state of {name!r}, which the model has not", file=folder / "optimizer.safetensors"
            )
        states.setdefault(names.index(name), {})[kind] = tensor
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
    if average:
        average.load(read_tensors(folder / "average.safetensors")[0])


def mark_finished(run: Path, state: State) -> None:
    """Write the run's end into its last checkpoint."""
    found = latest(run)
    if found and found[1].step == state.step:
        write_json(found[0] / "state.json", state.to_json())


def weights_file(run: Path, name: str) -> Path:
    """The path of weights that are kept beside the checkpoints (`State.best`, `State.recent`)."""
    return run / "checkpoints" / name


def _named(model: nn.Module, optimizer: optim.Optimizer) -> list[tuple[str, nn.Parameter]]:
    """The optimiser's parameters in its own order, with their names in the model."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [(names[id(p)], p) for group in optimizer.param_groups for p in group["params"]]


def _optimizer_tensors(model: nn.Module, optimizer: optim.Optimizer) -> dict[str, torch.Tensor]:
    """Adam's state as named tensors: ``exp_avg/encoder.0.weight``."""
    return {
        f"{kind}/{name}": torch.as_tensor(value)
        for name, parameter in _named(model, optimizer)
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def _tidy(folder: Path, keep: int) -> None:
    steps = sorted(folder.glob("step-*"))
    for old in steps[:-keep]:
        remove_folder(old)
    needed = set()
    for step in steps[-keep:]:
        state = read_json(step / "state.json")
        needed |= {*state["recent"], (state["best"] or {}).get("weights"), (state["finished"] or {}).get("mean")}
    for file in folder.glob("*.safetensors"):
        if file.name not in needed:
            file.unlink()
    for left in folder.glob(".*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
