"""The ladder: equal terms, results that stay, and one page that shows them."""

import csv
import fcntl
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qkv.cli import main
from qkv.errors import ConfigError
from qkv.studies.ladder import RUNGS, _every, chosen
from qkv.studies.report import at_equal_minutes, rows
from qkv.studies.rung import by_length
from qkv.studies.study import Study
from qkv.train import checkpoint
from qkv.train.run import Loop, Run


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two rungs of a small study, and what it printed."""
    folder = tmp_path_factory.mktemp("study")
    main(["phrases", "--out", str(folder / "data"), "--train", "3000", "--dev", "20", "--test", "24", "--clauses", "2"])
    words = [
        "compare", "translate", "--data", str(folder / "data"), "--data.source", "ko", "--data.target", "en",
        "--data.words", "500", "--out", str(folder / "study"), "--size.dim", "32", "--loop.steps", "6",
        "--loop.evaluate_every", "3", "--spread.threads", "1",
    ]  # fmt: skip
    assert main([*words, "--rungs", "none,dot"]) == 0
    return folder / "study", words


def test_every_rung_has_a_result_and_the_page_shows_them(study):
    folder, _ = study
    results = [json.loads((folder / "results" / f"{name}-0.json").read_text()) for name in ("none", "dot")]
    page = (folder / "study.html").read_text(encoding="utf-8")
    for result in results:
        assert result["steps"] == 6 and len(result["curve"]) == 2 and len(result["sentences"]) == 5
        assert result["gradient"] and all(length >= 0 for length in result["gradient"])
        assert result["label"] in page
    assert "aer" in results[1] and "aer" not in results[0]
    sizes = [result["parameters"] for result in results]
    assert max(sizes) <= 1.1 * min(sizes)
    assert page.count("<svg") == 3 + 5 * 2 or page.count("<svg") == 3 + 5  # pictures; gradients where nothing looks
    for name in ("by_length.svg", "by_length.png", "curves.svg", "gradients.png", "results.csv"):
        assert (folder / name).stat().st_size > 100
    with open(folder / "results.csv", encoding="utf-8") as file:
        assert [row["rung"] for row in csv.DictReader(file)] == ["none", "dot"]


def test_a_rung_is_added_without_climbing_the_others_again(study):
    folder, words = study
    before = (folder / "results" / "dot-0.json").stat().st_mtime_ns
    assert main([*words, "--rungs", "none,dot,transformer"]) == 0
    assert (folder / "results" / "dot-0.json").stat().st_mtime_ns == before
    result = json.loads((folder / "results" / "transformer-0.json").read_text())
    dot = json.loads((folder / "results" / "dot-0.json").read_text())
    assert 0.9 <= result["parameters"] / dot["parameters"] <= 1.1
    assert "Transformer" in (folder / "study.html").read_text(encoding="utf-8")


def test_on_other_terms_a_study_does_not_go_on(study, capsys):
    _, words = study
    assert main([*words, "--rungs", "none", "--size.dropout", "0.3"]) == 2
    assert "size.dropout is 0.3, and the study in" in capsys.readouterr().err


def test_a_rung_that_was_cut_short_goes_on(study, tmp_path):
    """Killed with its parent, it saves and ends; the same command takes it from there."""
    _, words = study
    words = [*words, "--rungs", "dot", "--out", str(tmp_path / "other"), "--loop.steps", "30"]
    process = subprocess.Popen([sys.executable, "-m", "qkv", *words], stdout=subprocess.DEVNULL)
    scores = tmp_path / "other" / "runs" / "dot-0" / "scores.jsonl"
    wait_until(lambda: scores.exists() and scores.read_text())
    process.kill()
    process.wait()
    lock = open(scores.with_name(".lock"))  # noqa: SIM115

    def free() -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    wait_until(free)
    lock.close()
    assert 0 < checkpoint.latest(scores.parent)[1].step < 30
    assert main(words) == 0
    assert json.loads((tmp_path / "other" / "results" / "dot-0.json").read_text())["steps"] == 30


def wait_until(condition, seconds: float = 60) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.2)


def test_a_mistyped_rung_is_refused():
    with pytest.raises(ConfigError, match="Did you mean 'bilinear'"):
        chosen("dot,bilinera")
    assert [rung.name for rung in chosen(None)] == list(RUNGS)


def test_a_study_needs_test_pairs(tmp_path, capsys):
    (tmp_path / "train.ko").write_text("가\n" * 30)
    (tmp_path / "train.en").write_text("a\n" * 30)
    words = ["compare", "translate", "--data", str(tmp_path), "--data.source", "ko", "--data.target", "en"]
    assert main([*words, "--out", str(tmp_path / "s")]) == 2
    assert "needs test pairs" in capsys.readouterr().err


def test_scores_by_length_count_each_sentence_once():
    pairs = [("a " * n, "b " * n) for n in (2, 3, 7, 8) for _ in range(10)]
    groups = by_length(pairs, [target for _, target in pairs])
    assert [(group["name"], group["sentences"]) for group in groups] == [("1-5", 20), ("6-10", 20)]


def test_the_second_table_is_at_the_time_of_the_quickest(tmp_path):
    def result(name: str, minutes: float, points: list[tuple[float, float]]) -> dict:
        curve = [{"minutes": at, "step": i, "score": score} for i, (at, score) in enumerate(points, 1)]
        told = {"rung": name, "label": name, "seed": 0, "parameters": 1, "minutes": minutes, "memory_mb": 1.0}
        return told | {
            "tokens_per_second": 1.0,
            "score": "bleu",
            "bleu": 1.0,
            "chrf": 1.0,
            "exact": 0.0,
            "curve": curve,
        }

    quick = result("dot", 2.0, [(1.0, 10.0), (2.0, 20.0)])
    slow = result("additive", 6.0, [(1.5, 12.0), (3.0, 30.0)])
    never = result("none", 9.0, [(5.0, 40.0)])
    minutes, table = at_equal_minutes(Study(tmp_path, [quick, slow, never]))
    assert minutes == 2.0
    assert [row["dev score"] for row in table] == ["20.0", "12.0", "none yet"]
    assert rows(Study(tmp_path, [quick]))[0] | {"BLEU": "1.0", "time": "2:00"} == rows(Study(tmp_path, [quick]))[0]


@pytest.mark.parametrize(
    "loop, every",
    [
        ({"steps": 40}, 4),
        ({"epochs": 2}, 20),
        ({"epochs": 2, "steps": 60}, 6),
        ({"minutes": 1.0}, 30),
        ({"steps": 3}, 1),
        ({}, 500),
        ({"steps": 40, "evaluate_every": 20}, 20),
    ],
)
def test_a_short_budget_has_some_ten_evaluations(loop, every):
    run = Run("translate", "seq2seq", Path("study"), None, None, loop=Loop(**loop))
    assert _every(run, epoch=100) == every


def test_a_damaged_result_says_how_to_have_it_again(study, tmp_path, capsys):
    folder, words = study
    other = shutil.copytree(folder, tmp_path / "study")
    words = [*words, "--out", str(other), "--rungs", "dot"]
    (other / "runs" / "dot-0" / "look-0.safetensors").write_bytes(b"")
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "look-0.safetensors" in said and "Remove results/dot-0.json and run the same command again" in said
    for damaged in ('{"rung": "dot", "cur', "[]"):
        (other / "results" / "dot-0.json").write_text(damaged)
        assert main(words) == 2
        assert "Remove dot-0.json and run the same command again" in capsys.readouterr().err
    (other / "results" / "dot-0.json").unlink()
    assert main(words) == 0  # the run is finished: it is measured and drawn again
    (other / "study.json").write_text("{")
    assert main(words) == 2
    assert "Choose another --out" in capsys.readouterr().err


def test_a_rung_is_reversed_only_where_there_is_one_way_to_reverse():
    for name in ("none", "none-reversed"):
        assert RUNGS[name].changes["both_ways"] is False


def test_gold_links_are_read_before_anything_is_trained(study, tmp_path, capsys):
    _, words = study
    out = ["--out", str(tmp_path / "new")]
    assert main([*words, *out, "--rungs", "dot", "--gold-align", str(tmp_path / "none.align")]) == 2
    assert "none.align" in capsys.readouterr().err and not (tmp_path / "new" / "runs").exists()
    (tmp_path / "short.align").write_text("0-0\n")
    assert main([*words, *out, "--rungs", "dot", "--gold-align", str(tmp_path / "short.align")]) == 2
    assert "has 1 lines; expected 24" in capsys.readouterr().err
    (tmp_path / "other.align").write_text("0-0\n" * 24)
    assert main([*words, "--rungs", "dot", "--gold-align", str(tmp_path / "other.align")]) == 2
    assert "gold is" in capsys.readouterr().err  # the study was scored on other links


def test_a_study_is_no_run_and_names_of_rungs_are_said_or_not(study, capsys):
    folder, words = study
    assert main([*words, "--out", str(folder / "runs" / "dot-0")]) == 2
    assert "holds a run, not a study" in capsys.readouterr().err
    assert main([*words, "--rungs", ""]) == 2
    assert "there is no rung ''" in capsys.readouterr().err
