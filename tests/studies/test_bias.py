"""The study of inductive biases: one set of pictures in three orders, equal terms, and one page."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from qkv.cli import main
from qkv.errors import ConfigError
from qkv.studies import bias, bias_data, bias_rung
from qkv.studies.bias_data import lay_out, rearrangement, subset
from qkv.studies.bias_rung import moved


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bias") / "data"
    lay_out(None, folder, size=16, most=30)
    return folder


def test_pictures_are_laid_out_once_in_every_order(laid):
    about = json.loads((laid / "about.json").read_text())
    assert about == {"size": 16, "pictures": {"train": 30, "dev": 300, "test": 600}}
    plain, pixels = (sorted((laid / order / "test").rglob("*.png")) for order in ("plain", "pixels"))
    assert len(plain) == len(pixels) == 600
    one, other = (np.array(Image.open(files[7])) for files in (plain, pixels))
    assert not np.array_equal(one, other)
    assert np.array_equal(np.sort(one.reshape(-1, 3), 0), np.sort(other.reshape(-1, 3), 0))


def test_fewer_pictures_are_among_more_and_classes_are_alike(laid):
    few, more = ({tuple(row) for row in _rows(subset(laid, "plain", count, seed=1))} for count in (12, 24))
    assert len(few) == 12 and len(more) == 24 and few < more
    assert {label for _, label in few} == {label for _, label in more}
    other = {tuple(row) for row in _rows(subset(laid, "plain", 12, seed=2))}
    assert few != other


def _rows(file):
    return list(csv.reader(file.read_text().splitlines()))[1:]


@pytest.mark.parametrize("order", ["plain", "patches", "pixels"])
def test_a_rearrangement_is_one_permutation_for_all_pictures(order):
    places = np.arange(16 * 16, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    rearranged = rearrangement(order, 16, seed=0)
    assert sorted(rearranged(places)[..., 0].ravel()) == list(range(256))
    assert np.array_equal(rearranged(places), rearrangement(order, 16, seed=0)(places))
    if order == "patches":  # what was in one patch still is
        cut = rearranged(places)[..., 0].reshape(8, 2, 8, 2).transpose(0, 2, 1, 3).reshape(64, 4)
        came = cut // 16 // 2 * 8 + cut % 16 // 2
        assert (came == came[:, :1]).all()
    assert np.array_equal(rearranged(places), places) == (order == "plain")


def test_a_moved_picture_repeats_its_border():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4, 1).repeat(3, 2)
    assert moved(pixels, 0, 1)[..., 0].tolist() == [[0, 0, 1, 2], [4, 4, 5, 6], [8, 8, 9, 10]]
    assert moved(pixels, -2, 0)[..., 0].tolist() == [[8, 9, 10, 11]] * 3


@pytest.mark.parametrize("name", list(bias.LEARNERS))
def test_every_learner_has_about_as_many_parameters(name):
    bias._config(name, 32, classes=6)  # refuses what lies too far off


def test_a_study_shows_what_came_of_it_and_goes_on(tmp_path, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(bias, "in_a_process", lambda measure, *given: ran.append(measure.__name__) or measure(*given))
    monkeypatch.setattr(bias, "SIDES", (4, 8))
    monkeypatch.setattr(bias, "SHIFTS", (2,))
    monkeypatch.setattr(bias_data, "DRAWN", {"dev": 6, "test": 18})
    words = [
        "compare", "images", "--out", str(tmp_path / "study"), "--side", "16", "--pictures", "12,24",
        "--data.batch", "12", "--loop.steps", "2", "--loop.evaluate_every", "2", "--spread.threads", "1",
    ]  # fmt: skip
    assert main([*words, "--models", "mixer"]) == 0
    assert ran == ["learn"] * 4 + ["attention_memory"] * 4
    assert main([*words, "--models", "mixer,resnet"]) == 0
    assert ran[8:] == ["learn"] * 4
    page = (tmp_path / "study" / "study.html").read_text(encoding="utf-8")
    assert "MLP-Mixer" in page and "CNN (ResNet)" in page and page.count("<svg") == 4
    with open(tmp_path / "study" / "results.csv", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["order"], row["pictures"]) for row in rows[:4]] == [
        ("plain", "12"), ("plain", "24"), ("patches", "24"), ("pixels", "24"),
    ]  # fmt: skip
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows) and rows[0]["accuracy_moved_2"]
    assert main([*words, "--models", "mixer", "--optimize.lr", "0.5"]) == 2
    assert "optimize.lr is 0.5, and the study in" in capsys.readouterr().err


def test_pictures_of_the_users_tables_are_studied(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bias, "in_a_process", lambda measure, *given: measure(*given))
    monkeypatch.setattr(bias, "SIDES", (4,))
    monkeypatch.setattr(bias_rung, "MOVED", 4)
    scored, measure = [], bias_rung._accuracy
    monkeypatch.setattr(bias_rung, "_accuracy", lambda *given: scored.append(given[2]) or measure(*given))
    for part, count in (("train", 24), ("test", 8)):
        rows = ["picture,kind"]
        for i in range(count):
            light = 2 * i // count  # class by class
            pixels = np.random.default_rng((count, i)).integers(0, 128, (16, 16, 3)) + 127 * light
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / f"{part}{i}.png")
            rows.append(f"{part}{i}.png,{('dark', 'light')[light]}")
        (tmp_path / f"{part}.csv").write_text("\n".join(rows) + "\n")
    words = ["compare", "images", "--models", "mixer", "--side", "16", "--pictures", "12", "--loop.steps", "1"]
    theirs = ["--data.train", str(tmp_path / "train.csv"), "--data.test", str(tmp_path / "test.csv")]
    theirs += ["--data.path", "picture", "--data.label", "kind", "--out", str(tmp_path / "study")]
    assert main([*words, *theirs]) == 0
    assert {path.name for path in (tmp_path / "study" / "data" / "plain" / "test").iterdir()} == {"dark", "light"}
    assert {len(labels) for labels in scored} == {8, 4} and all(len(set(labels)) == 2 for labels in scored)
    assert main([*words, "--data", "shapes", *theirs]) == 2
    assert "--data is shapes, which are drawn, and --data.train=" in capsys.readouterr().err


def test_what_cannot_be_compared(tmp_path, capsys):
    with pytest.raises(ConfigError, match="Did you mean 'mixer'"):
        bias.chosen("resnet,mixr")
    assert main(["compare", "images", "--out", str(tmp_path / "s"), "--side", "20"]) == 2
    assert "--side is 20; expected a multiple of 16" in capsys.readouterr().err
    assert main(["compare", "pictures"]) == 2
    assert "there is no comparison 'pictures'" in capsys.readouterr().err
