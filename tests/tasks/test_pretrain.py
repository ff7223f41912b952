"""Pretraining, and what a pretrained run does: fill holes, give vectors, find lines."""

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from qkv.cli import main
from qkv.data.lines import read_lines
from qkv.errors import ConfigError, DataError
from qkv.models.bert import Bert, BertConfig
from qkv.models.saved import load_model
from qkv.tasks.load import load
from qkv.tasks.pretrain import Pretrain
from qkv.tasks.settings import read_settings
from qkv.train.loop import train
from qkv.train.options import from_mapping

CITIES = {"서울": "한국", "도쿄": "일본", "파리": "프랑스", "런던": "영국"}
SIZE = {"dim": 32, "depth": 2, "heads": 2, "hidden": 64, "dropout": 0.0, "longest": 64}


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> Path:
    """Documents that each keep to one city, so that a second text tells whether it follows."""
    file = tmp_path_factory.mktemp("text") / "cities.txt"
    chance = np.random.default_rng(0)
    with open(file, "w", encoding="utf-8") as out:
        for city in chance.choice(list(CITIES), 400):
            out.write(
                f"{city} 은 {CITIES[city]} 의 수도 이다 .\n나는 {city} 에 갔다 .\n{CITIES[city]} 은 큰 나라 이다 .\n\n"
            )
    return file


def settings(text: Path, out: Path, **changes) -> dict:
    return {
        "size": SIZE,
        "data": {"folder": str(text), "longest": 48, "words": 330, "batch_tokens": 2048},
        "optimize": {"lr": 1e-2, "warmup": 10},
        "loop": {"steps": 4, "evaluate_every": 4},
        "out": out,
        **changes,
    }


@pytest.fixture(scope="session")
def pretrained(text, tmp_path_factory) -> Path:
    """A run of some seconds."""
    out = tmp_path_factory.mktemp("runs") / "bert"
    return train(from_mapping("pretrain", settings(text, out))).folder


def test_the_run_is_whole_and_says_what_it_is(pretrained):
    assert read_settings(pretrained)["task"] == "pretrain"
    model = load_model(pretrained)
    assert model.config.next and model.head["words"].output.weight is model.tokens.words.weight
    scores = [json.loads(line) for line in (pretrained / "scores.jsonl").read_text().splitlines()]
    dev = next(line["dev"] for line in scores if "dev" in line)
    assert set(dev) == {"loss", "perplexity", "accuracy", "next_accuracy"}


def test_the_loss_is_a_sum_over_hidden_words_whatever_the_padding(pretrained, text, tmp_path):
    task, model = Pretrain(), load_model(pretrained)
    batch = task.prepare(from_mapping("pretrain", settings(text, tmp_path / "run")).data, tmp_path / "run", 0).dev[0]
    wide = torch.nn.functional.pad(batch.tokens, (0, 3), value=7)
    places = batch.places // batch.tokens.shape[1] * wide.shape[1] + batch.places % batch.tokens.shape[1]
    padded = replace(batch, tokens=wide, segments=torch.nn.functional.pad(batch.segments, (0, 3)), places=places)
    one, other = task.loss(model, batch), task.loss(model, padded)
    torch.testing.assert_close(one.total, other.total)
    torch.testing.assert_close(
        Pretrain(words=0.5, next=2.0).loss(model, batch).total, 0.5 * one.parts["nll"] + 2 * one.parts["next_nll"]
    )


def test_without_next_sentences_inputs_are_packed_and_there_is_no_head_for_them(text, tmp_path):
    result = train(from_mapping("pretrain", settings(text, tmp_path / "run", learn={"next": 0.0})))
    model = load_model(result.folder)
    assert "next" not in model.head and set(result.scores) == {"loss", "perplexity", "accuracy"}


@pytest.mark.parametrize("wrong", [{"words": -1.0}, {"next": -1.0}, {"words": 0.0, "next": 0.0}])
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ConfigError, match=r"learn\."):
        Pretrain(**wrong)


def test_an_input_longer_than_the_model_reads_is_refused(text, tmp_path):
    changed = settings(text, tmp_path / "run", size={**SIZE, "longest": 32})
    with pytest.raises(ConfigError, match=r"data\.longest is 48, and the model reads 32"):
        train(from_mapping("pretrain", changed))


