"""The arithmetic of a step: one mean over all its real targets, however they are shared out."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
import torch
import toy
from torch import nn

from qkv import models, tasks
from qkv.errors import ConfigError, RunError
from qkv.models.saved import load_model
from qkv.store import read_tensors
from qkv.tasks.task import Loss, Position
from qkv.train.checkpoint import latest
from qkv.train.folder import read_scores
from qkv.train.loop import train
from qkv.train.options import from_mapping
from qkv.train.share import rank_share, step_group


def last_tensors(out) -> dict[str, torch.Tensor]:
    """Weights and Adam's means, which are linear in the gradients, after the last step."""
    folder, _ = latest(out)
    return {**read_tensors(folder / "model.safetensors")[0], **read_tensors(folder / "optimizer.safetensors")[0]}


def assert_close(first, second, tolerance):
    first, second = last_tensors(first), last_tensors(second)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        torch.testing.assert_close(tensor, second[name], rtol=tolerance, atol=tolerance, msg=name)


def losses(out) -> list[float]:
    return [line["loss"] for line in read_scores(out) if "loss" in line]


# --- one step


@dataclass(frozen=True)
class Nothing:
    pass


class Given(toy.Toy):
    """Losses that are given: 1 and 3, then eight times 0.5; each is multiplied by the only weight, which is 1."""

    name, Data, from_codec = "given", Nothing, ()

    def prepare(self, data, folder, seed, codec=None):
        given = [torch.tensor([1.0, 3.0]), torch.full((8,), 0.5)]
        batches = [SimpleNamespace(targets=len(values), values=values, to=lambda device: None) for values in given]
        for batch in batches:
            batch.to = lambda device, batch=batch: batch
        train = SimpleNamespace(epoch_length=lambda epoch: 2, batch=lambda at: batches[at.batch])
        return SimpleNamespace(train=train, dev=[], codec=toy.Codec(), report=[], summary={})

    def config(self, codec, size):
        return size

    def loss(self, model, batch, step):
        return Loss((batch.values * model.weight).sum())


class One(nn.Module):
    Config = Nothing

    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones((), dtype=torch.float64))


def test_mean_over_all_targets_of_the_step(tmp_path, monkeypatch):
    """BL-39: 0.8, not the mean of means 1.25."""
    monkeypatch.setattr(toy.Toy, "models", ("one",))
    monkeypatch.setitem(tasks.TASKS, "given", f"{__name__}:Given")
    monkeypatch.setitem(models.MODELS, "one", f"{__name__}:One")
    loop, optimize = {"steps": 1, "log_every": 1}, {"accumulate": 2, "clip": 0.0, "warmup": 0}
    train(from_mapping("given", {"out": tmp_path / "run", "loop": loop, "optimize": optimize}))
    assert losses(tmp_path / "run") == [pytest.approx(0.8, abs=1e-12)]
    gradient = last_tensors(tmp_path / "run")["exp_avg/weight"].item() / (1 - 0.9)
    assert gradient == pytest.approx(0.8, abs=1e-6)


def test_accumulation_is_a_larger_batch(toy_run):
    """In fp64, with a last group that is partial (22 rows: 11 batches of 2, in groups of 2)."""
    size = {"double": True, "dropout": 0.0}
    train(toy_run("large", size=size, data={"rows": 22, "batch": 4}))
    train(toy_run("small", size=size, data={"rows": 22, "batch": 2}, optimize={"accumulate": 2}))
    assert_close(toy_run("large").out, toy_run("small").out, 1e-9)
    assert losses(toy_run("large").out) == pytest.approx(losses(toy_run("small").out), rel=1e-9)


# --- several processes


def test_two_ranks_are_one_with_twice_the_batches(toy_run, tmp_path, processes):
    """BL-50: 7 batches an epoch, so that the ranks have 4 and 3; a head that some steps do not use; dropout."""
    changes = {"data": {"rows": 14}, "size": {"dropout": 0.1, "spare": True}, "loop": {"ema": 0.5, "steps": 9}}
    assert processes(2, toy.values(tmp_path / "two", **changes)) == [0, 0]
    train(toy_run("one", **changes, optimize={"accumulate": 2}))
    assert_close(tmp_path / "one", tmp_path / "two", 1e-5)
    assert losses(tmp_path / "one") == pytest.approx(losses(tmp_path / "two"), rel=1e-5)
    scores = [[line for line in read_scores(tmp_path / name) if "dev" in line] for name in ("one", "two")]
    for one, two in zip(*scores, strict=True):
        assert one["step"] == two["step"] and one["dev"] == pytest.approx(two["dev"], rel=1e-5)


