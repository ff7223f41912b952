"""What a person sees while training: one line that moves on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from qkv.tasks.number_scores import shown

__all__ = ["Display", "clock", "words"]

PLAIN_SECONDS = 10  # between plain lines, where there is no terminal
SMOOTHING = 0.9  # of the rate and loss that are shown: about the last 10 steps


class Display:
    """Shows a run's progress; silent on every process but the first.

    Args:
        unit: what real targets are called (``tokens``).
    """

    def __init__(self, unit: str, silent: bool):
        self.unit = unit
        self.console = Console(
            file=sys.stdout, quiet=silent, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        moving = self.console.is_terminal and not silent
        self._bar = Progress(BarColumn(12), TextColumn("{task.description}", markup=False), console=self.console,
                             transient=True) if moving else None  # fmt: skip
        self._line = self._bar.add_task("starting", total=1.0) if self._bar else None
        self._shown = 0.0
        self._smooth: dict[str, float] = {}

    def __enter__(self) -> "Display":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text)

    def step(
        self, step: int, epoch: int, loss: float, targets: int, seconds: float, done: float, left: float | None
    ) -> None:
        """Where training is.

        Args:
            loss, targets, seconds: of the step that was made: mean loss of a target, targets, seconds it took.
            done, left: the part of the run that is done (0 to 1) and the seconds left, if they are known.
        """
        for name, value in {"loss": loss, "targets": targets, "seconds": seconds}.items():
            self._smooth[name] = SMOOTHING * self._smooth.get(name, value) + (1 - SMOOTHING) * value
        now = time.monotonic()
        if self._bar is None and now - self._shown < PLAIN_SECONDS:
            return
        rate = self._smooth["targets"] / self._smooth["seconds"]
        text = f"step {step}  epoch {epoch}  loss {self._smooth['loss']:.4f}  {rate:,.0f} {self.unit}/s"
        text += f"  {clock(left)} left" if left is not None else ""
        if self._bar:
            self._bar.update(self._line, description=text, completed=min(done, 1.0))
        else:
            self.console.print(text)
            self._shown = now


def clock(seconds: float) -> str:
    """``90`` as ``1:30``, ``3700`` as ``1:01:40``."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def words(scores: Mapping[str, float]) -> str:
    """``loss 1.2345  bleu 30.12``."""
    return "  ".join(shown(name, value, ".4g") for name, value in scores.items())
