"""A run: everything that decides what is trained, and how. Its YAML file trains it again."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from qkv.errors import ConfigError

__all__ = ["Loop", "Optimize", "Run", "Spread"]

Schedule = Literal["inverse-sqrt", "cosine", "constant"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class Optimize:
    """How the weights follow the gradient."""

    name: Literal["adamw", "adam"] = "adamw"
    """AdamW (Loshchilov and Hutter 2019, decoupled weight decay) or Adam (Kingma and Ba 2015)."""

    lr: float = 1e-3
    """Learning rate at its peak, reached when warm-up ends. The rate of Vaswani et al. 2017 is 1/sqrt(dim * warmup)."""

    schedule: Schedule = "inverse-sqrt"
    """After warm-up: inverse-sqrt (Noam; Vaswani et al. 2017, eq. 3), cosine to 0 at the last step, or constant."""

    warmup: int = 1000
    """Steps in which the learning rate grows linearly from 0 to its peak."""

    betas: tuple[float, float] = (0.9, 0.98)
    """Decay of Adam's running means of the gradient and of its square."""

    eps: float = 1e-9
    """Added to the root of Adam's mean square."""

    weight_decay: float = 0.01
    """Pull of matrices towards 0; biases, norms and other vectors are left alone."""

    layer_decay: float = 1.0
    """Each layer learns at this part of the rate of the layer after it, for fine-tuning (0.75, say); 1 is all alike."""

    freeze: str = ""
    """Modules that stay as they are, by name with commas between: patches,blocks.* leaves norm and head of a ViT."""

    clip: float = 1.0
    """Longest gradient, as the L2 norm over all weights; 0 is no limit."""

    accumulate: int = 1
    """Batches (on each process) that one step learns from."""

    def __post_init__(self):
        _one_of("optimize.name", self.name, ("adamw", "adam"))
        _one_of("optimize.schedule", self.schedule, ("inverse-sqrt", "cosine", "constant"))
        _within("optimize.lr", self.lr, above=0)
        _whole("optimize.warmup", self.warmup, 0)
        object.__setattr__(self, "betas", tuple(self.betas))  # YAML has lists only
        if len(self.betas) != 2:
            raise ConfigError(f"optimize.betas is {list(self.betas)}", expected="two numbers")
        for beta in self.betas:
            _within("optimize.betas", beta, least=0, below=1)
        _within("optimize.eps", self.eps, above=0)
        _within("optimize.weight_decay", self.weight_decay, least=0)
        _within("optimize.layer_decay", self.layer_decay, above=0)
        if self.layer_decay > 1:
            raise ConfigError(f"optimize.layer_decay is {self.layer_decay}", expected="more than 0, at most 1")
        _within("optimize.clip", self.clip, least=0)
        _whole("optimize.accumulate", self.accumulate, 1)


