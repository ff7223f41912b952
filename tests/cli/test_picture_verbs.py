"""The verbs of picture models, from the command line."""

import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from qkv.cli import main

sys.path.insert(0, str(Path(__file__).parent.parent / "tasks"))

from pictures import SIZES, shapes


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Drawn shapes and a run that was trained on them by the command line."""
    place = tmp_path_factory.mktemp("pictures")
    shapes(place / "shapes")
    size = [
        f"--size.{key}={json.dumps(value) if isinstance(value, list) else value}"
        for key, value in SIZES["resnet"].items()
    ]
    words = ["train", "classify", "--data", str(place / "shapes"), "--model", "resnet", "--out", str(place / "run")]
    assert main([*words, *size, "--loop.steps", "3", "--data.batch", "8"]) == 0
    return place


def test_training_says_its_recipe_and_what_to_type_next(place, capsys):
    words = ["train", "classify", "--data", str(place / "shapes"), "--model", "vit", "--out", str(place / "vit")]
    assert main([*words, "--loop.steps", "1", "--size.depth", "1"]) == 0
    told = capsys.readouterr().out
    assert "recipe for few pictures from scratch: 1 steps" in told and "WARNING: 36 pictures are few for a vit" in told
    assert f"qkv classify {place / 'vit'} photo.jpg" in told


def test_classify_prints_a_line_a_picture(place, capsys):
    test = place / "shapes" / "test"
    assert main(["classify", str(place / "run"), str(test / "disc"), "nothing.png", "--top", "2"]) == 1
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert len(lines) == 5 and all(len(line.split()) == 5 for line in lines[:4])
    assert lines[4].startswith("nothing.png") and "! cannot be read" in lines[4]
    assert "5 pictures" in told.err and "1 could not be read" in told.err


def test_classify_into_a_file_and_again(place, tmp_path, capsys):
    words = ["classify", str(place / "run"), str(place / "shapes" / "test"), "--out", str(tmp_path / "out.csv")]
    assert main(words) == 0
    with open(tmp_path / "out.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 12
    assert main(words) == 2
    assert "it is there already" in capsys.readouterr().err


def test_names_from_a_pipe_and_lines_of_json(place, capsys, monkeypatch):
    pictures = sorted((place / "shapes" / "test" / "disc").iterdir())
    piped = "".join(f"{path}\n" for path in pictures) + "gone.png\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
    assert main(["classify", str(place / "run"), "-", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["picture"] for row in rows] == [*map(str, pictures), "gone.png"]
    assert abs(sum(rows[0]["probabilities"].values()) - 1) < 1e-4 and "error" in rows[-1]


def test_a_picture_in_the_pipe_is_told_apart_from_names(place, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\x89PNG\0\0")))
    assert main(["classify", str(place / "run"), "-"]) == 2
    assert "standard input holds no lines of text; expected names of files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-folder"], "no-such-folder: there is no such file or folder"),
        (["a.png", "--json", "--out", "rows.csv"], "--json is of what is printed. Leave it out, or --out rows.jsonl"),
    ],
)
def test_a_mistake_is_said_before_anything_is_answered(place, words, said, capsys):
    assert main(["classify", str(place / "run"), *words]) == 2
    told = capsys.readouterr()
    assert said in told.err and not told.out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.csv", None, "there is no such file or folder"),
        ("empty.csv", "", "it is empty"),
        ("cut.jsonl", '{"path": "a', "it begins with no names of columns"),
        ("other.csv", "path;label\na.png;b\n", "its columns are path;label.*[Pp]ut commas between them"),
        ("pairs.tsv", "ko\ten\n", "its columns are ko, en.*--data.path or --data.text, and --data.label"),
    ],
)
def test_data_that_fit_nothing_say_what_they_are(name, text, said, tmp_path, capsys):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["train", "classify", "--data", str(tmp_path / name), "--out", str(tmp_path / "run")]) == 2
    assert re.search(f"{name}.*{said}", capsys.readouterr().err)


def test_targets_that_were_dropped_are_told_with_the_refusal(place, tmp_path, capsys):
    picture = next((place / "shapes" / "test" / "disc").iterdir())
    rows = [f"{picture},{target}\n" for target in ("nan", "abc", "3", "3")]
    (tmp_path / "t.csv").write_text("path,target\n" + "".join(rows))
    assert main(["train", "regress", "--data", str(tmp_path / "t.csv"), "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert "every target of train is 3; expected targets that differ. Before that, train: 2 pictures without" in told


def test_a_table_in_an_archive_is_told(place, tmp_path, capsys):
    shutil.make_archive(str(tmp_path / "packed"), "zip", place / "shapes")
    assert main(["check", str(tmp_path / "packed.zip")]) == 0
    assert "packed.zip holds tables (regions.test.jsonl, " in capsys.readouterr().out


def test_evaluate(place, tmp_path, capsys):
    words = ["evaluate", str(place / "run"), "--data", str(place / "shapes")]
    assert main(["classify", str(place / "run"), "shapes.zip"]) == 2
    assert "shapes.zip: this is an archive; expected pictures or folders of them" in capsys.readouterr().err
    assert main([*words, "--batch", "0"]) == 2
    assert "--batch is 0; expected a whole number from 1" in capsys.readouterr().err
    assert main([*words, "--page", str(tmp_path / "worst.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pictures"] == 12 and told["where"].startswith("test of ")
    assert "worst mistakes" in (tmp_path / "worst.html").read_text(encoding="utf-8")


def test_what_is_wrong_is_one_sentence(place, tmp_path, capsys):
    shown = str(place / "shapes" / "test")
    for words, said in {
        ("classify", str(place / "run")): "PICTURES is missing",
        ("classify", "nowhere", shown): "nowhere: there is no such folder",
        ("classify", str(place / "run"), shown, "--top", "0"): "--top is 0; expected a whole number from 1",
        ("regress", str(place / "run"), shown): "regress does not know runs of 'classify pictures'",
        ("classify", str(place / "run"), shown, "--topp", "3"): "there is no option --topp. Did you mean --top?",
    }.items():
        assert main(words) == 2
        assert said in capsys.readouterr().err


def test_info_and_check(place, capsys):
    assert main(["info", str(place / "run")]) == 0
    told = capsys.readouterr().out
    assert "classify" in told and "pictures" in told and "recipe for few" in told
    assert main(["check", str(place / "shapes")]) == 0
