"""The verbs of captions, as they are typed."""

import csv
import io
import json
import os
from dataclasses import replace

import pytest
from PIL import Image

from captioners import pixels, run_of
from qkv.cli import main
from qkv.tasks.captions_out import HEADS, rows_of
from qkv.tasks.load import load
from qkv.tasks.settings import write_settings


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run, and a folder with two pictures, a broken one and a text."""
    folder = tmp_path_factory.mktemp("place")
    run_of(folder / "run")
    (folder / "photos" / "more").mkdir(parents=True)
    for name, picture in zip(("b.png", "more/a.png"), pixels(2), strict=True):
        Image.fromarray(picture).save(folder / "photos" / name)
    (folder / "photos" / "broken.jpg").write_bytes(b"x")
    (folder / "photos" / "notes.txt").write_text("no picture", encoding="utf-8")
    lines = [
        {"image": "photos/b.png", "caption": "a red circle"},
        {"image": "photos/more/a.png", "caption": ["a blue square", "a square"]},
        {"image": "photos/broken.jpg", "caption": "broken"},
    ]
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder


def test_pictures_and_folders_get_their_captions_in_order(place, capsys):
    photos = place / "photos"
    assert main(["caption", str(place / "run"), str(photos / "b.png"), str(photos), "--beam", "2"]) == 1
    out, err = capsys.readouterr()
    names = [line.split("\t")[0] for line in out.splitlines()]
    assert names == [str(photos / name) for name in ("b.png", "broken.jpg", "more/a.png")]  # each once
    told = out.splitlines()[1]
    assert "[unreadable pictures]" in told and "3 pictures" in err and "1 unreadable pictures" in err


def test_lines_of_csv_and_json(place, capsys):
    photo, out = str(place / "photos" / "b.png"), place / "out.jsonl"
    assert main(["caption", str(place / "run"), photo, "--n-best", "2", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr()[0])))
    assert [row["rank"] for row in rows] == ["0", "1"] and rows[0]["picture"] == photo
    assert main(["caption", str(place / "run"), photo, str(place / "photos" / "broken.jpg"), "--output", str(out)]) == 1
    good, bad = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert good["caption"] == rows[0]["caption"] and len(good["tokens"]) == len(good["token_scores"])
    assert bad["mark"] == "unreadable pictures" and "broken.jpg" in bad["wrong"]


def test_mistakes_are_one_sentence(place, capsys):
    for words, expected in (
        (["caption"], "RUN is missing"),
        (["caption", str(place / "run")], "PICTURES is missing"),
        (["caption", str(place / "run"), str(place / "run" / "codec")], "there is no picture in"),
        (["look", str(place / "run"), str(place / "photos" / "broken.jpg")], "this is no picture that can be read"),
        (["scenes", "--out", str(place / "s"), "--train", "0"], "--train is 0"),
    ):
        assert main(words) == 2
        assert expected in capsys.readouterr()[1]


def test_evaluating_names_what_it_left_out(place, capsys):
    told = place / "told.jsonl"
    assert main(["evaluate", str(place / "run"), "--data", str(place / "test.jsonl"), "--output", str(told)]) == 0
    out, _ = capsys.readouterr()
    assert "cider_d" in out and "tok:words" in out and "2 pictures against 3 captions" in out
    assert "warning: left out:" in out and "warning: CIDEr of 2 pictures means little" in out
    assert json.loads(told.read_text(encoding="utf-8").splitlines()[1])["references"] == ["a blue square", "a square"]


def test_one_picture_has_no_cider(place, capsys):
    """BL-58."""
    (place / "one.jsonl").write_text('{"image": "photos/b.png", "caption": "a red circle"}', encoding="utf-8")
    assert main(["evaluate", str(place / "run"), "--data", str(place / "one.jsonl"), "--json"]) == 0
    found = json.loads(capsys.readouterr()[0])
    assert "cider_d" not in found["scores"] and found["warnings"][0].startswith("CIDEr needs two or more pictures")


def test_looking_writes_what_the_name_says(place, capsys):
    out = place / "look.html"
    photo = str(place / "photos" / "b.png")
    assert main(["look", str(place / "run"), photo, "--out", str(out), "--caption", "a red circle"]) == 0
    assert "a red circle" in capsys.readouterr()[0]
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_scenes_are_written_and_checked(place, capsys):
    made = place / "scenes"
    assert main(["scenes", "--out", str(made), "--train", "4", "--dev", "2", "--test", "2", "--language", "ko"]) == 0
    assert main(["check", str(made), "--kind", "captions"]) == 0
    assert "train: 4 captions of 4 pictures" in capsys.readouterr()[0]


def test_help_of_training_captions_is_plain(capsys):
    with pytest.raises(SystemExit):
        main(["train", "caption", "--help"])
    out = capsys.readouterr()[0]
    assert "--learn.encoder" in out and "--size.attention" in out and "--data.caption" in out
    assert "qkv train caption --data photos/captions.jsonl" in out


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.txt"])
def test_captions_go_on_after_a_kill(place, tmp_path, name):
    words = ["caption", str(place / "run"), str(place / "photos"), "--n-best", "2", "--batch", "1", "--output"]
    whole, out = tmp_path / f"whole-{name}", tmp_path / name
    assert main([*words, str(whole)]) == 1
    rows = whole.read_bytes()
    captioner = load(place / "run")
    form = {"csv": "csv", "jsonl": "jsonl", "txt": "text"}[name.partition(".")[2]]
    begun = rows_of(captioner, out, form, replace(captioner.search, n_best=2), captioner.longest)
    half = rows.decode().splitlines()[bool(HEADS.get(form)) :][
        :1
    ]  # the first of two rows of a picture, where it has two
    begun.add(half)
    with open(begun.partial, "ab") as file:
        file.write(b"half a ro")
    assert not out.exists() and main([*words, str(out)]) == 1
    assert out.read_bytes() == rows and not begun.partial.exists()
    assert main([*words, str(out)]) == 2  # it is there already


@pytest.mark.parametrize("form", ["csv", "jsonl", "text"])
def test_a_name_that_is_no_text_is_escaped(place, tmp_path, form, capsys):
    (tmp_path / "b").mkdir()
    with open(os.fsencode(tmp_path / "b") + b"/bad\xff.png", "wb") as file:
        file.write(b"x")
    out = tmp_path / "out"
    words = ["caption", str(place / "run"), str(tmp_path / "b"), "--format", form]
    assert main([*words, "--output", str(out)]) == 1
    assert "bad\\udcff.png" in out.read_text(encoding="utf-8").replace("\\\\", "\\")
    assert main(words) == 1 and "udcff" in capsys.readouterr()[0]


def test_other_verbs_refuse_a_run_of_captions_and_name_its_verb(place, capsys):
    run = str(place / "run")
    for words in (
        ["translate", run], ["tag", run], ["fill", run, "a"], ["embed", run], ["classify", run, "x"], ["regress", run],
        ["score", run, "--source", "a", "--target", "b"],
    ):  # fmt: skip
        assert main(words) == 2
        assert f"{words[0]} does not know runs of 'caption'" in (said := capsys.readouterr()[1])
        assert f"qkv caption {run} ... is for it" in said
    (place / "other").mkdir()
    (place / "other" / "model.json").write_text("{}", encoding="utf-8")
    write_settings(place / "other", task="classify", kind="pictures")
    assert main(["caption", str(place / "other"), "a.png"]) == 2
    assert "caption does not know runs of 'classify pictures'" in (said := capsys.readouterr()[1])
    assert f"qkv classify {place / 'other'}" in said
