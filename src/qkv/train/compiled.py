"""The loop of what makes its own steps in compiled code (`qkv.tasks.task.Learner`), a part of the data at a time.

Folder, limits, checkpoints and last lines are those of `qkv.train.loop`; a *step* is a part. Several processes each
learn from their share of a part, and then take the mean of their weights.
"""

import dataclasses
import math
import time
from contextlib import nullcontext
from typing import Any

import torch
from accelerate import Accelerator

from qkv.errors import ConfigError, RunError
from qkv.models.saved import build, load_weights, save_model
from qkv.store import read_tensors
from qkv.tasks.settings import write_settings
from qkv.tasks.task import Learner, Position, Prepared, Task
from qkv.train import checkpoint, randomness
from qkv.train.checkpoint import State
from qkv.train.devices import accelerator_for
from qkv.train.ends import Result, agree, conclude, late, limit, prepare, why_ended
from qkv.train.folder import append_scores, claimed, describe_run, truncate_scores
from qkv.train.interrupts import Interrupts, noticed
from qkv.train.progress import Display
from qkv.train.run import Loop, Optimize, Run

__all__ = ["train_compiled"]

DIVERGED = 1e6  # loss of one place that no rate comes back from
SAVE_SECONDS = 60  # between checkpoints, where loop.save_every does not say
OWN = {"optimize": ("lr",), "loop": ("steps", "epochs", "minutes", "save_every", "log_every", "keep", "evaluate_every")}


def train_compiled(run: Run, task: Task, prepared: Prepared | None = None) -> Result:
    """As `qkv.train.loop.train`, which hands over to it."""
    _check(run)
    run = dataclasses.replace(run, spread=dataclasses.replace(run.spread, device="cpu"))
    accelerator = accelerator_for(run)
    first = accelerator.is_main_process
    show = Display(task.unit, silent=not first)
    with claimed(run) if first else nullcontext(), show:
        accelerator.wait_for_everyone()
        saved = checkpoint.latest(run.out)
        if saved and saved[1].finished and why_ended(run.loop, saved[1]):
            show.say(f"{run.out} is finished ({saved[1].finished['why']})")
            return conclude(task, run, saved[1], show)
        with accelerator.main_process_first():
            prepared = prepare(task, run, prepared, first)
        for line in prepared.report:
            show.say(line)
        randomness.seed_all(run.seed)
        model = build(run.model, task.config(prepared.codec, run.size))
        if run.init and not saved:
            for line in task.start_from(run.init, model):
                show.say(line)
        with accelerator.main_process_first():
            ranks = accelerator.process_index, accelerator.num_processes
            learner = task.learner(model, prepared, run, *ranks, show.say)
        show.unit = learner.unit
        if first:
            describe_run(run, prepared.summary, prepared.report, sum(p.numel() for p in model.parameters()))
            write_settings(run.out, task=run.task)
        state = State()
        if saved:
            folder, state = saved
            load_weights(model, folder / "model.safetensors")
            learner.load(read_tensors(folder / "optimizer.safetensors")[0])
            state.finished = None
            show.say(f"going on from step {state.step}")
        else:
            for line in learner.estimate():
                show.say(line)
        if first:
            truncate_scores(run.out, state.step if saved else -1)

        with noticed() as interrupts:
            stopped = _parts(run, learner, model, state, accelerator, show, interrupts)
        if stopped:
            _save(run, learner, model, state, accelerator)
            show.say(f"stopped at step {state.step}; go on with: qkv train --config {run.out / 'run.yaml'}")
            return Result(run.out, state.step, {}, interrupted=True)
        state.finished = {"why": why_ended(run.loop, state), "weights": f"of step {state.step}", "scores": {},
                          "mean": None}  # fmt: skip
        _save(run, learner, model, state, accelerator)
        if first:
            save_model(model, run.out, run.model)
            if hasattr(task, "finish"):
                task.finish(model, prepared, run.out)
            append_scores(run.out, {"step": state.step, "final": {}, "weights": state.finished["weights"]})
        return conclude(task, run, state, show)


