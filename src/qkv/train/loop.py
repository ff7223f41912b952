"""The training loop: one for every task, model, device and number of processes. Read it from `train` down."""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from qkv import tasks
from qkv.errors import ConfigError, RunError, nearest
from qkv.models.saved import build, load_weights, read_config, save_model, save_weights
from qkv.tasks.settings import write_settings
from qkv.tasks.task import Position, Prepared, Scores, Task
from qkv.train import averaging, checkpoint, estimate, randomness
from qkv.train.ahead import ReadAhead
from qkv.train.averaging import MovingAverage
from qkv.train.board import Board, require_board
from qkv.train.checkpoint import State, weights_file
from qkv.train.devices import accelerator_for
from qkv.train.ends import Result, agree, conclude, late, limit, prepare, why_ended
from qkv.train.folder import append_scores, claimed, describe_run, truncate_scores
from qkv.train.interrupts import Interrupts, noticed
from qkv.train.layers import freeze, recompute
from qkv.train.optimizer import factor, optimizer_for, set_rate
from qkv.train.progress import Display, words
from qkv.train.run import Run
from qkv.train.share import rank_share, step_group

__all__ = ["Result", "train"]

MOST_SKIPPED = 50  # fp16 steps in a row: the scaler halves its scale at each, and 2**-50 of it is no scale any more


@dataclass
class Training:
    """Everything that is alive while a run trains."""

    run: Run
    task: Task
    prepared: Prepared
    accelerator: Accelerator
    model: nn.Module
    learner: nn.Module  # the task's loss of the model, wrapped for ranks and precision
    optimizer: AcceleratedOptimizer
    average: MovingAverage | None
    state: State
    show: Display
    board: Board | None
    epoch_length: Callable[[int], int]
    total_steps: int | None  # for cosine and for the time left


class LossOf(nn.Module):
    """A task's loss as a module: whatever the task calls inside the model then runs under DDP and autocast."""

    def __init__(self, task: Task, model: nn.Module):
        super().__init__()
        self.task, self.model = task, model

    def forward(self, batch: Any, step: int) -> tuple[Tensor, dict[str, Tensor]]:
        loss = self.task.loss(self.model, batch, step)
        return loss.total, loss.parts


def train(run: Run, prepared: Prepared | None = None) -> Result:
    """Train, or go on training, what ``run`` says; afterwards ``run.out`` holds the best weights.

    ``prepared`` is the run's data, where several runs share them; they are made from ``run.data`` if not given.

    A step follows the gradient of the mean loss over all its real targets: those of every batch that it accumulates,
    on every process. Stopped by Ctrl-C, SIGTERM, kill -9 or a power cut, the same run goes on from its last
    checkpoint as if nothing had been (to the bit on a CPU with as many threads).

    Raises:
        UserError: what the user can mend: data, config, folder, device, a full disk, a loss that is not finite.
    """
    task = tasks.find(run.task, run.kind)(**run.learn)
    if run.loop.best and run.loop.best not in task.higher_is_better:
        raise ConfigError(f"loop.best is {run.loop.best!r}", remedy=nearest(run.loop.best, task.higher_is_better))
    if run.loop.tensorboard:
        require_board()
    if hasattr(task, "compiled") and task.compiled(run):
        from qkv.train.compiled import train_compiled

        return train_compiled(run, task, prepared)
    accelerator = accelerator_for(run)
    first = accelerator.is_main_process
    show = Display(getattr(task, "unit", "targets"), silent=not first)

    with claimed(run) if first else nullcontext(), show:
        accelerator.wait_for_everyone()
        saved = checkpoint.latest(run.out)
        if saved and saved[1].finished and why_ended(run.loop, saved[1]):
            show.say(f"{run.out} is finished ({saved[1].finished['why']})")
            return conclude(task, run, saved[1], show)
        training = _begin(run, task, accelerator, prepared, saved, show)
        with noticed() as interrupts, ReadAhead(partial(_read_step, training)) as ahead:
            interrupted = _loop(training, ahead, interrupts)
            if interrupted:
                _save(training)
        if interrupted:
            state = training.state
            show.say(f"stopped at step {state.step}; go on with: qkv train --config {run.out / 'run.yaml'}")
            return Result(run.out, state.step, (state.best or {}).get("scores", {}), interrupted=True)
        _finish(training)
        return conclude(task, run, training.state, show)


