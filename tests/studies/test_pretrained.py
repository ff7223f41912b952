"""The study of pretraining: one text, one vocabulary, three starts, and what a classifier makes of each."""

import csv
import json

import numpy as np
import pytest

from qkv.cli import main
from qkv.cli.compare_pretrain import _parted
from qkv.data.text_codec import TextCodec
from qkv.errors import ConfigError
from qkv.studies import pretrained
from qkv.studies.pretrained_report import difference, rows
from qkv.studies.study import Study

CITIES = {"서울": "한국", "도쿄": "일본", "파리": "프랑스", "런던": "영국"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Documents that keep to a city, and lines labelled by theirs."""
    folder, chance = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    with open(folder / "text.txt", "w", encoding="utf-8") as out:
        for city in chance.choice(list(CITIES), 250):
            out.write(f"{city} 은 {CITIES[city]} 의 수도 이다 .\n나는 {city} 에 갔다 .\n{CITIES[city]} 은 크다 .\n\n")
    (folder / "lines").mkdir()
    for part, count in (("train", 40), ("dev", 8), ("test", 12)):
        lines = [f"{part} {i} {city} 에 갔다\t{country}" for i in range(count // 4) for city, country in CITIES.items()]
        text = "text\tlabel\n" + "\n".join(lines) + "\n"
        (folder / "lines" / f"{part}.tsv").write_text(text, encoding="utf-8")
    return folder


def words(data, out) -> list[str]:
    return [
        "compare", "pretrain", "--data", str(data / "text.txt"), "--labelled", str(data / "lines"), "--out", str(out),
        "--size.dim", "16", "--size.depth", "1", "--size.heads", "2", "--size.hidden", "32", "--size.longest", "40",
        "--data.longest", "32", "--data.words", "330", "--loop.steps", "2", "--loop.evaluate_every", "1",
        "--then.loop.epochs", "1", "--then.data.batch", "8", "--spread.threads", "1",
    ]  # fmt: skip


def test_every_start_is_tried_and_what_is_there_is_kept(data, tmp_path, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(pretrained, "in_a_process", lambda measure, *given: ran.append(given[1:3]) or measure(*given))
    out = tmp_path / "study"
    assert main([*words(data, out), "--starts", "pairs,packed"]) == 0
    assert ran == [("pairs", 1.0), ("packed", 0.0)]
    assert "with the one seed tried" in capsys.readouterr().out
    assert main([*words(data, out), "--starts", "packed,scratch"]) == 0
    assert ran[2:] == [("scratch", None)]

    results = {name: json.loads((out / "results" / f"{name}-0.json").read_text()) for name in pretrained.STARTS}
    assert len({result["parameters"] for result in results.values()}) == 1  # NSP's head is gone: all are one model
    assert "pretrained_next_accuracy" in results["pairs"] and "pretrained_next_accuracy" not in results["packed"]
    assert [len(results[name].get("pretrained_curve", ())) for name in results] == [2, 2, 0]
    assert all(result["test_texts"] == 12 and result["majority"] == 0.25 for result in results.values())
    codecs = [TextCodec.load(out / "runs" / f"{name}-0" / "classes" / "codec").fingerprint() for name in results]
    assert len(set(codecs)) == 1
    page = (out / "study.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3 and all(result["label"] in page for result in results.values())
    with open(out / "results.csv", encoding="utf-8") as lines:
        assert [row["start"] for row in csv.DictReader(lines)] == ["pairs", "packed", "scratch"]

    assert main([*words(data, out), "--then.optimize.lr", "0.5"]) == 2
    assert "then is" in capsys.readouterr().err


def test_a_difference_is_told_seed_by_seed():
    def study(*accuracies):
        results = [
            {"start": start, "label": start, "seed": seed, "accuracy": accuracy, "macro_f1": 0.5, "steps": 3,
             "minutes": 1.0}
            for start, some in zip(("pairs", "packed"), accuracies, strict=True) for seed, accuracy in enumerate(some)
        ]  # fmt: skip
        return Study(None, results)

    assert difference(study([0.8, 0.9], [0.7, 0.6])).endswith(
        "by +20.0 points (+10.0, +30.0 with 2 seeds): the seeds agree on the sign."
    )
    assert "the seeds do not agree" in difference(study([0.8, 0.5], [0.7, 0.6]))
    assert difference(study([0.8], [])) == ""
    assert [row["accuracy"] for row in rows(study([0.8, 0.9], [0.7, 0.6]))] == ["85.0 ± 5.0", "65.0 ± 5.0"]


def test_options_of_the_classifier_are_told_apart():
    then, rest = _parted(
        ["--data", "a", "--then.loop.epochs", "3", "--seeds", "2", "--then.data.batch=8", "--out", "s"]
    )
    assert then == ["--loop.epochs", "3", "--data.batch=8"]
    assert rest == ["--data", "a", "--seeds", "2", "--out", "s"]


def test_what_cannot_be_compared(data, tmp_path, capsys):
    with pytest.raises(ConfigError, match="Did you mean 'packed'"):
        pretrained.chosen("pairs,paked")
    own = words(data, tmp_path / "s")
    place = own.index("--labelled") + 1
    assert main([*own[:place], str(data / "lines" / "train.tsv"), *own[place + 1 :]]) == 2
    assert "a study needs test texts" in capsys.readouterr().err
    assert main([*own, "--then.model", "rnn"]) == 2
    assert "--then.model is for the study to say" in capsys.readouterr().err
    assert main([*own, "--learn.next", "0"]) == 2
    assert "--learn.next is what the study compares" in capsys.readouterr().err
    assert main(own[: place - 1]) == 2
    assert "--labelled is missing" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()
