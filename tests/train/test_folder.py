"""A folder is one run: the same command goes on, another one is refused by the key that differs."""

import fcntl
import json

import pytest
import toy
import yaml

from qkv.errors import ConfigError, DataError, RunError
from qkv.train.folder import claimed, read_scores, truncate_scores
from qkv.train.info import describe, lines
from qkv.train.loop import train
from qkv.train.options import to_mapping, to_yaml


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed is 1, but the run in the folder was begun with 0; expected the same. Choose another --out"),
        ({"size": {"hidden": 9}}, "size.hidden is 9, but the run in the folder was begun with 8"),
        ({"optimize": {"lr": 0.5}}, "optimize.lr is 0.5, but the run in the folder was begun with 0.01"),
        ({"data": {"rows": 22}}, "data.rows is 22"),
        ({"loop": {"steps": 3}}, "loop.steps is 3, but this run was begun with 4; expected at least as much"),
        ({"resume": False}, "holds a run already"),
    ],
)
def test_another_run_is_refused(toy_run, changes, message):
    train(toy_run(loop={"steps": 4}))
    before = (toy_run().out / "run.yaml").read_text()
    with pytest.raises((ConfigError, RunError), match=message):
        train(toy_run(**{"loop": {"steps": 4}, **changes}))
    assert (toy_run().out / "run.yaml").read_text() == before


def test_what_may_change(toy_run):
    train(toy_run(loop={"steps": 4}))
    run = toy_run(
        loop={"steps": 6, "patience": 9, "keep": 2, "save_every": 3, "tensorboard": False}, spread={"threads": 1}
    )
    assert train(run).step == 6
    assert yaml.safe_load((run.out / "run.yaml").read_text())["loop"]["steps"] == 6


def test_what_a_recipe_derived_from_the_steps_stays_as_it_was(toy_run, monkeypatch):
    def recipe(run) -> dict:
        return {"optimize": {"clip": run.loop.steps / 2}, "loop": {"evaluate_every": run.loop.steps}}

    monkeypatch.setattr(toy.Toy, "recipe", staticmethod(recipe), raising=False)
    first = toy_run(loop={"steps": 4})
    assert first.optimize.clip == 2 and train(first).step == 4
    longer = toy_run(loop={"steps": 8})
    assert (longer.optimize.clip, longer.loop.evaluate_every) == (2, 4) and train(longer).step == 8
    with pytest.raises(ConfigError, match=r"clip is 3\.0, but the run in the folder was begun with 2\.0"):
        train(toy_run(loop={"steps": 8}, optimize={"clip": 3.0}))
    assert toy_run("new", loop={"steps": 8}).optimize.clip == 4


def test_a_run_that_came_to_nothing_may_be_mended(toy_run, monkeypatch):
    monkeypatch.setattr(toy.Toy, "trap", "nan:3")
    with pytest.raises(RunError, match=r"step 1 .*nothing was saved yet"):
        train(toy_run())
    monkeypatch.setattr(toy.Toy, "trap", "")
    assert train(toy_run(size={"hidden": 9}, loop={"steps": 4})).step == 4
    assert describe(toy_run().out)["model"]["config"]["hidden"] == 9


def test_changed_files_are_refused(toy_run, monkeypatch):
    train(toy_run(loop={"steps": 4}))
    record = json.loads((toy_run().out / "run.json").read_text())
    record["data"]["files_hash"] = "other"
    (toy_run().out / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="the training files have changed since this run began"):
        train(toy_run(loop={"steps": 5}))


def test_a_folder_with_something_else_is_left_alone(toy_run):
    run = toy_run()
    run.out.mkdir()
    (run.out / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"holds 'thesis.tex' but no run.yaml"):
        train(run)
    assert [path.name for path in run.out.iterdir()] == ["thesis.tex"]


def test_two_processes_do_not_train_into_one_folder(toy_run):
    run = toy_run()
    with claimed(run), pytest.raises(RunError, match="another process is training here"), claimed(run):
        pass
    with open(run.out / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free again


def test_scores_are_cut_back_and_half_a_line_is_left_out(tmp_path):
    (tmp_path / "scores.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    assert [line["step"] for line in read_scores(tmp_path)] == [1, 2, 3]
    truncate_scores(tmp_path, 2)
    assert (tmp_path / "scores.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'


def test_the_folder_is_complete(toy_run):
    run = toy_run()
    train(run)
    names = {path.name for path in run.out.iterdir() if not path.name.startswith(".")}
    assert names >= {"model.safetensors", "model.json", "codec", "run.yaml", "run.json", "scores.jsonl", "checkpoints"}
    assert (run.out / "finished").read_text() == "with the best weights"
    assert (run.out / "run.yaml").read_text() == to_yaml(run)
    assert "classes" not in to_mapping(run)["size"]


def test_info(toy_run):
    run = toy_run()
    result = train(run)
    told = describe(run.out)
    assert told["model"]["parameters"] == 218 and told["data"]["rows"] == 20
    assert told["scores"]["dev"] == result.scores and told["state"]["finished"] == "15 steps"
    assert told["versions"].keys() == {"qkv", "torch", "python"} and told["disk"]["model.safetensors"] > 4 * 218
    json.dumps(told)
    text = "\n".join(lines(told))
    for part in ("mlp, 218 parameters", "20 rows", "finished: 15 steps", "hidden 8", "warmup 2"):
        assert part in text
    with pytest.raises(RunError, match="there is no run"):
        describe(run.out.parent)


def test_tensorboard(toy_run):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = toy_run(loop={"tensorboard": True})
    train(run)
    events = EventAccumulator(str(run.out / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss")] == [3, 6, 9, 12, 15]
    assert len(events.Scalars("dev/accuracy")) == 4


def test_tensorboard_that_is_not_there(toy_run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"TensorBoard is not installed. Pip install 'qkv\[tensorboard\]'"):
        train(toy_run(loop={"tensorboard": True}))


def test_the_report_before_training(toy_run, capsys):
    train(toy_run(size={"spare": True}, loop={"minutes": 5, "steps": 10}))
    said = capsys.readouterr().out
    assert "20 rows\n" in said and "236 parameters; about" in said and "of memory and" in said
    assert "10 steps: about 0:0" in said and "at most 5 minutes" in said
    assert "2 weights get no gradient from the first batch" in said


def test_a_refused_run_leaves_no_folder(toy_run, monkeypatch):
    run = toy_run()

    def refuse(*_):
        raise DataError("there is nothing to train on")

    monkeypatch.setattr(toy.Toy, "prepare", refuse)
    with pytest.raises(DataError):
        train(run)
    assert not run.out.exists()
