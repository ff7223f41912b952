"""What every trained model that answers for texts has: its codec, where it came from, and what it looked at."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from qkv.look.record import Trace
from qkv.models.saved import load_model
from qkv.tasks.encoder_look import Reading, look_at

__all__ = ["TextReader"]


@dataclass
class TextReader:
    """A model with its codec; a class of its own says how it answers, and gives ``reading`` and ``reading_of``."""

    model: nn.Module
    codec: Any
    folder: Path | None = None
    counts: Counter = field(default_factory=Counter)

    Codec: ClassVar[type]

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None) -> Self:
        """The model of a run's folder."""
        folder = Path(folder)
        return cls(load_model(folder).to(device or "cpu"), cls.Codec.load(folder / "codec"), folder)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def look(self, text: str, pair: str | None = None, **which: Any) -> Trace:
        """What the model looked at while it answered for a text (or a pair), and what its answer hangs on.

        ``which`` goes to `qkv.tasks.encoder_look.look_at`: layers, heads, queries, edit.
        """
        return self._look(self.reading(text, pair), **which)

    def look_at(self, answer: Any, **which: Any) -> Trace:
        """The same of an answer. What was cut off the end of a long text is not there to be looked at."""
        return self._look(self.reading_of(answer), **which)

    def _look(self, reading: Reading, **which: Any) -> Trace:
        seen = look_at(self.model, reading, **which)
        seen.notes["run"] = str(self.folder) if self.folder else ""
        return seen