def test_a_run_goes_on_from_another(pretrained, text, tmp_path):
    changed = settings(text, tmp_path / "more", learn={"next": 0.0}, loop={"steps": 1, "evaluate_every": 1})
    run = from_mapping("pretrain", {**changed, "model": str(pretrained), "size": None})
    assert run.init == pretrained and run.size.dim == 32
    folder = train(run).folder
    assert load(folder).codec.fingerprint() == load(pretrained).codec.fingerprint()


def test_resumed_it_is_the_unbroken_run(text, tmp_path):
    """BL-46: masks, pairs and dropout come from seed and place."""
    loop = {"evaluate_every": 2, "save_every": 1}
    size = {**SIZE, "dropout": 0.1}
    whole = train(from_mapping("pretrain", settings(text, tmp_path / "a", size=size, loop={**loop, "steps": 4}))).folder
    for steps in (3, 4):
        part = settings(text, tmp_path / "b", size=size, loop={**loop, "steps": steps})
        broken = train(from_mapping("pretrain", part)).folder
    one, other = load_model(whole).state_dict(), load_model(broken).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_holes_are_filled_with_text(pretrained):
    encoder = load(pretrained)
    holes = encoder("서울 은 [MASK] 의 [MASK] 이다 .", 400)
    assert len(holes) == 2
    for guesses in holes:
        chances = [guess.probability for guess in guesses]
        assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-5
        assert len(guesses) == len(encoder.codec.ordinary)
        assert not {guess.piece for guess in guesses} & {"<pad>", "<s>", "</s>", "[MASK]"}
    assert holes[0][0].text.endswith(" 의 [MASK] 이다 .")
    with pytest.raises(DataError, match="nothing is hidden"):
        encoder("서울 은")
    with pytest.raises(DataError, match="at most 64"):
        encoder("[MASK] " * 100)


LINES = ["서울 은 한국 의 수도 이다", "", "나는", "도쿄 에 갔다 " * 30, "파리", "런던 에 갔다"]


@pytest.mark.parametrize("pool", ["cls", "mean", "max"])
def test_a_vector_does_not_depend_on_its_neighbours(pretrained, pool):
    """BL-07, BL-08: pads are never counted, order is restored, memory is that of a window."""
    encoder = load(pretrained)
    alone = [next(encoder.embed([line], pool=pool)) for line in LINES]
    for window, tokens in ((4096, 8192), (2, 16), (3, 100)):
        together = list(encoder.embed(LINES, pool=pool, window=window, batch_tokens=tokens))
        np.testing.assert_allclose(np.stack(together), np.stack(alone), atol=1e-5)
    assert not alone[1].any()
    lengths = np.linalg.norm(np.delete(np.stack(alone), 1, 0), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)
    assert abs(np.linalg.norm(next(encoder.embed(["나는"], normalise=False))) - 1) > 1e-3
    assert encoder.counts["blank"] > 0 and encoder.counts["cut"] > 0


def test_a_mean_is_that_of_the_real_tokens():
    """BL-08: vectors [2, 4] and [4, 8] and three pads [9, 9] have the mean [3, 6]; none at all has zeros."""
    model = Bert(BertConfig(words=5, dim=2, heads=1, hidden=2, depth=1, head="none"))
    states = torch.tensor([[[2.0, 4], [4, 8], [9, 9], [9, 9], [9, 9]]]).expand(2, -1, -1)
    lengths = torch.tensor([2, 0])
    assert model.pool(states, lengths, "mean").tolist() == [[3, 6], [0, 0]]
    assert model.pool(states, lengths, "max").tolist() == [[4, 8], [0, 0]]
    assert model.pool(states, lengths, "cls")[0].tolist() == [2, 4]


def test_near_lines_are_found_in_any_window(pretrained):
    encoder = load(pretrained)
    wanted = [(near.line, near.text) for near in encoder.nearest(["서울 은 한국 의"], LINES, top=3)[0]]
    assert len(wanted) == 3 and wanted[0] == (1, LINES[0])
    for window in (1, 2):
        found = encoder.nearest(["서울 은 한국 의", "파리"], LINES, top=3, window=window)
        assert [(near.line, near.text) for near in found[0]] == wanted
        assert found[1][0].text == "파리" and found[1][0].cosine == pytest.approx(1, abs=1e-5)
    assert {near.text for near in encoder.nearest(["파리"], LINES, top=99)[0]} == set(LINES) - {""} - {LINES[3]} | {
        LINES[3].strip()
    }


