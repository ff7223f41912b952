"""Where a run computes, and how precisely: the Accelerator, made for a `Run`."""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs, InitProcessGroupKwargs
from accelerate.state import AcceleratorState

from qkv.errors import ConfigError
from qkv.train.run import Run

__all__ = ["accelerator_for", "precision_for"]


def accelerator_for(run: Run) -> Accelerator:
    """The processes, device and precision that a run asks for; torchrun's and accelerate launch's ranks join here.

    Raises:
        ConfigError: there is no such device here, or it is bad at the precision asked for.
    """
    device = run.spread.device
    kind, _, index = device.partition(":")
    there = {"auto": True, "cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(),
             "xpu": torch.xpu.is_available()}  # fmt: skip
    if not there[kind]:
        raise ConfigError(
            f"spread.device is {device}, but this machine has none", remedy="use --spread.device cpu or auto"
        )
    if index and kind == "cuda":
        if int(index) >= torch.cuda.device_count():
            raise ConfigError(f"spread.device is {device}", expected=f"an index below {torch.cuda.device_count()}")
        torch.cuda.set_device(int(index))
    if kind == "auto":
        kind = next((name for name in ("cuda", "xpu", "mps") if there[name]), "cpu")
    precision = precision_for(kind, run.loop.precision)
    AcceleratorState._reset_state(
        reset_partial_state=not torch.distributed.is_initialized()
    )  # of an earlier run in this process
    accelerator = Accelerator(
        cpu=kind == "cpu",
        mixed_precision={"fp32": "no"}.get(precision, precision),
        kwargs_handlers=[
            # A part of the model that a step does not use must neither hang the ranks nor stop them.
            DistributedDataParallelKwargs(find_unused_parameters=True, gradient_as_bucket_view=True),
            # Rank 0 reads the data and scores alone meanwhile.
            InitProcessGroupKwargs(timeout=timedelta(hours=3)),
        ],
    )
    if run.spread.threads:  # after Accelerate, which sets its own with several processes
        torch.set_num_threads(run.spread.threads)
    return accelerator


def precision_for(device: str, asked: str) -> str:
    """fp32, bf16 or fp16 for a kind of device; auto takes what it is fast at.

    Raises:
        ConfigError: bf16 on a CPU without bf16 instructions (some 40 times slower than fp32), fp16 on any CPU.
    """
    if device == "cuda":
        bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
        if asked == "auto":
            return "bf16" if bf16 else "fp16"
        if asked == "bf16" and not bf16:
            raise ConfigError("loop.precision is bf16, and this GPU only emulates it", expected="fp16, fp32 or auto")
        return asked
    if asked == "auto":
        return "fp32"
    if device == "cpu" and asked == "fp16":
        raise ConfigError("loop.precision is fp16, which CPUs do not compute in", expected="fp32 or auto")
    if device == "cpu" and asked == "bf16" and not _cpu_has_bf16():
        raise ConfigError(
            "loop.precision is bf16, but this CPU has no bf16 instructions: it would be some 40 times slower than fp32",
            expected="fp32 or auto",
        )
    return asked


def _cpu_has_bf16() -> bool:
    if torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported():
        return True
    if not os.path.exists("/proc/cpuinfo"):
        return False
    with open("/proc/cpuinfo") as file:  # ARM says "Features: ... bf16"
        return any("bf16" in line.split() for line in file if line.startswith("Features"))
