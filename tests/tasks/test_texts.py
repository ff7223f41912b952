"""Learning from texts, and answering: line in, line out, whatever comes in; and what an answer hangs on."""

import io
import json
import random
from functools import cache
from pathlib import Path

import pytest
import torch

import qkv
from qkv.cli import main
from qkv.data.text_codec import TextCodec
from qkv.data.texts_batches import TextBatch
from qkv.errors import ConfigError, DataError, RunError
from qkv.look.texts import faithfulness_of, largest_effects, text_faithfulness
from qkv.models.bert import BertConfig
from qkv.models.rnn import RnnConfig
from qkv.models.saved import build, load_model, read_config, save_model
from qkv.tasks.classify_texts import ClassifyTexts
from qkv.tasks.encoder_look import ATTENTION, GRADIENT, head_effects, silenced
from qkv.tasks.evaluate_tags import evaluate_tags
from qkv.tasks.evaluate_texts import evaluate_texts
from qkv.tasks.settings import write_settings
from qkv.tasks.tag import Tag
from qkv.tasks.tagger import read_raw
from qkv.tasks.text_classifier import TextClassifier, read_texts
from qkv.tasks.texts_out import conll_lines, json_line, json_spans, text_line
from qkv.train.loop import train
from qkv.train.options import from_mapping

NAMES, PLACES = ("Anna", "Boris", "Clara", "Dmitri", "Elsa"), ("Oslo", "Lima", "Cairo", "Seoul", "New York")
GOOD, BAD = ("lovely", "warm", "bright", "kind"), ("dull", "cold", "grim", "harsh")
SMALL = {
    "bert": {"dim": 32, "depth": 2, "heads": 4, "hidden": 64, "longest": 64, "dropout": 0.0},
    "rnn": {"dim": 32, "dropout": 0.0},
}


