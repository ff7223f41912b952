"""What is learned: the only thing that the training loop knows about a task.

A task turns the user's files into batches and a codec, gives a loss, a score on held-out data, and answers. The loop
has no ``if task``; a new task is a new file that fits `Task`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

__all__ = ["Batches", "Learner", "Loss", "Position", "Prepared", "Scores", "Task"]


@dataclass(frozen=True)
class Loss:
    """A batch's loss, **summed** over its real targets (never averaged: the loop divides by the step's total).

    ``parts`` names summed quantities worth logging (``{"nll": ..., "correct": ...}``), each detached.
    """

    total: Tensor
    parts: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Position:
    """A place in the endless stream of training batches: resume is a jump to it, not a replay."""

    epoch: int = 0
    batch: int = 0


class Batches(Protocol):
    """Training batches as a pure function of (seed, position).

    A batch has ``targets`` (int: how many real targets its loss is summed over), ``size`` (int: sentences, images),
    ``to(device)``, and ``pin_memory()``.
    """

    def epoch_length(self, epoch: int) -> int: ...

    def batch(self, position: Position) -> Any: ...


@dataclass(frozen=True)
class Prepared:
    """The user's data made ready: training batches, held-out batches in a fixed order, and the codec."""

    train: Batches
    dev: list[Any]  # batches, padded, each evaluated once
    codec: Any  # has save(folder) and vocabulary sizes; knows how raw data becomes numbers and back
    report: list[str]  # lines for the user: what was read, dropped and why
    summary: dict[str, Any]  # the same as plain data, for run.json: counts, hashes


@dataclass(frozen=True)
class Scores:
    """Held-out scores by name (``loss``, ``bleu``, ``chrf`` ...), and lines that show a few answers."""

    values: dict[str, float]
    samples: list[str] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)


class Learner(Protocol):
    """What makes a model's steps itself, in compiled code, where autograd and an optimiser would be too slow.

    An epoch has ``parts``; what a part does is a function of (seed, position), the weights, and ``tensors``.
    """

    parts: int
    unit: str  # what its targets are called

    def estimate(self) -> list[str]:
        """Memory, disk, and whether a run gives the same each time, in words."""
        ...

    def part(self, position: Position) -> dict[str, float]:
        """Change the weights; sums over the part: ``loss``, ``looked`` (what the loss is divided by), ``targets``."""
        ...

    def rate(self, position: Position) -> float: ...

    def averaged(self) -> list[Tensor]:
        """What several processes average after each part."""
        ...

    def tensors(self) -> Mapping[str, Tensor]:
        """What is saved beside the weights to go on from here."""
        ...

    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


class Task(Protocol):
    """One file in ``qkv/tasks`` each: ``translate``, later ``classify``, ``tag``, ``caption``, ``pretrain`` ..."""

    name: str
    Data: type  # dataclass: which files of the user, and how to read them
    models: tuple[str, ...]  # names in qkv.models.MODELS that can learn it; the first is the default
    best: str  # the score that early stopping and the best weights follow by default
    higher_is_better: Mapping[str, bool]
    from_codec: tuple[str, ...]  # fields of the model's config that only the codec knows: no one is asked for them
    unit: str  # what a real target is called in the plural (``tokens``), for the progress line

    # A task may have a constructor with keywords and defaults (label smoothing): they are the options --learn.KEY.
    # Those that mean something to some of its models only are named in ``only``: KEY -> those models.

    def prepare(self, data: Any, folder: Path, seed: int, codec: Any | None = None) -> Prepared:
        """Read and check the user's files; learn the codec unless one is given; keep what is derived in ``folder``.

        ``summary["files_hash"]``, if given, keeps a run from going on with files that have changed.
        """
        ...

    def load_codec(self, folder: Path) -> Any:
        """The codec that its ``save`` left in a folder."""
        ...

    def inherit(self, init: Path, folder: Path) -> None:
        """Called once when a run starts from another, if there is such a method: what else is taken over from it."""
        ...

    def codec_from(self, folder: Path) -> Any:
        """What a new run takes over of another's codec, if there is such a method; all of it if not."""
        ...

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """Fill a new model from another run, if there is such a method; if not, the two must be alike.

        Returns lines for the user: which weights are new and must be learned.
        """
        ...

    def fill(self, model: nn.Module, codec: Any) -> list[str]:
        """If there is such a method: what a new model that starts from no run starts from instead (word vectors).

        Returns lines for the user.
        """
        ...

    def begin(self, run: Any, prepared: Prepared) -> list[str]:
        """Called once before a run trains or goes on, if there is such a method: what its loss needs of the data.

        Returns lines for the user: what was chosen, and which known traps the run is in.
        """
        ...

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """If there is such a method: settings that suit the run's model and data, as nested keys of its YAML file.

        They take the place of defaults; what the user says wins. Only a ``model`` takes the place of the one named.
        """
        ...

    def config(self, codec: Any, size: Any) -> Any:
        """The model's config with what only the codec knows filled in (vocabulary sizes, classes)."""
        ...

    def learner(self, model: nn.Module, prepared: Prepared, run: Any, rank: int, ranks: int, tell: Any) -> Learner:
        """What makes the steps in place of the loop, if ``compiled(run)`` says that there is such a thing."""
        ...

    def loss(self, model: nn.Module, batch: Any, step: int = 0) -> Loss:
        """The loss of a batch. ``step`` is the number of the update that it is for, from 1: some losses change."""
        ...

    def score(self, model: nn.Module, prepared: Prepared) -> Scores: ...

    def finish(self, model: nn.Module, prepared: Prepared, folder: Path) -> None:
        """Called once at the end with the best weights, if there is such a method: what else belongs in the folder."""
        ...

    def next_commands(self, folder: Path) -> list[str]:
        """The exact commands a user would type next, printed at the end of training."""
        ...


BatchStream = Iterator[tuple[Position, Any]]
