import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import toy

from qkv import models, tasks
from qkv.train.options import from_mapping
from qkv.train.run import Run

LOOP = {"steps": 15, "evaluate_every": 4, "save_every": 2, "log_every": 3, "average": 3}


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setitem(tasks.TASKS, "toy", "toy:Toy")
    monkeypatch.setitem(models.MODELS, "mlp", "toy:MLP")
    monkeypatch.setattr(toy.Toy, "computed", 0)
    monkeypatch.setattr(toy.Toy, "seen", [])
    monkeypatch.setattr(toy.Toy, "trap", "")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def toy_run(tmp_path) -> Callable[..., Run]:
    """A run of the toy task: ``toy_run("name", loop={"steps": 3})``."""

    def make(name: str = "run", **changes) -> Run:
        values = {"out": str(tmp_path / name), "loop": LOOP, "optimize": {"warmup": 2, "lr": 0.01}}
        for key, value in changes.items():
            values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
        return from_mapping("toy", values)

    return make
