"""``qkv vectors`` and its neighbours on the command line."""

import json

import pytest

from qkv.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "t.txt").write_text("왕 은 남자 다\n여왕 은 여자 다\n왕 과 여왕\n남자 와 여자\n" * 5)
    flags = ["--data", str(folder / "t.txt"), "--min-count", "1", "--dim", "8", "--threads", "1", "--epochs", "2"]
    assert main(["train", "vectors", "--model", "cbow", *flags, "--out", str(folder / "run")]) == 0
    return folder / "run"


def told(capsys, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(word) for word in words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_word_with_a_blank(capsys, tmp_path):
    (tmp_path / "v.txt").write_text("3 2\nNew York 1 0\nParis 1 0.1\n사과 0 1\n", encoding="utf-8")
    assert told(capsys, "vectors", "import", tmp_path / "v.txt", "--out", tmp_path / "run")[0] == 0
    code, out, _ = told(capsys, "vectors", tmp_path / "run", "odd", "New York", "Paris", "사과")
    assert code == 0 and out.splitlines()[0].endswith("사과") and "New York" in out


def test_actions(run, capsys, tmp_path):
    code, out, _ = told(capsys, "vectors", run, "nearest", "왕", "--top", "3")
    assert code == 0 and len(out.splitlines()) == 3
    code, out, _ = told(capsys, "vectors", run, "analogy", "왕", "-", "남자", "+", "여자", "--rule", "mul", "--json")
    assert code == 0 and not {json.loads(line)["word"] for line in out.splitlines()} & {"왕", "남자", "여자"}
    code, out, _ = told(capsys, "vectors", run, "similarity", "왕", "왕")
    assert (code, out) == (0, "1.0000\n")
    assert told(capsys, "vectors", run, "odd", "왕", "여왕", "다")[0] == 0
    for form in ("word2vec", "word2vec-binary", "glove"):
        assert told(capsys, "vectors", run, "export", tmp_path / form, "--format", form)[0] == 0
        assert told(capsys, "vectors", "import", tmp_path / form, "--out", tmp_path / f"{form}-run")[0] == 0
        assert told(capsys, "vectors", tmp_path / f"{form}-run", "nearest", "왕")[0] == 0
    assert told(capsys, "vectors", run, "export", tmp_path / "v.txt.gz")[0] == 0
    assert (tmp_path / "v.txt.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert told(capsys, "vectors", "import", tmp_path / "v.txt.gz", "--out", tmp_path / "gz-run")[0] == 0
    (tmp_path / "q").write_text("왕 여왕 남자 여자\n")
    code, out, _ = told(capsys, "evaluate", run, "--questions", tmp_path / "q")
    assert code == 0 and "0 of 1 questions (0.0%)" in out
    assert told(capsys, "vectors", run, "evaluate", "--questions", tmp_path / "q", "--json")[0] == 0
    code, out, _ = told(capsys, "info", run)
    (optimize,) = (line for line in out.splitlines() if line.startswith("  optimize"))
    assert code == 0 and optimize.split() == ["optimize", "lr", "0.2"]  # what the compiled code uses, and no more
    assert "precision" not in out and "epochs 2" in out


def test_a_handful_of_words_is_warned_of(tmp_path, capsys):
    (tmp_path / "t.txt").write_text("a b c d\n" * 3)
    flags = ["--data", tmp_path / "t.txt", "--min-count", "1", "--dim", "4", "--threads", "1", "--epochs", "1"]
    code, out, _ = told(capsys, "train", "vectors", *flags, "--out", tmp_path / "run")
    assert code == 0 and "WARNING: 12 words of text are few to learn 4 vectors from. Expect" in out
    assert "12 words in 1 epoch;" in out


def test_look(run, capsys, tmp_path):
    pytest.importorskip("sklearn")
    page = tmp_path / "p.html"
    flags = ["--ratio", "왕:여왕", "--contexts", "은,과", "--arrows", "남자:여자", "--out", page]
    code, out, _ = told(capsys, "look", run, "왕", "여왕", *flags)
    assert code == 0 and "여왕" in page.read_text(encoding="utf-8") and "P(" in out


@pytest.mark.parametrize(("words", "message"), [
    (["nearest", "왕비"], "'왕비' has no vector"),
    (["nearst", "왕"], "there is no action 'nearst'. Did you mean 'nearest'"),
    ([], "the action is missing"),
    (["nearest"], "WORD is missing"),
    (["evaluate"], "there is nothing to score"),
    (["analogy", "-", "왕"], "is no analogy; expected three words"),
    (["odd", "왕"], "1 word; expected three or more"),
    (["export", "x", "--format", "docx"], "format"),
])  # fmt: skip
def test_a_mistake_is_one_sentence(run, words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = told(capsys, "vectors", run, *words)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_where_no_word_is_left_to_rank_that_is_said(capsys, tmp_path):
    (tmp_path / "v.txt").write_text("3 2\na 1 0\nb 1 0.1\nc 0 1\n")
    assert told(capsys, "vectors", "import", tmp_path / "v.txt", "--out", tmp_path / "run")[0] == 0
    code, out, err = told(capsys, "vectors", tmp_path / "run", "analogy", "a", "-", "b", "+", "c")
    assert (code, out) == (2, "") and "no word is left to rank" in err and err.count("\n") == 1


def test_help_shows_the_actions(capsys):
    code, out, _ = told(capsys, "vectors")
    assert code == 0 and "analogy" in out