def test_a_line_that_is_no_text_is_counted(pretrained):
    encoder = load(pretrained)
    vectors = list(encoder.embed(read_lines(io.BytesIO("서울\n".encode() + b"\xff\n"))))
    assert len(vectors) == 2 and not vectors[1].any() and encoder.counts["undecodable"] == 1


def test_the_verbs(pretrained, tmp_path, capsys, monkeypatch):
    assert main(["fill", str(pretrained), "서울 은 [MASK] 의 수도 이다 .", "--top", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["fill", str(pretrained), "[MASK] [MASK]", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["holes"]) == 2
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    given = ["--input", str(tmp_path / "lines.txt")]
    assert main(["embed", str(pretrained), *given, "--output", str(tmp_path / "v.npy")]) == 0
    assert "6 lines (1 blank, 1 cut at the model's length)" in capsys.readouterr().err
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.shape == (6, 32) and vectors.dtype == np.float32
    assert main(["embed", str(pretrained), *given, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose([row["vector"] for row in rows], vectors, atol=1e-6)
    assert (
        main(["embed", str(pretrained), "--nearest", str(tmp_path / "lines.txt"), "--text", "파리", "--top", "1"]) == 0
    )
    assert capsys.readouterr().out.endswith("  5  파리\n")
    piped = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", piped)
    assert main(["embed", str(pretrained), *given]) == 0
    np.testing.assert_array_equal(np.load(io.BytesIO(piped.buffer.getvalue())), vectors)


def test_the_ending_of_a_file_of_vectors_says_what_it_holds(pretrained, tmp_path, capsys):
    embed = ["embed", str(pretrained), "--text", "파리"]
    for name in ("v.jsonl", "v.json"):
        assert main([*embed, "--output", str(tmp_path / name)]) == 0
        assert json.loads((tmp_path / name).read_text(encoding="utf-8"))["text"] == "파리"
    assert main([*embed, "--output", str(tmp_path / "v.npy")]) == 0 and np.load(tmp_path / "v.npy").shape == (1, 32)
    assert main([*embed, "--json", "--output", str(tmp_path / "w.npy")]) == 2
    assert "w.npy, an array, and --json gives lines of JSON" in capsys.readouterr().err
    assert not (tmp_path / "w.npy").exists()


def test_a_corpus_may_be_a_pipe_and_one_that_is_missing_is_named_so(pretrained, tmp_path, capsys):
    near = ["embed", str(pretrained), "--text", "파리", "--nearest"]
    assert main([*near, str(tmp_path / "none.txt")]) == 2
    assert "none.txt: cannot be read (No such file or directory)" in capsys.readouterr().err
    (tmp_path / "empty.txt").touch()
    assert main([*near, str(tmp_path / "empty.txt")]) == 2
    assert "empty.txt: there is not one line in it" in capsys.readouterr().err
    reading, writing = os.pipe()
    os.write(writing, "서울\n파리\n".encode())
    os.close(writing)
    assert main([*near, f"/dev/fd/{reading}", "--top", "1"]) == 0
    os.close(reading)
    assert capsys.readouterr().out.endswith("  2  파리\n")


def test_verbs_refuse_what_is_no_encoder(pretrained, run_folder, capsys):
    assert main(["fill", str(run_folder), "[MASK]"]) == 2
    assert "fill does not know runs of 'translate'" in capsys.readouterr().err
    assert main(["fill", str(pretrained), "서울"]) == 2
    assert "nothing is hidden" in capsys.readouterr().err


@pytest.mark.learning
def test_it_learns_what_stands_where_and_what_follows(text, tmp_path):
    """Which country goes with which city, and that a document keeps to its city."""
    changed = settings(text, tmp_path / "run", loop={"steps": 400, "evaluate_every": 400})
    result = train(from_mapping("pretrain", changed | {"data": changed["data"] | {"batch_tokens": 1024}}))
    assert result.scores["next_accuracy"] > 0.8 and result.scores["accuracy"] > 0.75
    encoder = load(result.folder)
    asked = [encoder(f"{city} 은 [MASK] 의 수도 이다 . 나는 {city} 에 갔다 .")[0][0].text for city in CITIES]
    right = sum(text.split()[2] == country for text, country in zip(asked, CITIES.values(), strict=True))
    assert right >= 3