def _loop(training: Training, ahead: ReadAhead, interrupts: Interrupts) -> bool:
    """The loop itself. True if someone asked to stop, false if the run is at its end."""
    run, state, accelerator = training.run, training.state, training.accelerator
    rank = accelerator.process_index
    begun = time.monotonic() - state.seconds

    while not limit(run.loop, state):
        step_began = time.monotonic()
        batches, following = ahead.take(state.position)
        ahead.expect(following)
        own_targets = sum(batch.targets for _, batch, weight in batches if weight)
        state.seconds = step_began - begun
        over = rank == 0 and late(run.loop, state.seconds)
        targets, stop, over = agree(accelerator, own_targets, interrupts.wanted, over)
        if stop or over:
            return bool(stop)

        state.step += 1
        sums = _update(training, batches, max(targets, 1))
        if training.average:
            training.average.update(state.step)
        state.position = following
        seconds = time.monotonic() - step_began
        state.seconds += seconds
        for name, value in {**sums, "targets": targets, "seconds": seconds}.items():
            state.window[name] = state.window.get(name, 0.0) + value

        loss = sums["loss"] / max(own_targets, 1)
        training.show.step(state.step, state.position.epoch, loss, targets, seconds, *_done(training))
        if state.step % run.loop.log_every == 0:
            _log(training)
        if training.prepared.dev and state.step % run.loop.evaluate_every == 0:
            _evaluate(training)
        state.seconds = time.monotonic() - begun
        if state.step % (run.loop.save_every or run.loop.evaluate_every) == 0:
            _remember_recent(training)
            _save(training)
    return False


def _read_step(training: Training, start: Position) -> tuple[list[tuple[Position, Any, int]], Position]:
    """This process's batches of the step that starts at a position, each with its weight, and where the next starts.

    All of them are read before the first is used: the gradient is divided by the number of their real targets.
    """
    accelerator = training.accelerator
    ranks, rank = accelerator.num_processes, accelerator.process_index
    group, following = step_group(training.epoch_length, start, ranks * training.run.optimize.accumulate)
    batches = [(at, training.prepared.train.batch(at), weight) for at, weight in rank_share(group, ranks, rank)]
    if accelerator.device.type == "cuda":  # from pinned memory it is copied while the GPU computes
        batches = [(at, batch.pin_memory(), weight) for at, batch, weight in batches]
    return batches, following


def _update(training: Training, batches: list[tuple[Position, Any, int]], targets: int) -> dict[str, float]:
    """One step of the optimiser; returns the sums of loss and parts over this process's batches.

    Raises:
        RunError: loss or gradient is not finite (with fp16 the step is skipped and the loss scale lowered instead).
    """
    run, state, accelerator, optimizer = training.run, training.state, training.accelerator, training.optimizer
    set_rate(optimizer.optimizer, run.optimize.lr * factor(run.optimize, state.step, training.total_steps))
    optimizer.zero_grad(set_to_none=True)
    losses = []
    for i, (position, batch, weight) in enumerate(batches):
        randomness.seed_batch(run.seed, position)
        last = i == len(batches) - 1
        with nullcontext() if last else accelerator.no_sync(training.learner):
            total, parts = training.learner(batch.to(accelerator.device), state.step)
            # DDP takes the mean over the ranks of what is here a part of a sum: hence their number.
            accelerator.backward(total * (weight * accelerator.num_processes / targets))
        losses.append({"loss": total.detach(), **parts})

    accelerator.unscale_gradients(optimizer)
    weights = [parameter for parameter in training.model.parameters() if parameter.grad is not None]
    norm = nn.utils.get_total_norm([parameter.grad for parameter in weights])
    length = norm.item()
    if math.isfinite(length):
        state.skipped = 0
    else:
        state.skipped += 1
        if accelerator.scaler is None or state.skipped > MOST_SKIPPED:
            raise _not_finite(training, [position for position, *_ in batches], losses)
    if run.optimize.clip and math.isfinite(length) and length > run.optimize.clip:
        nn.utils.clip_grads_with_norm_(weights, run.optimize.clip, norm)
    optimizer.step()
    # A batch of weight 0 adds nothing, but every rank must know the same names.
    return {
        name: sum(loss[name].item() for loss, (*_, weight) in zip(losses, batches, strict=True) if weight)
        for name in losses[0]
    }


