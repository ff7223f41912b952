"""Learning to translate: what the task adds to the loop."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from qkv.data.buckets import Batch
from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.models.seq2seq import Seq2Seq, Seq2SeqConfig
from qkv.models.transformer import Transformer, TransformerConfig
from qkv.tasks.forcing import chance_of_truth
from qkv.tasks.load import load
from qkv.tasks.settings import read_settings, write_settings
from qkv.tasks.translate import Translate
from qkv.train.loop import train
from qkv.train.options import from_mapping

SMALL = TransformerConfig(30, 30, dim=16, encoder_depth=1, decoder_depth=2, heads=2, hidden=32, dropout=0.0)


@pytest.fixture
def batch() -> Batch:
    source, target = torch.randint(3, 30, (3, 6)), torch.randint(3, 30, (3, 7))
    lengths = torch.tensor([6, 4, 2])
    return Batch(source, lengths, target, lengths + 1, torch.arange(3), int(lengths.sum()), 0)


def test_the_loss_is_a_sum_over_real_targets_alone(batch):
    model, task = Transformer(SMALL).train(), Translate()
    whole = task.loss(model, batch)
    longer = replace(batch, target=torch.nn.functional.pad(batch.target, (0, 3), value=0))
    torch.testing.assert_close(whole.total, task.loss(model, longer).total)
    assert whole.parts["nll"] < batch.targets * 10


def test_the_aligning_loss_teaches_one_head_to_keep_what_the_last_layer_found(batch):
    model, task = Transformer(SMALL).train(), Translate(align=1.0)
    optimizer = torch.optim.Adam(model.decoder[0].cross.parameters(), lr=1e-2)
    apart = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        (loss.total / batch.targets).backward()
        optimizer.step()
        apart.append(float(loss.parts["align"]))
    assert apart[-1] < apart[0]
    assert all(layer.tap is None for layer in model.modules() if isinstance(layer, Attention))


def test_the_aligning_loss_changes_nothing_where_it_is_not_asked_for(batch):
    model = Transformer(SMALL).train()
    with_it = Translate(align=0.5).loss(model, batch)
    torch.testing.assert_close(with_it.total - 0.5 * with_it.parts["align"], Translate().loss(model, batch).total)
    assert "align" not in Translate(align=0.5).loss(model.eval(), batch).parts


def test_aligning_needs_two_cross_attentions(batch):
    with pytest.raises(ConfigError, match="two decoder blocks"):
        Translate(align=0.1).loss(Transformer(replace(SMALL, decoder_depth=1)).train(), batch)


@pytest.mark.parametrize("wrong", [{"smoothing": 1.0}, {"smoothing": -0.1}, {"align": -1.0}])
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ConfigError, match="learn." + next(iter(wrong))):
        Translate(**wrong)


def test_separate_vocabularies_cannot_share_one_table(run_folder: Path):
    task = Translate()
    codec = task.load_codec(run_folder / "codec")
    assert task.config(codec, TransformerConfig()).tie == "all"
    assert (
        task.config(replace(codec, source=task.load_codec(run_folder / "codec").source), TransformerConfig()).tie
        == "output"
    )


def test_a_fine_tuned_run_keeps_how_its_first_run_searches(run_folder, pairs, tmp_path):
    before = read_settings(run_folder)
    write_settings(run_folder, search={"beam": 3, "length_penalty": 0.6})
    try:
        data = {"folder": str(pairs), "source": "ko", "target": "en", "batch_tokens": 512}
        settings = {
            "data": data,
            "init": run_folder,
            "out": tmp_path / "more",
            "loop": {"steps": 2, "evaluate_every": 2},
        }
        folder = train(from_mapping("translate", settings)).folder
        assert read_settings(folder)["search"] == {"beam": 3, "length_penalty": 0.6}
    finally:
        write_settings(run_folder, search=before.get("search", {}))


def recurrent(**changes) -> Seq2Seq:
    return Seq2Seq(Seq2SeqConfig(**{"source_words": 30, "target_words": 30, "dim": 16, "dropout": 0.0, **changes}))


@pytest.mark.parametrize("make", [recurrent, lambda: Transformer(SMALL)])
def test_with_teacher_forcing_of_1_the_true_words_are_read_and_with_0_the_models_own(batch, make, monkeypatch):
    model, read = make().train(), []
    forward = type(model).forward

    def listen(self, source, lengths, target, *rest):
        read.append(target)
        return forward(self, source, lengths, target, *rest)

    monkeypatch.setattr(type(model), "forward", listen)
    true = batch.target[:, :-1]
    Translate().loss(model, batch, 1)
    Translate(teacher_forcing=0.0).loss(model, batch, 1)
    Translate(teacher_forcing=0.5).loss(model, batch, 1)
    forced, own, mixed = read
    assert torch.equal(forced, true)
    said = model.eval().output(forward(model, batch.source, batch.source_lengths, own)).argmax(-1)
    assert torch.equal(own[:, 0], true[:, 0]) and torch.equal(own[:, 1:], said[:, :-1])
    said = model.output(forward(model, batch.source, batch.source_lengths, mixed)).argmax(-1)
    assert ((mixed[:, 1:] == said[:, :-1]) | (mixed[:, 1:] == true[:, 1:])).all()


def test_the_chance_of_truth_falls_in_a_line():
    assert [chance_of_truth(0.6, 100, step) for step in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.8, 0.6, 0.6])
    with pytest.raises(ConfigError, match=r"teacher_forcing is 1\.5"):
        Translate(teacher_forcing=1.5)


def test_scheduled_sampling_leaves_the_model_in_training(batch):
    model = recurrent(dropout=0.1).train()
    loss = Translate(teacher_forcing=0.5).loss(model, batch, 3)
    loss.total.backward()
    assert model.training and all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    dev = Translate(teacher_forcing=0.0).loss(model.eval(), batch, 3)
    torch.testing.assert_close(dev.total, Translate(smoothing=0.0).loss(model, batch).total)


@pytest.mark.learning
@pytest.mark.parametrize("turned", [False, True], ids=["copy", "reverse"])
def test_where_the_answer_is_known_attention_is_the_diagonal_or_the_other_one(tmp_path, turned):
    """Copying and reversing words: the word that is said next is looked at, with 0.9 of the weight and more."""
    draw = random.Random(0)
    lines = [[draw.choice("abcdefghijklmnop") for _ in range(draw.randint(3, 9))] for _ in range(6000)]
    for name, part in (("train", lines[:5900]), ("dev", lines[5900:])):
        (tmp_path / f"{name}.src").write_text("".join(" ".join(line) + "\n" for line in part))
        (tmp_path / f"{name}.trg").write_text("".join(" ".join(line[:: -1 if turned else 1]) + "\n" for line in part))
    settings = {
        "model": "seq2seq",
        "size": {"dim": 64, "depth": 1, "dropout": 0.0, "attention": "bilinear"},
        "data": {"folder": str(tmp_path), "source": "src", "target": "trg", "vocabulary": "word", "batch_tokens": 1024},
        "optimize": {"lr": 5e-3, "warmup": 50, "schedule": "constant"},
        "loop": {"steps": 400, "evaluate_every": 400},
        "out": tmp_path / "run",
    }
    translator = load(train(from_mapping("translate", settings)).folder)
    sources = [" ".join(line) for line in lines[5900:]]
    answers = translator(sources)
    targets = [" ".join(line[:: -1 if turned else 1]) for line in lines[5900:]]
    assert sum(a.text == t for a, t in zip(answers, targets, strict=True)) >= 95
    mass = []
    for answer, line in zip(translator.score(zip(sources, targets, strict=True)), lines[5900:], strict=True):
        map = translator.replay([answer])["decoder.attention"][0]
        places = range(len(line))[:: -1 if turned else 1]
        mass += [float(map.weights[0, step, place]) for step, place in enumerate(places)]
    assert sum(mass) / len(mass) >= 0.9
