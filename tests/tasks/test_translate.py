"""Learning to translate: what the task adds to the loop."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from qkv.data.buckets import Batch
from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.models.transformer import Transformer, TransformerConfig
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