def _parts(
    run: Run,
    learner: Learner,
    model: Any,
    state: State,
    accelerator: Accelerator,
    show: Display,
    interrupts: Interrupts,
) -> bool:
    """Part after part. True if someone asked to stop, false if the run is at its end."""
    begun = time.monotonic() - state.seconds
    saved = time.monotonic()
    while not limit(run.loop, state):
        state.seconds = time.monotonic() - begun
        over = late(run.loop, state.seconds) and accelerator.is_main_process
        _, stop, over = agree(accelerator, 0, interrupts.wanted, over)
        if stop or over:
            return stop
        part_began = time.monotonic()
        rate = learner.rate(state.position)
        sums = learner.part(state.position)
        sums = _together(accelerator, learner, sums)
        if not math.isfinite(sums["loss"]) or sums["loss"] > DIVERGED * max(sums["looked"], 1):
            raise RunError(
                f"the loss is {sums['loss']:.3g} in step {state.step + 1}: it has diverged",
                remedy="lower optimize.lr, in a new --out; what was saved before is whole",
            )
        state.step += 1
        batch = state.position.batch + 1
        over = batch == learner.parts
        state.position = Position(state.position.epoch + over, 0 if over else batch)
        seconds = time.monotonic() - part_began
        state.seconds = time.monotonic() - begun
        for name, value in {**sums, "seconds": seconds}.items():
            state.window[name] = state.window.get(name, 0.0) + float(value)
        loss = sums["loss"] / max(sums["looked"], 1)
        done = _done(run.loop, state, learner.parts)
        left = state.seconds * (1 - done) / done if done else None
        show.step(state.step, state.position.epoch, loss, int(sums["targets"]), seconds, done, left)
        if state.step % run.loop.log_every == 0:
            _log(run, state, rate, accelerator, show)
        every = run.loop.save_every
        due = state.step % every == 0 if every else time.monotonic() - saved > SAVE_SECONDS
        if agree(accelerator, 0, due and accelerator.is_main_process, False)[1] and not limit(run.loop, state):
            _save(run, learner, model, state, accelerator)
            saved = time.monotonic()
    return False


def _together(accelerator: Accelerator, learner: Learner, sums: dict[str, float]) -> dict[str, float]:
    """Every process's weights become the mean of all; its sums the sum."""
    if accelerator.num_processes == 1:
        return sums
    for tensor in learner.averaged():
        torch.distributed.all_reduce(tensor)
        tensor /= accelerator.num_processes
    whole = torch.tensor(list(sums.values()), dtype=torch.float64)
    torch.distributed.all_reduce(whole)
    return dict(zip(sums, whole.tolist(), strict=True))


def _log(run: Run, state: State, rate: float, accelerator: Accelerator, show: Display) -> None:
    window, state.window = state.window, {}
    if accelerator.is_main_process:
        append_scores(run.out, {
            "step": state.step, "epoch": state.position.epoch, "loss": window["loss"] / max(window["looked"], 1),
            "lr": rate, f"{show.unit}_per_second": round(window["targets"] / window["seconds"], 1),
            "seconds": round(state.seconds, 1),
        })  # fmt: skip


def _save(run: Run, learner: Learner, model: Any, state: State, accelerator: Accelerator) -> None:
    if accelerator.is_main_process:
        checkpoint.save_tensors(run.out, state, model, learner.tensors(), {}, run.loop.keep)
    accelerator.wait_for_everyone()


def _done(loop: Loop, state: State, parts: int) -> float:
    shares = [0.0]
    if loop.epochs:
        shares.append((state.position.epoch + state.position.batch / parts) / loop.epochs)
    if loop.most_steps:
        shares.append(state.step / loop.most_steps)
    if loop.minutes:
        shares.append(state.seconds / (60 * loop.minutes))
    return min(max(shares), 1.0)


def _check(run: Run) -> None:
    """A setting that the kernels have no use for is refused, not left unread."""
    for name, kind in (("optimize", Optimize), ("loop", Loop)):
        for field in dataclasses.fields(kind):
            if field.name not in OWN[name] and getattr(getattr(run, name), field.name) != field.default:
                raise ConfigError(
                    f"{name}.{field.name} is set, and the compiled code has no use for it",
                    remedy="leave it out, or use --learn.engine torch",
                )
    if run.loop.epochs is None:
        raise ConfigError("loop.epochs is not set, and the learning rate falls to its end", expected="a whole number")
    if run.spread.device not in ("auto", "cpu"):
        raise ConfigError(
            f"spread.device is {run.spread.device}, and the compiled code runs on the CPU",
            remedy="leave it out, or use --learn.engine torch",
        )
