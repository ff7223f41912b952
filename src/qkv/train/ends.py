"""How a run begins and ends, whatever makes its steps: its data, its limits, and its last lines."""

from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator

from qkv.store import new_folder
from qkv.tasks.task import Prepared, Task
from qkv.train.checkpoint import State
from qkv.train.progress import Display, words
from qkv.train.run import Loop, Run

__all__ = ["Result", "agree", "conclude", "late", "limit", "prepare", "why_ended"]


@dataclass(frozen=True)
class Result:
    """What came of a run: its folder, the steps made, and the dev scores of the weights that were kept."""

    folder: Path
    step: int
    scores: dict[str, float]
    interrupted: bool = False


def prepare(task: Task, run: Run, prepared: Prepared | None, first: bool) -> Prepared:
    """The task's data; the codec is this run's own if it has one already, else that of ``init``, else learned."""
    own = run.out / "codec"
    if prepared is None:
        if own.exists():
            codec = task.load_codec(own)
        elif run.init:
            codec = getattr(task, "codec_from", task.load_codec)(run.init / "codec")
        else:
            codec = None
        prepared = task.prepare(run.data, run.out, run.seed, codec)
    if first and not own.exists():
        if run.init and hasattr(task, "inherit"):
            task.inherit(run.init, run.out)
        with new_folder(own) as partial:
            prepared.codec.save(partial)
    return prepared


def conclude(task: Task, run: Run, state: State, show: Display) -> Result:
    """The last lines: which weights were kept, their scores, and what to do with them."""
    scores = state.finished["scores"]
    show.say(f"{run.out} holds the weights {state.finished['weights']}" + (f": {words(scores)}" if scores else ""))
    for command in task.next_commands(run.out):
        show.say(f"  {command}")
    return Result(run.out, state.step, scores)


def why_ended(loop: Loop, state: State) -> str:
    """The limit or the time that was reached, or nothing."""
    return limit(loop, state) or (f"{loop.minutes:g} minutes" if late(loop, state.seconds) else "")


def limit(loop: Loop, state: State) -> str:
    """The limit that was reached, or nothing; every process finds the same, which it could not of the clock."""
    if loop.most_steps and state.step >= loop.most_steps:
        return f"{state.step} step{'s' * (state.step != 1)}"
    if loop.epochs and state.position.epoch >= loop.epochs:
        return f"{loop.epochs} epoch{'s' * (loop.epochs != 1)}"
    if loop.patience and state.waited >= loop.patience:
        return f"no better score in {loop.patience} evaluations"
    return ""


def late(loop: Loop, seconds: float) -> bool:
    return loop.minutes is not None and seconds >= 60 * loop.minutes


def agree(accelerator: Accelerator, targets: int, stop: bool, late: bool) -> tuple[int, bool, bool]:
    """The targets of all processes together; to stop, or that time is up, is enough for one to say."""
    if accelerator.num_processes > 1:
        said = torch.tensor([targets, stop, late], device=accelerator.device)
        targets, stop, late = accelerator.reduce(said, "sum").tolist()
    return targets, bool(stop), bool(late)