def _begin(
    run: Run,
    task: Task,
    accelerator: Accelerator,
    prepared: Prepared | None,
    saved: tuple[Path, State] | None,
    show: Display,
) -> Training:
    """Data, model, optimiser: new, from another run (``init``), or as they were at the last checkpoint."""
    with accelerator.main_process_first():  # it learns and saves the codec, the others read that
        prepared = prepare(task, run, prepared, accelerator.is_main_process)
    report = [*prepared.report, *(task.begin(run, prepared) if hasattr(task, "begin") else ())]
    for line in report:
        show.say(line)
    epoch_length = cache(prepared.train.epoch_length)
    if epoch_length(0) == 0:
        raise ConfigError("the training data make no batch", remedy="see the report above for what was dropped and why")

    randomness.seed_all(run.seed)
    model = build(run.model, task.config(prepared.codec, run.size))
    if run.init and not saved:
        if hasattr(task, "start_from"):
            told = task.start_from(run.init, model)
        else:
            _check_size(run, model)
            load_weights(model, run.init / "model.safetensors")
            told = [f"weights and codec are those of {run.init}: what --data says of a codec does not matter"]
        for line in told:
            show.say(line)
    elif not saved and hasattr(task, "fill"):
        for line in task.fill(model, prepared.codec):
            show.say(line)
    model.to(accelerator.device).train()
    freeze(model, run.optimize.freeze)
    if run.loop.recompute:
        recompute(model)
    optimizer = optimizer_for(model, run.optimize)
    average = MovingAverage(model, run.loop.ema) if run.loop.ema else None
    if accelerator.is_main_process:
        write_settings(run.out, task=run.task, **({"kind": run.kind} if run.kind else {}))
        describe_run(run, prepared.summary, report, sum(p.numel() for p in model.parameters()))

    state = State()
    learner = LossOf(task, model)
    total_steps = _total_steps(run, epoch_length(0), accelerator.num_processes)
    if saved:
        folder, state = saved
        checkpoint.load(folder, model, optimizer, average)
        state.finished = None  # the budget was raised
        if accelerator.is_main_process:
            truncate_scores(run.out, state.step)
        else:
            state.window = {}  # its sums are those of all ranks
        show.say(f"going on from step {state.step}")
    else:
        if accelerator.is_main_process:
            truncate_scores(run.out, -1)  # of a run that was killed before its first checkpoint
        batch = prepared.train.batch(Position()).to(accelerator.device)
        with accelerator.autocast():
            cost = estimate.probe(model, lambda: learner(batch, 0)[0] / max(batch.targets, 1))
        for line in estimate.lines(run, model, cost, total_steps):
            show.say(line)
    learner, optimizer = accelerator.prepare(learner, optimizer)
    if accelerator.scaler and state.scaler:
        accelerator.scaler.load_state_dict(state.scaler)
    board = Board(run.out, state.step) if run.loop.tensorboard and accelerator.is_main_process else None
    return Training(
        run,
        task,
        prepared,
        accelerator,
        model,
        learner,
        optimizer,
        average,
        state,
        show,
        board,
        epoch_length,
        total_steps,
    )


def _check_size(run: Run, model: nn.Module) -> None:
    """What a run starts from must be as large as it is; only what holds no weights may differ.

    Raises:
        ConfigError: it is not; the message names the first key that differs.
    """
    _, theirs = read_config(run.init, run.model)
    for key, value in vars(model.config).items():
        if key != "dropout" and getattr(theirs, key) != value:
            raise ConfigError(
                f"size.{key} is {value!r}, and the model of --init has {getattr(theirs, key)!r}",
                remedy="leave --size out: it is taken from --init",
            )


