"""A resumed run is the unbroken run, bit for bit: weights, optimiser, averages, scores, and the batches that it saw."""

from pathlib import Path

import pytest
import toy

from qkv.train import checkpoint
from qkv.train.checkpoint import latest
from qkv.train.folder import read_scores
from qkv.train.loop import train

TIMES = {"seconds", "rows_per_second"}


def ending(run: Path) -> dict:
    """Everything that must be equal: all tensors of the last checkpoint and of the run, its state and its scores."""
    folder, state = latest(run)
    files = [*folder.glob("*.safetensors"), *run.glob("*.safetensors"), *folder.parent.glob("*.safetensors")]
    tensors = {(file.parent.parent.name == "checkpoints", file.name): file.read_bytes() for file in files}
    record = state.to_json()
    record.pop("seconds")
    record["window"].pop("seconds", None)
    lines = [{key: value for key, value in line.items() if key not in TIMES} for line in read_scores(run)]
    return {"tensors": tensors, "state": record, "lines": lines}


@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("stop", [3, 10, 13], ids=["mid-epoch", "epoch-end", "second-epoch"])
def test_stopped_and_resumed(toy_run, stop, ema, monkeypatch):
    loop = {"ema": ema}
    assert not train(toy_run("whole", loop=loop)).interrupted
    whole = toy.Toy.seen[2:]  # the first two are the estimate's
    monkeypatch.setattr(toy.Toy, "seen", [])
    monkeypatch.setattr(toy.Toy, "computed", 0)
    monkeypatch.setattr(toy.Toy, "trap", f"stop:{stop + 2}")
    first = train(toy_run("parts", loop=loop))
    assert first.interrupted and first.step == stop
    assert not train(toy_run("parts", loop=loop)).interrupted
    assert toy.Toy.seen[2:] == whole  # the same rows, the same dropout, the same losses
    assert ending(first.folder) == ending(first.folder.parent / "whole")


def test_10_samples_in_batches_of_2(toy_run, monkeypatch):
    """BL-46."""
    data, loop = {"rows": 10, "batch": 2}, {"steps": 10, "save_every": 3}
    train(toy_run("whole", data=data, loop=loop))
    whole = toy.Toy.seen[2:]
    for stop in (3, 5):
        monkeypatch.setattr(toy.Toy, "seen", [])
        monkeypatch.setattr(toy.Toy, "computed", 0)
        monkeypatch.setattr(toy.Toy, "trap", f"stop:{stop + 2}")
        train(toy_run(f"parts{stop}", data=data, loop=loop))
        train(toy_run(f"parts{stop}", data=data, loop=loop))
        assert toy.Toy.seen[2:] == whole
        assert sorted(row for rows, _ in whole[:5] for row in rows) == list(range(10))


def test_killed_and_resumed(toy_run, tmp_path, processes):
    """kill -9 in the middle of a step, and in the middle of a save."""
    train(toy_run("whole"))
    for trap in ("kill:9", "kill-save:3"):
        assert processes(1, toy.values(tmp_path / "killed"), trap) == [-9]
    train(toy_run("killed"))
    assert ending(tmp_path / "killed") == ending(tmp_path / "whole")


@pytest.mark.parametrize("where", ["task", "loop"])
def test_stopped_while_it_finishes(toy_run, where, monkeypatch):
    train(toy_run("whole"))

    def power_cut(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*{"task": (toy.Toy, "finish"), "loop": (checkpoint, "mark_finished")}[where], power_cut)
        with pytest.raises(KeyboardInterrupt):
            train(toy_run("cut"))
    assert not latest(toy_run("cut").out)[1].finished
    train(toy_run("cut"))
    assert ending(toy_run("cut").out) == ending(toy_run("whole").out)


def test_killed_before_the_first_checkpoint(toy_run, tmp_path, processes):
    values = {"loop": {"save_every": 10, "log_every": 1}}
    assert processes(1, toy.values(tmp_path / "killed", **values), "kill:9") == [-9]
    assert len(read_scores(tmp_path / "killed")) == 7 and latest(tmp_path / "killed") is None
    train(toy_run("killed", **values))
    train(toy_run("whole", **values))
    assert ending(tmp_path / "killed") == ending(tmp_path / "whole")


def test_the_same_command_again_says_it_is_finished(toy_run, capsys):
    train(toy_run())
    computed = toy.Toy.computed
    before = capsys.readouterr().out
    result = train(toy_run())
    assert toy.Toy.computed == computed
    said = capsys.readouterr().out
    assert "is finished (15 steps)" in said and f"qkv guess {result.folder}" in said
    assert said.splitlines()[1:] == before.splitlines()[-2:]


def test_a_larger_budget_goes_on(toy_run):
    train(toy_run(loop={"steps": 6}))
    assert train(toy_run(loop={"steps": 15})).step == 15
    assert [line["step"] for line in read_scores(toy_run().out) if "loss" in line] == [3, 6, 9, 12, 15]


def test_a_stop_names_the_command_that_goes_on(toy_run, capsys, monkeypatch):
    monkeypatch.setattr(toy.Toy, "trap", "stop:6")
    train(toy_run())
    assert f"stopped at step 4; go on with: qkv train --config {toy_run().out}/run.yaml" in capsys.readouterr().out
