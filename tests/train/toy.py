"""A task small enough to train in a blink: tell whether a row of bits holds more ones than zeros."""

import json
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkv import models, tasks
from qkv.tasks.task import Loss, Position, Prepared, Scores

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Bits:
    """Rows of random bits."""

    rows: int = 20
    """Rows to train on."""
    width: int = 6
    """Bits in a row."""
    batch: int = 2
    """Rows in a batch."""


@dataclass(frozen=True)
class Batch:
    rows: list[int]
    bits: Tensor
    labels: Tensor

    @property
    def targets(self) -> int:
        return len(self.rows)

    size = targets

    def to(self, device) -> "Batch":
        return Batch(self.rows, self.bits.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Shuffled:
    data: Bits
    bits: Tensor
    seed: int

    def epoch_length(self, epoch: int) -> int:
        return -(-self.data.rows // self.data.batch)

    def batch(self, position: Position) -> Batch:
        order = torch.randperm(
            self.data.rows, generator=torch.Generator().manual_seed(self.seed * 1000 + position.epoch)
        )
        rows = order[position.batch * self.data.batch : (position.batch + 1) * self.data.batch]
        return batch_of(self.bits, rows.tolist())


def batch_of(bits: Tensor, rows: list[int]) -> Batch:
    chosen = bits[rows]
    return Batch(rows, chosen, (chosen.sum(1) > bits.shape[1] / 2).long())


@dataclass(frozen=True)
class Codec:
    classes: int = 2

    def save(self, folder: Path) -> None:
        (folder / "codec.json").write_text(json.dumps({"classes": self.classes}))


class Toy:
    """Bits to a class."""

    name, Data, models = "toy", Bits, ("mlp",)
    best, higher_is_better = "loss", {"loss": False, "accuracy": True}
    from_codec, unit = ("classes",), "rows"
    computed = 0
    seen: list = []  # noqa: RUF012  (step by step: the rows of each batch and its loss, for the tests)

    def prepare(self, data, folder, seed, codec=None) -> Prepared:
        generator = torch.Generator().manual_seed(7)
        bits = torch.randint(0, 2, (data.rows + 8, data.width), generator=generator).float()
        dev = [batch_of(bits, list(range(data.rows, data.rows + 8)))]
        summary = {"rows": data.rows, "files_hash": str(bits.sum().item())}
        return Prepared(Shuffled(data, bits, seed), dev, codec or Codec(), [f"{data.rows} rows"], summary)

    def load_codec(self, folder: Path) -> Codec:
        return Codec(**json.loads((folder / "codec.json").read_text()))

    def config(self, codec, size):
        return replace(size, classes=codec.classes)

    def loss(self, model, batch, step=0) -> Loss:
        logits = model(batch.bits)
        total = functional.cross_entropy(logits, batch.labels, reduction="sum")
        if torch.is_grad_enabled():
            self.spring(model)
            if self.nan:
                total = total * float("nan")
            Toy.seen.append((tuple(batch.rows), total.item()))
        return Loss(total, {"correct": (logits.argmax(1) == batch.labels).sum()})

    def finish(self, model, prepared, folder) -> None:
        (folder / "finished").write_text("with the best weights")

    nan = False
    trap = ""  # kill:7, stop:7 or nan:7: what happens in the 7th loss that this process computes

    def spring(self, model) -> None:
        Toy.computed += 1
        kind, _, when = Toy.trap.partition(":")
        self.nan = False
        if kind and Toy.computed == int(when):
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "stop":
                os.kill(os.getpid(), signal.SIGINT)
            self.nan = kind == "nan"

    def score(self, model, prepared) -> Scores:
        assert not model.training
        torch.rand(3)  # whoever draws here must not disturb the training
        (batch,) = prepared.dev
        loss = self.loss(model, batch)
        values = {"loss": loss.total.item() / batch.targets, "accuracy": loss.parts["correct"].item() / batch.targets}
        return Scores(values, ["a sample"])

    def next_commands(self, folder: Path) -> list[str]:
        return [f"qkv guess {folder}"]


@dataclass(frozen=True)
class MLPConfig:
    """A small network."""

    classes: int = 0
    width: int = 6
    hidden: int = 8
    dropout: float = 0.1
    tied: bool = False
    double: bool = False
    spare: bool = False  # a second head, used for batches that start with an even row only


class MLP(nn.Module):
    """Two layers, one of them (or both, tied) square."""

    Config = MLPConfig
    SIZES = {"small": {"hidden": 8}, "large": {"hidden": 16}}  # noqa: RUF012

    def __init__(self, config: MLPConfig):
        super().__init__()
        self.config = config
        self.first = nn.Linear(config.width, config.hidden)
        self.middle = nn.Linear(config.hidden, config.hidden, bias=False)
        self.again = nn.Linear(config.hidden, config.hidden, bias=False)
        if config.tied:
            self.again.weight = self.middle.weight
        self.norm = nn.LayerNorm(config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.last = nn.Linear(config.hidden, config.classes)
        self.spare = nn.Linear(config.hidden, config.classes) if config.spare else None
        if config.double:
            self.double()

    def forward(self, bits: Tensor) -> Tensor:
        bits = bits.to(self.first.weight.dtype)
        hidden = self.dropout(self.again(torch.relu(self.middle(torch.relu(self.first(bits))))))
        hidden = self.norm(hidden)
        head = self.spare if self.spare is not None and bits.sum() % 2 == 0 else self.last
        return head(hidden)


def kill_in_save(when: int) -> None:
    """Die after the weights of the ``when``-th checkpoint are written and before its state is."""
    from qkv.train import checkpoint

    written, saves = checkpoint.save_weights, []

    def save_weights(model, path) -> None:
        written(model, path)
        saves.append(path)
        if len(saves) == when:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoint.save_weights = save_weights


LOOP = {"steps": 15, "evaluate_every": 4, "save_every": 2, "log_every": 3, "average": 3}


def values(out: Path, **changes) -> dict:
    """The keywords of a toy run."""
    values = {"out": str(out), "loop": LOOP, "optimize": {"warmup": 2, "lr": 0.01}}
    for key, value in changes.items():
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    return values


def install() -> None:
    tasks.TASKS["toy"] = "toy:Toy"
    models.MODELS["mlp"] = "toy:MLP"


def in_a_process(values: dict, trap: str = "", rank: int = 0, ranks: int = 1, port: int = 0) -> None:
    """Train in this process, of which a test has made one or several."""
    if ranks > 1:
        os.environ |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
        }
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    install()
    Toy.trap = trap
    from qkv.train.loop import train
    from qkv.train.options import from_mapping

    torch.set_num_threads(1)
    kind, _, when = trap.partition(":")
    if kind == "kill-save":
        kill_in_save(int(when))
    result = train(from_mapping("toy", values))
    os._exit(130 if result.interrupted else 0)  # at once: gloo may complain about the other rank's leaving