def _log(training: Training) -> None:
    """A line of training loss: the mean over the targets since the last one."""
    state, show = training.state, training.show
    _gather_window(training)
    window, state.window = state.window, {}
    if not training.accelerator.is_main_process:
        return
    targets, seconds = max(window.pop("targets"), 1), window.pop("seconds")
    line = {"step": state.step, "epoch": state.position.epoch}
    line |= {name: value / targets for name, value in window.items()}
    line["lr"] = training.optimizer.param_groups[0]["lr"]
    line |= {f"{show.unit}_per_second": round(targets / seconds, 1), "seconds": round(state.seconds, 1)}
    _record(training, line)


def _record(training: Training, line: dict[str, Any]) -> None:
    append_scores(training.run.out, line)
    if training.board:
        training.board.add(line)


def _evaluate(training: Training) -> None:
    """Score the weights (their moving average, if there is one) on dev, and keep them if they are the best so far."""
    run, state, task = training.run, training.state, training.task
    with training.average.in_place() if training.average else nullcontext():
        scores = _score(training)
        state.evaluated = state.step
        best = run.loop.best or task.best
        if state.best is None or _better(task, best, scores.values[best], state.best["scores"][best]):
            state.best = {"step": state.step, "scores": scores.values, "weights": f"best-{state.step:08d}.safetensors"}
            state.waited = 0
            if training.accelerator.is_main_process:
                save_weights(training.model, weights_file(run.out, state.best["weights"]))
                save_model(training.model, run.out, run.model)
        else:
            state.waited += 1
    if training.accelerator.is_main_process:
        line = {
            "step": state.step,
            "epoch": state.position.epoch,
            "dev": scores.values,
            "seconds": round(state.seconds, 1),
        }
        _record(training, line | ({"signatures": scores.signatures} if scores.signatures else {}))
    training.show.say(f"step {state.step}  dev: {words(scores.values)}" + ("" if state.waited else "  (best)"))
    for sample in scores.samples:
        training.show.say(sample)


def _score(training: Training) -> Scores:
    """The task's score on dev, by the first process for all; modes and random numbers are left as they were."""
    model, accelerator = training.model, training.accelerator
    told: list[Scores | None] = [None]
    if accelerator.is_main_process:
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        with randomness.kept(), torch.no_grad(), accelerator.autocast():
            told[0] = training.task.score(model, training.prepared)
        for module, mode in modes:
            module.training = mode
    if accelerator.num_processes > 1:
        broadcast_object_list(told)
    scores = told[0]
    best = training.run.loop.best or training.task.best
    if best not in scores.values:
        raise ConfigError(f"loop.best is {best!r}, which was not scored", remedy=nearest(best, scores.values))
    return scores


def _remember_recent(training: Training) -> None:
    """Keep these weights for the average of the last few."""
    run, state = training.run, training.state
    name = f"recent-{state.step:08d}.safetensors"
    if run.loop.average > 1 and name not in state.recent:
        if training.accelerator.is_main_process:
            save_weights(training.model, weights_file(run.out, name))
        state.recent = [*state.recent, name][-run.loop.average :]


def _save(training: Training) -> None:
    run, state, accelerator = training.run, training.state, training.accelerator
    _gather_window(training)
    if accelerator.scaler:
        state.scaler = accelerator.scaler.state_dict()
    if accelerator.is_main_process:
        checkpoint.save(run.out, state, training.model, training.optimizer.optimizer, training.average, run.loop.keep)
        if not state.best:  # there is nothing to judge weights by: the last ones are the run's
            with training.average.in_place() if training.average else nullcontext():
                save_model(training.model, run.out, run.model)
    accelerator.wait_for_everyone()


