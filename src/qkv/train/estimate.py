"""Before training: how long it will take, how much memory and how much disk."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from qkv.train import randomness
from qkv.train.progress import clock
from qkv.train.run import Run

__all__ = ["Probe", "lines", "probe"]


@dataclass(frozen=True)
class Probe:
    """What one batch costs: seconds forward and back, bytes kept in between, weights that it gives no gradient."""

    seconds: float
    activations: int
    idle: list[str]


def probe(model: nn.Module, loss: Callable[[], Tensor]) -> Probe:
    """Try a batch's loss forward and back, twice (the first warms up); model and generators are left as they were."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    buffers = [buffer.clone() for buffer in model.buffers()]
    with randomness.kept():
        for _ in range(2):
            model.zero_grad(set_to_none=True)
            kept.clear()
            begin = time.perf_counter()
            with saved_tensors_hooks(keep, lambda tensor: tensor):
                total = loss()
            total.backward()
            if total.device.type == "cuda":
                torch.cuda.synchronize()
            seconds = time.perf_counter() - begin
    idle = [name for name, parameter in model.named_parameters() if parameter.requires_grad and parameter.grad is None]
    model.zero_grad(set_to_none=True)
    for buffer, before in zip(model.buffers(), buffers, strict=True):
        buffer.copy_(before)
    return Probe(seconds, sum(kept.values()), idle)


def lines(run: Run, model: nn.Module, cost: Probe, steps: int | None) -> list[str]:
    """The estimate in words."""
    weights = sum(p.nbytes for p in model.parameters())
    memory = weights * (4 + bool(run.loop.ema)) + cost.activations  # weights, gradients and Adam's two means
    recent = run.loop.average if run.loop.average > 1 else 0
    disk = weights * (2 + recent + run.loop.keep * (3 + bool(run.loop.ema)))
    count = sum(p.numel() for p in model.parameters())
    said = [f"{count:,} parameters; about {_bytes(memory)} of memory and {_bytes(disk)} of disk"]
    limit = f"at most {run.loop.minutes:g} minutes" if run.loop.minutes else ""
    if steps:
        training = steps * run.optimize.accumulate * cost.seconds
        said.append(
            f"{steps:,} steps: about {clock(training)} at most, and the scores on dev" + (f"; {limit}" if limit else "")
        )
    elif limit:
        said.append(limit)
    if cost.idle:
        some = ", ".join(cost.idle[:3]) + (" ..." if len(cost.idle) > 3 else "")
        said.append(f"{len(cost.idle)} weights get no gradient from the first batch: {some}")
    if (free := shutil.disk_usage(Path(run.out)).free) < disk:
        said.append(f"the disk has only {_bytes(free)} free: saving will fail; make room, or lower loop.keep")
    return said


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