def test_two_ranks_stop_together_and_go_on(toy_run, tmp_path, processes):
    changes = {"size": {"dropout": 0.0}, "data": {"rows": 14}, "loop": {"steps": 9}}
    values = toy.values(tmp_path / "two", **changes)
    assert processes(2, values, "", "stop:7") == [130, 130]  # only one of them is told
    step = latest(tmp_path / "two")[1].step
    assert 0 < step < 9
    assert processes(2, values) == [0, 0]
    train(toy_run("one", **changes, optimize={"accumulate": 2}))
    assert_close(tmp_path / "one", tmp_path / "two", 1e-5)
    assert losses(tmp_path / "one") == pytest.approx(losses(tmp_path / "two"), rel=1e-5)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("accumulate", [1, 2, 4])
def test_each_batch_is_used_once_an_epoch(ranks, accumulate):
    at, used, lengths = Position(), [], {0: 7, 1: 3, 2: 5}
    while at.epoch < 3:
        group, at = step_group(lengths.__getitem__, at, ranks * accumulate)
        shares = [rank_share(group, ranks, rank) for rank in range(ranks)]
        assert len({len(share) for share in shares}) == 1  # or someone waits for ever
        used += [position for share in shares for position, weight in share if weight]
    assert sorted(used, key=lambda p: (p.epoch, p.batch)) == [
        Position(e, b) for e in lengths for b in range(lengths[e])
    ]


# --- what goes wrong


def test_a_loss_that_is_not_finite_stops_the_run(toy_run, monkeypatch):
    monkeypatch.setattr(toy.Toy, "trap", "nan:9")  # 2 of the estimate, 2 a step: the first batch of step 4
    with pytest.raises(
        RunError,
        match=r"loss is not a finite number at step 4 \(epoch 0, batches 6 of it\).*checkpoint of step 2 is whole",
    ):
        train(toy_run(optimize={"accumulate": 2}))
    monkeypatch.setattr(toy.Toy, "trap", "")
    assert all(t.isfinite().all() for t in last_tensors(toy_run().out).values())
    assert train(toy_run(optimize={"accumulate": 2})).step == 15


def test_the_best_weights_are_kept(toy_run):
    result = train(toy_run(loop={"steps": 40, "average": 1}, optimize={"lr": 0.05}))
    lines = [line for line in read_scores(result.folder) if "dev" in line]
    best = min(lines, key=lambda line: line["dev"]["loss"])
    assert result.scores == best["dev"]
    task = toy.Toy()
    prepared = task.prepare(toy.Bits(), result.folder, 0)
    assert task.score(load_model(result.folder), prepared).values == best["dev"]
    assert read_scores(result.folder)[-1]["weights"] == f"of step {best['step']}"


def test_patience(toy_run):
    result = train(toy_run(loop={"steps": 400, "patience": 2, "average": 1, "best": "accuracy"}))
    lines = [line for line in read_scores(result.folder) if "dev" in line]
    best = max(range(len(lines)), key=lambda i: (lines[i]["dev"]["accuracy"], -i))
    assert result.step < 400 and best == len(lines) - 3


def test_a_score_that_is_not_one(toy_run):
    with pytest.raises(ConfigError, match=r"loop.best is 'acuracy'.*Did you mean 'accuracy'"):
        train(toy_run(loop={"best": "acuracy"}))
    assert not toy_run().out.exists()


def test_evaluation_disturbs_nothing(toy_run):
    train(toy_run("often", loop={"evaluate_every": 1, "average": 1}))
    train(toy_run("once", loop={"evaluate_every": 100, "average": 1}))
    assert_close(toy_run("often").out, toy_run("once").out, 0)


def test_minutes(toy_run):
    result = train(toy_run(loop={"steps": None, "minutes": 0.005}))
    assert result.step > 0
    assert train(toy_run(loop={"steps": None, "minutes": 0.005})).step == result.step  # finished


def test_fine_tuning_starts_from_the_other_runs_weights(toy_run):
    first = train(toy_run("first", size={"hidden": 5}))
    tuned = toy_run("tuned", init=str(first.folder), optimize={"lr": 1e-12})
    assert tuned.size.hidden == 5 and tuned.size.classes == 0
    train(replace(tuned))
    before, after = (load_model(run).state_dict() for run in (first.folder, tuned.out))
    assert all(torch.allclose(before[name], after[name], atol=1e-8) for name in before)


def test_no_dev_keeps_the_last(toy_run, monkeypatch):
    prepare = toy.Toy.prepare
    monkeypatch.setattr(toy.Toy, "prepare", lambda *given: replace(prepare(*given), dev=[]))
    result = train(toy_run(loop={"average": 1}))
    assert result.scores == {}
    last, kept = last_tensors(result.folder), load_model(result.folder).state_dict()
    assert all(torch.equal(kept[name], last[name]) for name in kept)
    assert math.isfinite(losses(result.folder)[-1])
