"""Word vectors from text to answers: training, going on, several threads and processes, neighbours, scores."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
import torch

import qkv
from qkv.data.word_ids import WordIds, store_sentences
from qkv.data.word_vectors import load_vectors
from qkv.data.words import Words
from qkv.errors import ConfigError, DataError, RunError
from qkv.kernels import word2vec as kernel
from qkv.models.saved import build
from qkv.models.word2vec import Word2VecConfig
from qkv.tasks.task import Position
from qkv.tasks.word_learner import WindowLearner, keep_thresholds
from qkv.tasks.word_scores import score_analogies, score_pairs, spearman
from qkv.tasks.word_vectors import WordVectors
from qkv.tasks.word_windows import WordWindows, mixed
from qkv.train.loop import train
from qkv.train.options import from_mapping

TWELVE = ["the king rules the land", "the queen rules the land", "a cat eats fish", "a dog eats meat",
          "the king and the queen", "cat and dog", "fish and meat", "the land is wide", "a wide land",
          "king of the land", "queen of the land", "the cat is a cat"]  # fmt: skip


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "twelve.txt"
    file.write_text("\n".join(TWELVE) + "\n")
    return file


def settings(corpus, out, model="skipgram", **changes):
    """A small run; nothing is dropped of so small a text."""
    values = {"data": {"folder": str(corpus), "min_count": 1}, "model": model, "out": out, "spread": {"threads": 1},
              "loop": {"epochs": 3}}  # fmt: skip
    size = {"dim": 8, **({} if model == "glove" else {"sample": 0.0}), **changes.pop("size", {})}
    return from_mapping("vectors", {**values, "size": size, **changes})


def weights(folder) -> dict[str, torch.Tensor]:
    from qkv.store import read_tensors

    return read_tensors(folder / "model.safetensors")[0]


def same(one, other) -> bool:
    one, other = weights(one), weights(other)
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(("model", "size"), [
    ("skipgram", {}), ("cbow", {"combine": "sum"}), ("skipgram", {"output": "hierarchical"}), ("glove", {}),
    ("cbow", {"output": "softmax"}),
])  # fmt: skip
def test_from_text_to_a_run(corpus, tmp_path, model, size):
    train(settings(corpus, tmp_path / "run", model, size=size))
    vectors = qkv.load(tmp_path / "run")
    assert len(vectors) == 15 and vectors["king"].shape == (8,) and np.isfinite(vectors.rows).all()
    assert {"run.yaml", "run.json", "model.json", "answer.json", "scores.jsonl", "codec"} <= set(
        os.listdir(tmp_path / "run")
    )
    words, rows = load_vectors(tmp_path / "run")
    assert words[0] == "the" and np.array_equal(rows[0], vectors["the"])
    lines = [json.loads(line) for line in (tmp_path / "run" / "scores.jsonl").read_text().splitlines()]
    assert all(np.isfinite(line["loss"]) for line in lines if "loss" in line)


def test_one_thread_gives_the_same_bits_in_any_process(corpus, tmp_path):
    """BL-53: hash seeds of the process do not matter."""
    for seed, out in (("1", "a"), ("2", "b")):
        code = (
            "from pathlib import Path; from qkv.train.loop import train; from qkv.train.options import from_mapping\n"
            "for model in ('skipgram', 'glove'):\n"
            f"  train(from_mapping('vectors', dict(data=dict(folder={str(corpus)!r}, min_count=1), model=model,"
            f"out=Path({str(tmp_path / out)!r}, model), size=dict(dim=8), spread=dict(threads=1),"
            "loop=dict(epochs=3))))"
        )
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed},
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "one thread: the same vectors to the bit each time" in done.stdout
    for model in ("skipgram", "glove"):
        assert same(tmp_path / "a" / model, tmp_path / "b" / model)


def test_several_threads_say_that_they_differ(corpus, tmp_path, capsys):
    train(settings(corpus, tmp_path / "run", spread={"threads": 2}))
    assert "2 threads write without locks" in capsys.readouterr().out


def test_every_epoch_goes_over_every_word(tmp_path):
    """BL-53: five epochs of a generator are five times its words."""
    words, text = store_sentences((line for line in TWELVE), tmp_path, min_count=1)
    model = build("skipgram", Word2VecConfig(len(words), 4))
    learner = WindowLearner(model, words, text, epochs=5, rate=0.025, seed=0, threads=2)
    seen = sum(learner.part(Position(epoch, 0))["targets"] for epoch in range(5))
    assert seen == 5 * sum(len(line.split()) for line in TWELVE)


@pytest.mark.parametrize("model", ["skipgram", "glove"])
def test_resumed_is_unbroken_to_the_bit(corpus, tmp_path, model, monkeypatch):
    from qkv.tasks import word_learner

    monkeypatch.setattr(word_learner, "PART", 16)
    monkeypatch.setattr(word_learner, "PAIRS", 20)
    whole = train(settings(corpus, tmp_path / "whole", model))
    train(settings(corpus, tmp_path / "parts", model, loop={"epochs": 3, "steps": 4}))
    train(settings(corpus, tmp_path / "parts", model, loop={"epochs": 3, "steps": 7}))
    again = train(settings(corpus, tmp_path / "parts", model, loop={"epochs": 3, "steps": 1000}))
    assert whole.step == again.step > 7
    assert same(tmp_path / "whole", tmp_path / "parts")


def test_a_killed_run_goes_on(corpus, tmp_path):
    big = tmp_path / "big.txt"
    big.write_text("\n".join(TWELVE * 1000) + "\n")
    flags = ["--data", str(big), "--out", str(tmp_path / "run"), "--dim", "8", "--threads", "1", "--epochs", "40",
             "--loop.save_every", "1"]  # fmt: skip
    saved = tmp_path / "run" / "checkpoints"
    with subprocess.Popen([sys.executable, "-m", "qkv", "train", "vectors", *flags], stdout=subprocess.DEVNULL) as one:
        until = time.monotonic() + 300
        while not list(saved.glob("step-*")) and time.monotonic() < until:
            time.sleep(0.01)
        one.send_signal(signal.SIGKILL)
    assert list(saved.glob("step-*")) and not (tmp_path / "run" / "model.json").exists()
    loop = {"epochs": 40, "save_every": 1}
    train(settings(big, tmp_path / "run", data=str(big), size={"sample": 1e-3}, loop=loop))
    train(settings(big, tmp_path / "whole", data=str(big), size={"sample": 1e-3}, loop=loop))
    assert same(tmp_path / "run", tmp_path / "whole")


def test_a_sweep_may_be_cut_anywhere(tmp_path):
    """Windows and dropped words hang on the place in the text alone: halves have the pairs of the whole."""
    draw = np.random.default_rng(0)
    sentences = [[f"w{i}" for i in draw.zipf(1.5, size) if i < 50] for size in (1, 3, 9000, 40, 17, 300)]
    words, text = store_sentences([s for s in sentences if s], tmp_path, min_count=1)
    kept = keep_thresholds(words.counts, 1e-2)
    tables = np.zeros((len(words), 4), np.float32), np.zeros((len(words), 4), np.float32)
    paths = np.zeros(0, np.uint32), np.zeros(0, np.float32), np.zeros(1, np.int64)
    alias, seed = kernel.alias_table(words.counts), np.uint64(7)

    def pairs(begin: int, end: int) -> np.ndarray:
        return np.array(kernel.sweep(text.ids, text.ends, begin, end, kept, 5, *tables, alias, 2, *paths,
                                     kernel.SKIPGRAM, 0.0, 0.0, 0.0, np.uint64(1), seed)[2:])  # fmt: skip

    size = len(text.ids)
    whole = pairs(0, size)
    for cuts in ([size // 2], [1, 2, 5], [5000, 5001, 9100], list(range(100, size, 333))):
        bounds = [0, *cuts, size]
        assert (sum(pairs(a, b) for a, b in pairwise(bounds)) == whole).all()

    # And they are the windows that the readable twin makes.
    config = Word2VecConfig(len(words), 4, window=5, sample=1e-2)
    twin = WordWindows(text, words, config, seed=0, places=500)
    twin_seed = np.random.SeedSequence([0, 0]).generate_state(1, np.uint64)[0]
    batches = [twin.batch(Position(0, i)) for i in range(twin.epoch_length(0))]
    kernels = np.array(kernel.sweep(text.ids, text.ends, 0, size, kept, 5, *tables, alias, 2, *paths,
                                    kernel.SKIPGRAM, 0.0, 0.0, 0.0, np.uint64(1), twin_seed)[2:])  # fmt: skip
    assert [sum(b.size for b in batches), sum(b.targets for b in batches)] == kernels.tolist()
    assert mixed(np.array([5], np.uint64))[0] != 5


def test_frequent_words_are_dropped_as_often_as_said():
    counts = np.array([900, 90, 10])
    chance = keep_thresholds(counts, 0.01) / 2**24
    np.testing.assert_allclose(
        chance, np.minimum(np.sqrt(0.01 / (counts / 1000)) + 0.01 / (counts / 1000), 1), atol=1e-6
    )
    assert (keep_thresholds(counts, 0) == 1 << 24).all()


def test_going_on_with_new_text_and_new_words(corpus, tmp_path):
    train(settings(corpus, tmp_path / "first"))
    more = tmp_path / "more.txt"
    more.write_text("the emperor rules the land\nthe emperor eats fish\n")
    run = from_mapping("vectors", {
        "data": {"folder": str(more), "min_count": 2}, "out": tmp_path / "second", "init": tmp_path / "first",
        "loop": {"epochs": 1}, "spread": {"threads": 1},
    })  # fmt: skip
    assert run.size.dim == 8
    train(run)
    first, second = qkv.load(tmp_path / "first"), qkv.load(tmp_path / "second")
    assert second.words.words[:15] == first.words.words and second.words.words[15:] == ["emperor"]
    assert np.array_equal(first["dog"], second["dog"]) and not np.array_equal(first["land"], second["land"])


def test_going_on_from_a_published_file(corpus, tmp_path):
    from qkv.weights.word_files import export_vectors, import_vectors

    train(settings(corpus, tmp_path / "first", "glove"))
    export_vectors(qkv.load(tmp_path / "first"), tmp_path / "v.txt", "glove")
    import_vectors(tmp_path / "v.txt", tmp_path / "table")
    np.testing.assert_array_equal(qkv.load(tmp_path / "table")["king"], qkv.load(tmp_path / "first")["king"])
    with pytest.raises(RunError, match="is not empty"):
        import_vectors(tmp_path / "v.txt", tmp_path / "table")
    run = from_mapping("vectors", {"data": str(corpus), "out": tmp_path / "on", "model": "cbow",
                                   "init": tmp_path / "table", "spread": {"threads": 1}})  # fmt: skip
    assert (run.model, run.size.dim) == ("cbow", 8)
    train(run)
    assert "king" in qkv.load(tmp_path / "on")


@pytest.mark.parametrize(("changes", "message"), [
    ({"optimize": {"warmup": 3}}, "optimize.warmup is set"),
    ({"loop": {"epochs": 1, "ema": 0.9}}, "loop.ema is set"),
    ({"spread": {"device": "cuda"}}, "runs on the CPU"),
    ({"size": {"sample": 2}}, "size.sample is 2"),
])  # fmt: skip
def test_what_the_kernels_cannot_use_is_refused(corpus, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        train(settings(corpus, tmp_path / "run", **changes))


def test_500_numbers_for_4_words(tmp_path):
    (tmp_path / "t.txt").write_text("a b c d\n" * 5)
    train(settings(tmp_path / "t.txt", tmp_path / "run", size={"dim": 500}))
    vectors = qkv.load(tmp_path / "run")
    assert len(vectors.nearest("a", 10)) == 3 and all(np.isfinite(near.score) for near in vectors.nearest("a"))


def test_a_text_of_one_word_gives_a_vector(tmp_path):
    (tmp_path / "t.txt").write_text("a a a a a a\n")
    for model in ("skipgram", "cbow", "glove"):
        train(settings(tmp_path / "t.txt", tmp_path / model, model))
        assert qkv.load(tmp_path / model).nearest("a") == []


def hand_made() -> WordVectors:
    rows = np.array([[1, 0.1], [1, 1.1], [2, 0], [2, 2], [0, 0], [-1, 0]], np.float32)
    return WordVectors(Words(["man", "king", "woman", "queen", "zero", "남자"], np.arange(6)), rows)


def test_neighbours_analogies_and_the_odd_one():
    vectors = hand_made()
    assert vectors.nearest("man", 1)[0].word == "woman"
    assert vectors.similarity("man", "남자") == pytest.approx(-1 / np.hypot(1, 0.1))
    assert vectors.odd(["man", "woman", "남자"])[0].word == "남자"
    for rule in ("add", "mul"):
        assert vectors.analogy(["king", "woman"], ["man"], rule=rule)[0].word == "queen"
    assert vectors.similarity("zero", "man") == 0
    for given, whose in (("zero", "the vector of 'zero'"), (np.zeros(vectors.dim), "the vector")):
        with pytest.raises(DataError, match=f"^{whose} is all zeros and has no direction"):
            vectors.nearest(given)
    assert vectors["\u1102\u1161\u11b7\u110c\u1161"][0] == -1  # typed as letters
    with pytest.raises(DataError, match=r"'quen' has no vector: it is not among the 6 words. Did you mean 'queen'"):
        vectors["quen"]
    with pytest.raises(DataError, match="Did you mean 'man'"):
        vectors["Man"]


def test_scores_say_what_was_out_of_vocabulary(tmp_path):
    (tmp_path / "q.txt").write_text(": family\nman king woman queen\nman king woman no\n: none\nx y z w\n")
    found = score_analogies(hand_made(), tmp_path / "q.txt")
    assert (found.asked, found.known, found.right) == (3, 1, 1) and found.sections == {"family": (1, 1), "none": (0, 0)}
    assert "2 of 3 questions (66.7%) have a word out of vocabulary" in str(found)
    (tmp_path / "p.tsv").write_text("# comment\nman\twoman\t9\nman\tqueen\t5\nman\t남자\t1\nman\tno\t3\n")
    pairs = score_pairs(hand_made(), tmp_path / "p.tsv")
    assert (pairs.pairs, pairs.known, pairs.spearman) == (4, 3, pytest.approx(1)) and "(25.0%)" in str(pairs)
    (tmp_path / "n.txt").write_text("x y z w\n")
    assert score_analogies(hand_made(), tmp_path / "n.txt").accuracy is None
    with pytest.raises(DataError, match=r"b\.txt:1: 3 words; expected a question of four"):
        (tmp_path / "b.txt").write_text("a b c\n")
        score_analogies(hand_made(), tmp_path / "b.txt")


def test_spearman_shares_ranks():
    assert spearman([1, 2, 2, 4], [1, 3, 3, 9]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]) == pytest.approx(0.8207826817)
    assert spearman([1.0], [2.0]) is None and spearman([1, 1], [1, 2]) is None


def test_two_processes_average_their_shares(corpus, tmp_path):
    big, out = tmp_path / "big.txt", tmp_path / "run"
    big.write_text("\n".join(TWELVE * 50) + "\n")
    flags = ["--data", str(big), "--out", str(out), "--dim", "8", "--threads", "1", "--epochs", "3", "--sample", "0"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [
        subprocess.Popen([sys.executable, "-m", "qkv", "train", "vectors", *flags], env={
            **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        })
        for rank in range(2)
    ]  # fmt: skip
    assert [process.wait(300) for process in both] == [0, 0]
    lines = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    vectors = qkv.load(out)
    assert lines[-1]["step"] == 3 and np.isfinite(vectors.rows).all()
    train(settings(big, tmp_path / "one", data=str(big)))
    alone = qkv.load(tmp_path / "one")
    cosine = (vectors.rows * alone.rows).sum() / np.linalg.norm(vectors.rows) / np.linalg.norm(alone.rows)
    assert 0.7 < cosine < 0.99999


@pytest.mark.learning
@pytest.mark.parametrize("model", ["skipgram", "cbow", "glove"])
def test_words_that_stand_alike_come_near(tmp_path, model):
    draw = np.random.default_rng(0)
    groups = [[f"{letter}{i}" for i in range(6)] for letter in "abcd"]
    lines = [" ".join(draw.choice(groups[i % 4], 8)) for i in range(4000)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    train(settings(tmp_path / "t.txt", tmp_path / "run", model, size={"dim": 16}, loop={"epochs": 15}))
    vectors = qkv.load(tmp_path / "run")
    for group in groups:
        assert {near.word[0] for near in vectors.nearest(group[0], 5)} == {group[0][0]}


def test_stored_text_that_is_damaged_is_said(corpus, tmp_path):
    store_sentences(TWELVE, tmp_path / "s", min_count=1)
    with open(tmp_path / "s" / "ids", "r+b") as file:
        file.truncate(20)
    with pytest.raises(DataError, match="damaged"):
        WordIds.open(tmp_path / "s")
