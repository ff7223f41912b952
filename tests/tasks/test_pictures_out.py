"""Answers as rows of a file: one a picture, whole at the end, gone on with after a kill."""

import csv
import json

import numpy as np
import pytest
from PIL import Image
from test_picture_classifier import made

from qkv.data.picture_paths import find_pictures
from qkv.errors import ConfigError, DataError
from qkv.tasks.picture_classifier import PictureAnswer
from qkv.tasks.pictures_out import answer_into, csv_row, json_row, rows_of, terminal_row

NAMES = ["a.png", "b, c.png", 'd"e.png', "z.png"]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pictures"
    for i, name in enumerate(["sub/" + NAMES[0], *NAMES[1:], ".hidden.png", ".git/x.png", "notes.txt"]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 30 * i, np.uint8)).save(folder / name, "PNG")
    (folder / "broken.png").write_bytes(b"no picture")
    (folder / ".git" / "empty").mkdir()
    return folder


def test_pictures_are_found_below_folders_and_hidden_ones_are_not(folder):
    found = [path.removeprefix(str(folder)) for path in find_pictures([str(folder)])]
    assert found == ["/b, c.png", "/broken.png", '/d"e.png', "/z.png", "/sub/a.png"]
    named = str(folder / "notes.txt")  # what is named is taken whatever its name, and once
    assert find_pictures([named, named]) == [named]
    with pytest.raises(DataError, match="there is no picture in"):
        find_pictures([str(folder / ".git" / "empty")])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_killed_run_is_gone_on_with(folder, tmp_path, suffix):
    classifier, pictures = made(), find_pictures([str(folder)])
    whole = tmp_path / f"whole{suffix}"
    list(answer_into(classifier, pictures, rows_of(classifier, whole), batch=2))

    out = tmp_path / f"out{suffix}"
    answers = answer_into(classifier, pictures, rows_of(classifier, out), batch=2)
    for _ in range(3):
        next(answers)
    answers.close()
    assert not out.exists()
    partial = tmp_path / f"out{suffix}.partial"
    with open(partial, "ab") as file:
        file.write('{"picture": "half of a ré'.encode()[:-1])  # a kill in the middle of a line, and of a letter
    rows = rows_of(classifier, out)
    left = rows.left(pictures)
    assert left == pictures[2:]
    list(answer_into(classifier, left, rows, batch=2))
    assert out.read_bytes() == whole.read_bytes() and not partial.exists()
    with pytest.raises(ConfigError, match="it is there already"):
        rows_of(classifier, out)


@pytest.mark.parametrize("length", [0, 5, 60])
def test_a_kill_before_the_first_row(folder, tmp_path, length):
    classifier, out = made(), tmp_path / "out.csv"
    rows_of(classifier, out)
    partial = tmp_path / "out.csv.partial"
    partial.write_bytes(partial.read_bytes()[:length])
    assert rows_of(classifier, out).done == set()
    assert partial.read_text().endswith("p(1),p(10),p(2)\n")


def test_rows_of_another_model_are_not_gone_on_with(tmp_path):
    rows_of(made(), tmp_path / "out.csv")
    other = made(classes=("a", "b", "c"))
    with pytest.raises(ConfigError, match=r"out\.csv\.partial: it was begun by another run"):
        rows_of(other, tmp_path / "out.csv")
    with pytest.raises(ConfigError, match=r"ends in \.csv or \.jsonl"):
        rows_of(other, tmp_path / "out.txt")


def test_a_csv_reads_back(folder, tmp_path):
    classifier, out = made(), tmp_path / "out.csv"
    pictures = find_pictures([str(folder)])
    answers = list(answer_into(classifier, pictures, rows_of(classifier, out)))
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert [row["picture"] for row in rows] == pictures
    for row, answer in zip(rows, answers, strict=True):
        assert row["label"] == answer.label and bool(row["error"]) == bool(answer.mark)
        if not answer.mark:
            assert [float(row[f"p({name})"]) for name in answer.classes] == pytest.approx(
                answer.probabilities, abs=1e-6
            )


def test_a_row_is_one_line_whatever_the_name():
    answer = PictureAnswer("a\nb\udcff.png", ("x", "y\u2028z"), np.array([0.25, 0.75]))
    for row in (json_row(answer), csv_row(answer)):
        assert "\n" not in row and row.encode()
    assert json.loads(json_row(answer, top=1))["probabilities"] == {"y\u2028z": 0.75}
    assert terminal_row(answer, 1).endswith("0.750")
    assert json.loads(json_row(PictureAnswer("a", number=2.5))) == {"picture": "a", "number": 2.5}
    several = PictureAnswer("a", ("x", "y"), np.array([0.9, 0.8]), several=True)
    assert json.loads(json_row(several))["labels"] == ["x", "y"]
