"""Learning rates with known values, who decays, and which precision a device gets."""

import math

import pytest
import torch
import toy

from qkv.errors import ConfigError
from qkv.train import devices
from qkv.train.folder import read_scores
from qkv.train.loop import train
from qkv.train.optimizer import factor, optimizer_for
from qkv.train.run import Optimize


def test_inverse_sqrt_is_the_papers_schedule():
    """Vaswani et al. 2017, eq. 3: dim**-0.5 * min(step**-0.5, step * warmup**-1.5)."""
    dim, warmup = 512, 4000
    how = Optimize(lr=(dim * warmup) ** -0.5, warmup=warmup)
    for step in (1, 100, 3999, 4000, 4001, 100_000):
        assert how.lr * factor(how, step) == pytest.approx(dim**-0.5 * min(step**-0.5, step * warmup**-1.5), rel=1e-12)
    assert how.lr * factor(how, 4000) == pytest.approx(6.98771e-4, rel=1e-5)


def test_cosine():
    how = Optimize(schedule="cosine", warmup=10)
    values = {1: 0.1, 5: 0.5, 10: 1.0, 35: (1 + math.cos(math.pi / 4)) / 2, 60: 0.5, 110: 0.0, 200: 0.0}
    for step, value in values.items():
        assert factor(how, step, total=110) == pytest.approx(value, abs=1e-12)


def test_constant():
    how = Optimize(schedule="constant", warmup=4)
    assert [factor(how, step) for step in (1, 2, 3, 4, 5, 1000)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert factor(Optimize(schedule="constant", warmup=0), 1) == 1


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "constant"])
def test_the_loop_uses_it(toy_run, schedule):
    run = toy_run(schedule, optimize={"schedule": schedule, "warmup": 3, "lr": 0.5}, loop={"steps": 6, "log_every": 1})
    train(run)
    lines = [line for line in read_scores(run.out) if "lr" in line]
    assert [line["lr"] for line in lines] == [0.5 * factor(run.optimize, step, 6) for step in range(1, 7)]


def test_only_matrices_decay():
    model = toy.MLP(toy.MLPConfig(classes=2, tied=True))
    optimizer = optimizer_for(model, Optimize(weight_decay=0.3))
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    named = {name: decay[id(p)] for name, p in model.named_parameters()}
    assert {name for name, value in named.items() if value} == {"first.weight", "middle.weight", "last.weight"}
    assert len(decay) == len(named)  # a tied weight once
    assert optimizer.defaults["fused"]


def test_precision_on_a_cpu(monkeypatch):
    monkeypatch.setattr(devices, "_cpu_has_bf16", lambda: False)
    assert devices.precision_for("cpu", "auto") == devices.precision_for("cpu", "fp32") == "fp32"
    with pytest.raises(
        ConfigError, match=r"loop.precision is bf16, but this CPU has no bf16 instructions.*expected fp32"
    ):
        devices.precision_for("cpu", "bf16")
    with pytest.raises(ConfigError, match=r"loop.precision is fp16"):
        devices.precision_for("cpu", "fp16")
    monkeypatch.setattr(devices, "_cpu_has_bf16", lambda: True)
    assert devices.precision_for("cpu", "bf16") == "bf16"
    assert devices.precision_for("cpu", "auto") == "fp32"


def test_precision_on_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert devices.precision_for("cuda", "auto") == "bf16"
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert devices.precision_for("cuda", "auto") == "fp16"
    with pytest.raises(ConfigError, match="only emulates it"):
        devices.precision_for("cuda", "bf16")


def test_a_device_that_is_not_there(toy_run, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"spread.device is cuda, but this machine has none. Use --spread.device cpu"):
        train(toy_run(spread={"device": "cuda"}))


def test_bf16_trains_and_keeps_fp32_weights(toy_run, monkeypatch):
    monkeypatch.setattr(devices, "_cpu_has_bf16", lambda: True)
    run = toy_run(loop={"precision": "bf16", "steps": 4})
    assert train(run).step == 4
    train(toy_run("fp32", loop={"steps": 4}))  # the next run in this process has its own precision