@dataclass(frozen=True)
class Loop:
    """How long to train, and what to do on the way. Training ends at the first limit that is reached."""

    steps: int | None = None
    """Most steps (updates of the weights); 10000 if no limit is given at all."""

    epochs: int | None = None
    """Most passes over the training data."""

    minutes: float | None = None
    """Most minutes by the clock, evaluations included, added up over all resumes."""

    evaluate_every: int = 500
    """Steps between scores on the dev data."""

    save_every: int | None = None
    """Steps between checkpoints; as evaluate_every if not given."""

    log_every: int = 50
    """Steps between lines of training loss in scores.jsonl."""

    patience: int | None = None
    """End after so many evaluations without a better score."""

    best: str | None = None
    """The dev score that patience and the best weights follow; the task's own choice if not given."""

    keep: int = 1
    """Checkpoints kept; older ones are removed."""

    average: int = 1
    """At the end, also try the mean of the weights at the last so many evaluations; 1 is no averaging."""

    ema: float = 0.0
    """Decay of a moving average of the weights (0.999, say), which is then what is evaluated and kept; 0 is none."""

    recompute: bool = False
    """Keep only what goes into each layer and compute it again for the gradient: a third more time, far less memory."""

    precision: Precision = "auto"
    """fp32, bf16 or fp16; auto takes bf16 or fp16 on a GPU that is good at it, and fp32 everywhere else."""

    tensorboard: bool = False
    """Also write TensorBoard files into the run folder."""

    def __post_init__(self):
        for key in ("steps", "epochs", "save_every", "patience"):
            if getattr(self, key) is not None:
                _whole(f"loop.{key}", getattr(self, key), 1)
        for key in ("evaluate_every", "log_every", "keep", "average"):
            _whole(f"loop.{key}", getattr(self, key), 1)
        if self.minutes is not None:
            _within("loop.minutes", self.minutes, above=0)
        _within("loop.ema", self.ema, least=0, below=1)
        _one_of("loop.precision", self.precision, ("auto", "fp32", "bf16", "fp16"))

    @property
    def most_steps(self) -> int | None:
        unlimited = self.steps is None and self.epochs is None and self.minutes is None
        return 10_000 if unlimited else self.steps


@dataclass(frozen=True)
class Spread:
    """On what to train. Several processes are started from outside: torchrun or accelerate launch -m qkv train ..."""

    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda, cuda:1, mps."""

    threads: int | None = None
    """CPU threads of each process; all cores if not given. Other threads round otherwise: resume with as many."""

    def __post_init__(self):
        if self.device.split(":")[0] not in ("auto", "cpu", "cuda", "mps", "xpu"):
            raise ConfigError(f"spread.device is {self.device!r}", expected="auto, cpu, cuda, cuda:1 or mps")
        if self.threads is not None:
            _whole("spread.threads", self.threads, 1)


@dataclass(frozen=True)
class Run:
    """Everything a run is."""

    task: str
    """What is learned: a name in qkv.tasks.TASKS."""

    kind: str = field(default="", kw_only=True)
    """What it is learned from, for tasks that have a choice: pictures, texts ..."""

    model: str
    """What learns it: a name in qkv.models.MODELS, or own.py:Class."""

    out: Path
    """The run's folder: model, codec, scores, checkpoints."""

    data: Any
    """The user's files: the task's Data."""

    size: Any
    """The model's Config; what only the codec knows (vocabulary sizes, classes) the task fills in later."""

    learn: Mapping[str, Any] = field(default_factory=dict)
    """What the task's constructor takes (label smoothing, say)."""

    optimize: Optimize = field(default_factory=Optimize)
    loop: Loop = field(default_factory=Loop)
    spread: Spread = field(default_factory=Spread)

    seed: int = 0
    """Decides first weights, order of the data and dropout."""

    init: Path | None = None
    """A run to start from (fine-tuning): its weights and its codec."""

    resume: bool = True
    """Go on with the run in the folder if there is one; false refuses to touch it."""

    def __post_init__(self):
        _whole("seed", self.seed, 0)
        if self.optimize.schedule == "cosine" and self.loop.most_steps is None and self.loop.epochs is None:
            raise ConfigError(
                "optimize.schedule cosine must know the last step, and loop.minutes does not tell it",
                remedy="give loop.steps or loop.epochs too",
            )


def _whole(key: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{key} is {value!r}", expected=f"a whole number from {least}")


def _within(
    key: str, value: float, *, least: float = -math.inf, above: float = -math.inf, below: float = math.inf
) -> None:
    if isinstance(value, (int, float)) and math.isfinite(value) and value >= least and above < value < below:
        return
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("from", least), ("above", above), ("below", below))
        if math.isfinite(bound)
    ]
    raise ConfigError(f"{key} is {value!r}", expected="a number " + ", ".join(bounds))


def _one_of(key: str, value: Any, known: Collection[str]) -> None:
    if value not in known:
        raise ConfigError(f"{key} is {value!r}", expected="one of " + ", ".join(known))
