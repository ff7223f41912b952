import multiprocessing
import socket
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
        return from_mapping("toy", toy.values(tmp_path / name, **changes))

    return make


@pytest.fixture(scope="session")
def processes():
    """Start processes that have imported torch already: ``processes(count, values, trap)`` gives their exit codes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["toy", "qkv.train.loop", "qkv.train.options"])

    def start(count: int, values: dict, *traps: str) -> list[int]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        traps = [*traps, *[""] * count][:count]
        started = [
            context.Process(target=toy.in_a_process, args=(values, traps[i], i, count, port)) for i in range(count)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join(60)
            if process.is_alive():
                process.kill()
                raise TimeoutError("a process hangs")
        return [process.exitcode for process in started]

    return start