def reviews(seed: int, count: int) -> list[tuple[str, str]]:
    """A class and a sentence that one word of it decides."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        good = draw.random() < 0.5
        word = draw.choice(GOOD if good else BAD)
        text = f"{draw.choice(NAMES)} went to {draw.choice(PLACES)} and found it {word} , number {draw.randint(0, 99)}"
        found.append(("good" if good else "bad", text))
    return found


def conll(seed: int, count: int) -> str:
    """Sentences whose names and places are spans."""
    draw, lines = random.Random(seed), []
    for _ in range(count):
        place = draw.choice(PLACES).split()
        lines += [f"{draw.choice(NAMES)}\tB-PER", f"{draw.choice(('saw', 'left', 'likes'))}\tO"]
        lines += [f"{word}\t{'I' if i else 'B'}-LOC" for i, word in enumerate(place)]
        lines += [f"{draw.randint(0, 999)}\tO", ".\tO", ""]
    return "\n".join(lines) + "\n"


def table(path: Path, rows, names=("label", "text")) -> None:
    path.write_text("\n".join("\t".join(map(str, row)) for row in [names, *rows]) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Runs by task and model, each trained for some seconds when it is first asked for."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "reviews").mkdir()
    (folder / "numbers").mkdir()
    (folder / "names").mkdir()
    table(folder / "reviews" / "train.tsv", reviews(0, 300))
    table(folder / "reviews" / "test.tsv", reviews(1, 60))
    table(folder / "numbers" / "train.tsv", [(10 * (label == "good") + 5, text) for label, text in reviews(0, 300)])
    (folder / "names" / "train.conll").write_text(conll(0, 250), encoding="utf-8")
    (folder / "names" / "test.conll").write_text(conll(1, 40), encoding="utf-8")

    @cache
    def run(task: str, model: str, **changes) -> Path:
        data = {"classify": "reviews", "regress": "numbers", "tag": "names"}[task]
        settings = {
            "model": model,
            "size": SMALL[model],
            "data": {"folder": str(folder / data), "max_length": 48},
            "optimize": {"lr": 5e-3 if model == "bert" else 2e-2, "warmup": 5},
            "loop": {"steps": 45, "epochs": None, "evaluate_every": 45},
            "out": folder / f"{task}-{model}",
        }
        return train(from_mapping(task, {**settings, **changes})).folder

    run.folder = folder
    return run


@pytest.fixture(params=["bert", "rnn"])
def classifier(request, runs):
    return qkv.load(runs("classify", request.param))


@pytest.mark.learning
@pytest.mark.parametrize("model", ["bert", "rnn"])
def test_what_one_word_decides_is_learned_and_the_answer_hangs_on_it(runs, model):
    classifier = qkv.load(runs("classify", model))
    result = evaluate_texts(classifier, str(runs.folder / "reviews"))
    assert result.scores["accuracy"] >= 0.95 and result.texts == 60
    answer = classifier("Anna went to Oslo and found it lovely , number 7")
    assert str(answer) == "good"
    seen = classifier.look_at(answer)
    words = [word for word in seen[GRADIENT][0].key.words() if not word.mark]
    decides = next(i for i, word in enumerate(words) if word.text == "lovely")
    # What a recurrent network's pool looks at are states that have read the words around them too.
    for name in (ATTENTION, GRADIENT) if model == "bert" else (GRADIENT,):
        weights = seen[name][0].weights[0, 0]
        by_word = [float(weights[list(word.positions)].sum()) for word in words]
        first = sorted(range(len(words)), key=by_word.__getitem__, reverse=True)
        assert decides in first[: 1 if model == "bert" else 3], name
    found = text_faithfulness(classifier, answer)
    assert set(found.baselines) == {"left to right", "gradient", "attention"}
    assert found.curve.area > found.random.area or model == "rnn"


def test_a_size_that_does_not_fit_the_first_run_is_refused_before_data_are_read(tmp_path):
    config = BertConfig(words=9, **SMALL["bert"])
    save_model(build("bert", config), tmp_path / "bert", "bert")

    def run(size) -> object:
        given = {"kind": "texts", "data": {"train": "nowhere.tsv"}, "out": tmp_path / "run", "size": size}
        return from_mapping("classify", given | {"model": str(tmp_path / "bert")})

    for size, message in (({"dim": 64}, "size.dim is 64, and the model of --init has 32. Leave"), ("tiny", "size.dim")):
        with pytest.raises(ConfigError, match=message):
            run(size)
    assert run({"dim": 32, "dropout": 0.3, "pool": "mean"}).size.dropout == 0.3


@pytest.mark.parametrize(("steps", "warmup"), [(20, 1), (400, 20), (9000, 100), (None, 100)])
def test_a_short_run_warms_up_shortly_unless_told_otherwise(steps, warmup, tmp_path):
    given = {
        "data": {"train": "nowhere.tsv"},
        "kind": "texts",
        "model": "rnn",
        "out": tmp_path,
        "loop": {"steps": steps},
    }
    assert from_mapping("classify", given).optimize.warmup == warmup
    assert from_mapping("classify", given | {"optimize": {"warmup": 7}}).optimize.warmup == 7
    clips = given | {"kind": "clips", "model": "video", "data": {"folder": "nowhere"}}
    assert from_mapping("classify", clips).optimize.warmup == warmup


def test_a_dev_set_of_one_number_leaves_json_that_all_can_read(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    table(tmp_path / "data" / "train.tsv", [(len(text), text) for _, text in reviews(0, 40)])
    table(tmp_path / "data" / "dev.tsv", [(5, "Ivan went home")])
    settings = {
        "model": "rnn", "size": SMALL["rnn"], "data": str(tmp_path / "data"), "out": tmp_path / "run",
        "loop": {"steps": 2, "epochs": None, "evaluate_every": 1},
    }  # fmt: skip
    for steps in (2, 3):  # and it can be gone on with
        train(from_mapping("regress", settings | {"loop": settings["loop"] | {"steps": steps}}))
    assert "r2 not defined (all targets are equal)" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "run"), "--json"]) == 0
    told = [capsys.readouterr().out]
    assert main(["evaluate", str(tmp_path / "run"), "--data", str(tmp_path / "data" / "dev.tsv"), "--json"]) == 0
    told.append(capsys.readouterr().out)
    assert json.loads(told[-1])["scores"]["r2"] is None and json.loads(told[-1])["intervals"]["r2"] is None
    told += [path.read_text(encoding="utf-8") for path in (tmp_path / "run").rglob("*.json")]
    told += (tmp_path / "run" / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(told) > 6
    for text in told:
        json.loads(text, parse_constant=pytest.fail)
    assert main(["evaluate", str(tmp_path / "run"), "--data", str(tmp_path / "data" / "dev.tsv")]) == 0
    assert "spearman not defined (all targets or answers are equal)\n" in capsys.readouterr().out


@pytest.mark.learning
@pytest.mark.parametrize("model", ["bert", "rnn"])
def test_names_are_found_and_lie_in_the_raw_text(runs, model):
    tagger = qkv.load(runs("tag", model))
    result = evaluate_tags(tagger, str(runs.folder / "names"))
    assert result.scores["f1"] >= 0.95
    raw = "Anna  saw\u00a0New York 12."
    answer = tagger(raw)
    assert [(one.kind, raw[one.start : one.end]) for one in answer.found] == [("PER", "Anna"), ("LOC", "New York")]
    assert str(answer) == "[Anna]PER  saw\u00a0[New York]LOC 12."


@pytest.mark.learning
def test_a_number_is_learned_in_its_own_unit(runs):
    model = qkv.load(runs("regress", "rnn"))
    answer = model("Anna went to Oslo and found it lovely , number 7")
    assert answer.label == pytest.approx(15, abs=2)
    assert str(answer) == f"{answer.label:g}" and json.loads(json_line(answer))["number"] == answer.label


LINES = b"Anna found it lovely\n \n" + b"\xff\xfe\n" + b"Elsa found it grim"


def test_line_in_line_out_at_any_batch_size(classifier):
    alone = None
    for batch_tokens, window in ((1, 2), (64, 3), (8192, 4096)):
        answers = list(classifier.answers(read_texts(io.BytesIO(LINES)), batch_tokens=batch_tokens, window=window))
        assert [answer.mark for answer in answers] == ["", "blank", "undecodable", ""]
        assert [text_line(answer).split("\t")[-1] for answer in answers[1:3]] == ["blank", "undecodable"]
        chances = torch.tensor([answers[0].probabilities, answers[3].probabilities])
        alone = chances if alone is None else alone
        torch.testing.assert_close(chances, alone, atol=1e-5, rtol=0)
        assert torch.allclose(chances.sum(1), torch.ones(2))


def test_taggers_too(runs):
    tagger = qkv.load(runs("tag", "rnn"))
    raw = b"Anna saw Oslo\n\n" + b"\xff\n" + "\ufeffElsa \r\n".encode()
    answers = list(tagger.tag(read_raw(io.BytesIO(raw)), batch_tokens=7, window=3))
    assert [answer.mark for answer in answers] == ["", "blank", "undecodable", ""]
    assert json.loads(json_spans(tagger, answers[2])) == {"text": "", "mark": "undecodable"}
    assert conll_lines(tagger, answers[1]) == "# blank\n"
    assert [line.split("\t")[0] for line in conll_lines(tagger, answers[0]).splitlines()] == ["Anna", "saw", "Oslo"]
    words = ["Anna", "saw", "New", "York", "."]
    (given,) = tagger.tag_words([words])
    assert len(given.tags) == 5 and [given.text[a:b] for a, b in given.places] == words


def test_a_windowed_sentence_keeps_all_its_words(runs):
    tagger = qkv.load(runs("tag", "rnn"))
    text = "Anna saw Oslo 12 . " * 30
    answer = tagger(text)
    assert len(answer.tags) == 150 and max(one.end for one in answer.found) > len(text) - 20


def test_the_traced_answer_is_the_untraced_and_maps_know_their_words(classifier):
    text = "Anna found it lovely [SEP] </s>"
    before = classifier(text)
    seen = classifier.look(text)
    assert classifier(text) == before
    for name in (ATTENTION, GRADIENT):
        (map,) = seen[name]
        sums = map.weights.sum(-1)
        torch.testing.assert_close(sums[0, 0], torch.tensor(1.0))
        assert sums[0, 1] == 0 or abs(sums[0, 1] - 1) < 1e-5  # what only speaks against an answer is no reason for it
        assert map.key.text == text and map.query.pieces == tuple(name for name, _ in before.top(2))
        assert all(text[start:end] for start, end in map.key.spans[1:-1])
    logged = [float(torch.tensor(chance).log()) for _, chance in before.top()]
    assert list(seen.notes["scores"].values()) == pytest.approx(logged, abs=1e-4)


def test_relevance_is_gradient_times_attention(runs):
    """By finite differences, in a model of one block: R - I is the mean over heads of (dy/dA * A)+."""
    classifier = qkv.load(runs("classify", "bert"))
    classifier.model.blocks = classifier.model.blocks[:1]
    classifier.model.double()
    reading = classifier.reading("Anna found it lovely")
    from qkv.look.trace import trace
    from qkv.tasks.encoder_look import inputs

    given, outcome = inputs(classifier.model, reading.encoded), reading.outcomes[0]
    kept = {}

    def score(head=0, key=0, more=0.0):
        def edit(name, weights):
            kept["A"] = weights.detach().clone()
            weights = weights.clone()
            weights[0, head, 0, key] += more
            return weights

        with torch.no_grad(), trace(classifier.model, edit=edit):
            return float(outcome.score(classifier.model(*given).double(), given[1]))

    score()
    keys, heads = len(reading.encoded), kept["A"].shape[1]
    row = torch.zeros(keys, dtype=torch.float64)
    for head in range(heads):
        for key in range(keys):
            slope = (score(head, key, 1e-3) - score(head, key, -1e-3)) / 2e-3
            row[key] += max(0.0, slope * float(kept["A"][0, head, 0, key])) / heads
    found = classifier.look("Anna found it lovely")[ATTENTION][0].weights[0, 0].double()
    torch.testing.assert_close(found, row / row.sum(), atol=2e-3, rtol=0.02)


def test_heads_are_silenced_by_name_and_counted(runs):
    classifier = qkv.load(runs("classify", "bert"))
    text = "Anna found it lovely"
    effects = head_effects(classifier.model, classifier.reading(text))
    assert {name: len(own) for name, own in effects.items()} == {"blocks.0.attention": 4, "blocks.1.attention": 4}
    seen = classifier.look(text, edit=silenced(classifier.model, "blocks.1.attention:2"))
    best = next(iter(seen.notes["scores"]))
    fall = seen.notes["scores"][best] - seen.notes["edited"][best]
    assert fall == pytest.approx(effects["blocks.1.attention"][2], abs=1e-5)
    assert float(seen["blocks.1.attention"][0].weights[2].abs().sum()) == 0
    assert len(largest_effects(classifier, text)) == 8
    messages = {"blocks.9.attention:0": "Layers here", "blocks.0.attention:7": "has no head 7", "x": "LAYER:HEADS"}
    for wrong, message in messages.items():
        with pytest.raises(ConfigError, match=message):
            silenced(classifier.model, wrong)


def test_pages_of_looks_and_of_mistakes(runs, tmp_path, capsys):
    folder, texts, file = str(runs("classify", "bert")), runs.folder / "reviews", str(tmp_path / "a.html")
    capsys.readouterr()
    assert main(["look", folder, "Anna found it lovely", "--out", file, "--first", "--faithful"]) == 0
    told = capsys.readouterr().out
    assert "good " in told and "chance here" in told
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert '"id":"relevance"' in page and '"id":"first"' in page and '"id":"rollout"' not in page
    table(tmp_path / "odd.tsv", [("bad", "Anna found it lovely"), ("good", "Elsa found it grim")])
    assert main(["evaluate", folder, "--data", str(tmp_path / "odd.tsv"), "--page", str(tmp_path / "w.html")]) == 0
    assert "mistakes" in capsys.readouterr().out and "it is bad" in (tmp_path / "w.html").read_text(encoding="utf-8")
    assert main(["evaluate", folder, "--data", str(texts), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["texts"] == 60 and plain["classes"] == ["bad", "good"] and len(plain["confusion"]) == 2
    names = str(runs("tag", "rnn"))
    capsys.readouterr()  # what its training told
    assert main(["evaluate", names, "--data", str(runs.folder / "names"), "--json"]) == 0
    assert "f1" in json.loads(capsys.readouterr().out)["scores"]
    assert main(["look", names, "Anna saw Oslo", "--out", str(tmp_path / "t.html"), "--gradient"]) == 0
    assert "no attention. Shown is the gradient" in capsys.readouterr().out
    assert main(["look", names, "Anna saw Oslo", "--first"]) == 2
    assert "no queries to choose. Leave --first out" in capsys.readouterr().err


def test_verbs_say_what_is_wrong(runs, tmp_path, capsys):
    folder = str(runs("classify", "rnn"))
    capsys.readouterr()
    assert main(["classify", folder, "--text", "Anna found it lovely", "--top", "2"]) == 0
    assert len(capsys.readouterr().out.split("\t")) == 4
    table(tmp_path / "odd.tsv", [("ugly", "x")])
    for argv, message in (
        (["classify", folder, "--text", "a", "--input", "b"], "both given"),
        (["evaluate", folder, "--data", str(tmp_path / "odd.tsv")], "has the class 'ugly', which the model has not"),
        (["look", folder, " "], "the text is blank"),
        (["tag", folder, "--text", "a"], "tag does not know runs of 'classify texts'"),
    ):
        assert main(argv) == 2, argv
        assert message in capsys.readouterr().err


def test_a_run_starts_from_a_pretrained_one_and_says_what_is_new(runs, tmp_path):
    before = tmp_path / "pretrained"
    codec = TextCodec.load(runs("classify", "bert") / "codec")
    model = build("bert", BertConfig(words=codec.size, **{**SMALL["bert"], "dim": 16, "hidden": 32}))
    before.mkdir()
    save_model(model, before)
    codec.save(before / "codec")
    write_settings(before, task="pretrain")
    settings = {
        "model": str(before),
        "data": {"folder": str(runs.folder / "reviews"), "max_length": 32},
        "optimize": {"warmup": 100},
        "loop": {"steps": 1, "epochs": None, "evaluate_every": 1},
        "out": tmp_path / "run",
    }
    run = from_mapping("classify", settings)
    assert run.optimize.lr == 5e-4 and run.init == before
    folder = train(run).folder
    name, config = read_config(folder)
    assert (name, config.head, config.dim, config.outputs) == ("bert", "class", 16, 2)
    # The first step's rate is 1 % of 5e-4: the weights are still those that it started from.
    one, other = (m.blocks[0].attention.query.weight for m in (load_model(folder), model))
    assert torch.allclose(one, other, atol=1e-5)
    task = Tag()
    task.names = ("O", "B-X", "I-X")
    fresh = build("bert", BertConfig(**{**vars(config), "head": "tag", "outputs": 3}))
    (told,) = task.start_from(folder, fresh)
    assert "new, and to be learned: head.output.weight, head.output.bias" in told
    seen = qkv.load(before).look("Anna found it [MASK]")
    assert ATTENTION in seen and seen[ATTENTION][0].weights.shape[1] == 1
    with pytest.raises(ConfigError, match="gives none"):
        faithfulness_of(qkv.load(before), "Anna")


def test_a_model_that_reads_less_than_the_data_has_is_refused(runs, tmp_path):
    settings = {
        "model": "bert", "size": {**SMALL["bert"], "longest": 32}, "out": tmp_path / "run",
        "data": {"folder": str(runs.folder / "reviews"), "max_length": 64},
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"--data\.max_length 32"):
        train(from_mapping("classify", settings))


def test_word_vectors_are_where_a_model_starts(runs, tmp_path):
    lines = ["3 4", "lovely 1 0 0 0", "GRIM 0 2 0 0", "unseen 0 0 1 0"]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = ClassifyTexts(embeddings=str(tmp_path / "vectors.txt"))
    data = {"folder": str(runs.folder / "reviews"), "vocabulary": "word"}
    settings = {"model": "rnn", "size": {"dim": 4}, "out": tmp_path / "run", "data": data}
    run = from_mapping("classify", {**settings, "learn": {"embeddings": str(tmp_path / "vectors.txt")}})
    prepared = task.prepare(run.data, tmp_path, 0)
    model = build("rnn", task.config(prepared.codec, run.size))
    (told,) = task.fill(model, prepared.codec)
    assert "2 of" in told and "pieces that begin a word" in told
    (row,) = prepared.codec.text.pieces_of(["lovely"])
    vector = model.tokens.words.weight[row[0]]
    assert vector[0] > 0 and torch.equal(vector[1:], torch.zeros(3))
    with pytest.raises(DataError, match=r"have 4 numbers.*--size\.dim 4"):
        task.fill(build("rnn", task.config(prepared.codec, type(run.size)(dim=8))), prepared.codec)
    (tmp_path / "vectors.txt").write_text("lovely 1 0 0 0\nbad 1 x 0 0\n")
    with pytest.raises(DataError, match=r"vectors\.txt:2"):
        task.fill(model, prepared.codec)


def test_losses_are_sums_over_texts_and_over_units():
    torch.manual_seed(0)
    tokens, lengths = torch.randint(3, 20, (4, 6)), torch.tensor([6, 3, 5, 1])
    segments = torch.zeros_like(tokens)
    model = build("rnn", RnnConfig(words=20, dim=8, dropout=0.0, outputs=3))
    shares = torch.eye(3)[[0, 1, 2, 0]]
    task = ClassifyTexts()
    whole = task.loss(model, TextBatch(tokens, lengths, segments, shares, torch.arange(4), 4)).total
    parts = [
        task.loss(model, TextBatch(tokens[[i]], lengths[[i]], segments[[i]], shares[[i]], torch.tensor([i]), 1)).total
        for i in range(4)
    ]
    torch.testing.assert_close(whole, sum(parts))


def test_pairs_are_read_with_a_tab_between(tmp_path):
    rows = [("yes" if i % 2 else "no", f"it rains {i}", f"it is {'wet' if i % 2 else 'dry'} {i}") for i in range(40)]
    table(tmp_path / "train.tsv", rows, ("label", "premise", "hypothesis"))
    settings = {
        "model": "bert", "size": SMALL["bert"], "data": str(tmp_path), "out": tmp_path / "run",
        "loop": {"steps": 1, "epochs": None, "evaluate_every": 1},
    }  # fmt: skip
    run = from_mapping("classify", settings)
    assert run.data.max_length == 64  # which is all that the model reads
    classifier = TextClassifier.load(train(run).folder)
    answers = list(classifier.answers(read_texts(io.BytesIO(b"it rains\tit is wet\nit rains\n\n"), pair=True)))
    assert [answer.mark for answer in answers] == ["", "no pair", "blank"]
    seen = classifier.look("it rains", "it is wet")
    assert seen.notes["source"] == "it rains it is wet"
    faithful = faithfulness_of(classifier, "it rains", "it is wet")
    assert len(faithful.curve.deletion) == 6
    with pytest.raises(RunError):
        TextClassifier.load(tmp_path)
