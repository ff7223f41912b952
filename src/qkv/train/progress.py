"""What a person sees while training: one line that moves on a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

__all__ = ["Display", "clock", "words"]

PLAIN_SECONDS = 10  # between plain lines, where there is no terminal


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
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), console=self.console, transient=True
        ) if self.console.is_terminal and not silent else None  # fmt: skip
        self._task = self._bar.add_task("starting", total=1.0) if self._bar else None
        self._shown = 0.0

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

    def step(self, line: dict[str, Any], done: float, left: float | None) -> None:
        """Where training is: a line of training loss, the part done (0 to 1), and the seconds left if known."""
        text = (
            f"step {line['step']}  epoch {line['epoch']}  loss {line['loss']:.4f}  "
            f"{line[f'{self.unit}_per_second']:,.0f} {self.unit}/s"
        ) + (f"  {clock(left)} left" if left is not None else "")
        if self._bar:
            self._bar.update(self._task, description=text, completed=min(done, 1.0))
        elif time.monotonic() - self._shown >= PLAIN_SECONDS:
            self._shown = time.monotonic()
            self.console.print(text)


def clock(seconds: float) -> str:
    """``90`` as ``1:30``, ``3700`` as ``1:01:40``."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def words(scores: dict[str, float]) -> str:
    """``loss 1.2345  bleu 30.12``."""
    return "  ".join(f"{name} {value:.4g}" for name, value in scores.items())
