"""The lines of scores.jsonl, for TensorBoard too."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError

__all__ = ["Board", "require_board"]


def require_board() -> None:
    """Raise ConfigError where TensorBoard is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ConfigError(
            "loop.tensorboard is true, but TensorBoard is not installed", remedy="pip install 'qkv[tensorboard]'"
        )


class Board:
    """Event files in ``tensorboard/`` of a run's folder, beginning anew after ``step``."""

    def __init__(self, run: Path, step: int):
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(run / "tensorboard", purge_step=step + 1)

    def add(self, line: Mapping[str, Any]) -> None:
        """Show a line of scores.jsonl: training under its names, dev scores under ``dev/``."""
        values = {f"dev/{name}": value for name, value in line.get("dev", {}).items()}
        values |= {name: value for name, value in line.items() if isinstance(value, (int, float)) and name != "step"}
        for name, value in values.items():
            self._writer.add_scalar(name, value, line["step"])
        self._writer.flush()