def _finish(training: Training) -> None:
    """Score the last weights and the mean of the last few, and leave the best of all in the run's folder."""
    run, state, task, model = training.run, training.state, training.task, training.model
    if training.prepared.dev and state.evaluated != state.step:
        _evaluate(training)
    _remember_recent(training)
    _save(training)
    best, first = run.loop.best or task.best, training.accelerator.is_main_process
    what, scores, file = f"of step {state.step}", {}, None
    if state.best:
        what, scores = f"of step {state.best['step']}", state.best["scores"]
        file = weights_file(run.out, state.best["weights"])
    mean = weights_file(run.out, f"mean-{state.step:08d}.safetensors") if len(state.recent) > 1 else None
    if mean:
        if first:
            averaging.save_mean([weights_file(run.out, name) for name in state.recent], mean)
        training.accelerator.wait_for_everyone()
        load_weights(model, mean)
        of_mean = _score(training).values if state.best else {}
        better = not state.best or _better(task, best, of_mean[best], scores[best])
        name = f"the mean of the last {len(state.recent)} checkpoints"
        training.show.say(f"{name}: {words(of_mean)}" + ("  (best)" if better else "  (not better)"))
        if better:
            what, scores, file = f"that are {name}", of_mean, mean

    state.finished = {"why": why_ended(run.loop, state), "weights": what, "scores": scores, "mean": mean and mean.name}
    if not first:
        return
    with training.average.in_place() if training.average and not file else nullcontext():
        if file:
            load_weights(model, file)
        save_model(model, run.out, run.model)
        if hasattr(task, "finish"):
            task.finish(model.eval(), training.prepared, run.out)
    _record(training, {"step": state.step, "final": scores, "weights": what})
    checkpoint.mark_finished(run.out, state)


def _gather_window(training: Training) -> None:
    """Sums since the last log line: all processes' together on the first one, nothing on the others."""
    window, accelerator = training.state.window, training.accelerator
    names = sorted(window.keys() - {"targets", "seconds"})  # these are everyone's already
    if accelerator.num_processes > 1 and names:
        kind = torch.float32 if accelerator.device.type == "mps" else torch.float64
        sums = torch.tensor([window[name] for name in names], dtype=kind, device=accelerator.device)
        window.update(zip(names, accelerator.reduce(sums, "sum").tolist(), strict=True))
        if not accelerator.is_main_process:
            window.update(dict.fromkeys(names, 0.0))


def _total_steps(run: Run, batches: int, ranks: int) -> int | None:
    """The last step, as far as steps and epochs tell it; later epochs count as long as the first."""
    of_epochs = run.loop.epochs and run.loop.epochs * math.ceil(batches / (ranks * run.optimize.accumulate))
    known = [steps for steps in (run.loop.most_steps, of_epochs) if steps]
    return min(known) if known else None


def _done(training: Training) -> tuple[float, float | None]:
    """The part of the run that is done, and the seconds left."""
    state, minutes = training.state, training.run.loop.minutes
    part = max(
        state.step / training.total_steps if training.total_steps else 0.0,
        state.seconds / (60 * minutes) if minutes else 0.0,
    )
    return part, state.seconds * (1 - part) / part if part else None


def _better(task: Task, name: str, new: float, old: float) -> bool:
    """Whether a score beats another; one that is not a number beats none."""
    if math.isnan(new) or math.isnan(old):
        return not math.isnan(new)
    return new > old if task.higher_is_better[name] else new < old


def _not_finite(training: Training, positions: list[Position], losses: list[dict[str, Tensor]]) -> RunError:
    """The error that names the step and its batches: those whose loss is at fault, else all."""
    bad = [at for at, loss in zip(positions, losses, strict=True) if not math.isfinite(loss["loss"].item())]
    batches = ", ".join(f"{at.batch}" for at in bad or positions)
    what = "loss" if bad else "gradient"
    epoch = training.state.position.epoch
    saved = checkpoint.latest(training.run.out)
    return RunError(
        f"the {what} is not a finite number at step {training.state.step} (epoch {epoch}, batches {batches} of it)",
        remedy="the weights were not changed by it; lower optimize.lr, lengthen optimize.warmup or set optimize.clip, "
        "in a new --out; " + (f"the checkpoint of step {saved[1].step} is whole" if saved else "nothing was saved yet"),
    )
