"""Picture models are trained by the one loop, go on as if nothing had been, and start from each other."""

import json
import math
from pathlib import Path

import pytest
import torch
from pictures import SIZES, settings, shapes, trained
from safetensors.torch import load_file
from torch import nn

from qkv.data.image_batches import ImageBatch
from qkv.data.image_codec import ImageCodec
from qkv.errors import ConfigError, DataError
from qkv.models.saved import load_model
from qkv.tasks.classify_pictures import ClassifyPictures
from qkv.tasks.load import load
from qkv.tasks.settings import family
from qkv.train.folder import read_scores
from qkv.train.info import describe
from qkv.train.loop import train
from qkv.train.options import from_mapping

FILE = "model.safetensors"


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Path:
    return shapes(tmp_path_factory.mktemp("shapes"))


@pytest.fixture(scope="session")
def vit_run(drawn, tmp_path_factory) -> Path:
    return trained("classify", drawn, tmp_path_factory.mktemp("runs") / "vit")


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / FILE)


@pytest.mark.parametrize("model", SIZES)
def test_each_model_trains_and_its_folder_answers(drawn, tmp_path, model):
    run = trained("classify", drawn, tmp_path / "run", model)
    assert family(run) == "classify pictures"
    classifier = load(run)
    answer = classifier(next((drawn / "test" / "disc").iterdir()))
    assert answer.classes == ("checks", "cross", "disc")
    assert answer.probabilities.sum() == pytest.approx(1) and answer.label in answer.classes
    dev = [line["dev"] for line in read_scores(run) if "dev" in line]
    assert len(dev) == 2 and set(dev[0]) == {"loss", "accuracy", "macro_f1"}
    told = describe(run)
    assert told["run"]["kind"] == "pictures" and any("recipe for few" in line for line in told["report"])


def test_a_run_that_is_gone_on_with_is_as_one_that_was_never_stopped(drawn, tmp_path):
    changes = {"loop": {"steps": 4, "evaluate_every": 4}, "size": {**SIZES["vit"], "stochastic_depth": 0.3}}
    data = {"folder": str(drawn), "augment": {"mixup": 0.5, "randaugment": 1}}
    whole = trained("classify", data, tmp_path / "whole", **changes)
    trained("classify", data, tmp_path / "parts", **changes | {"loop": {"steps": 2, "evaluate_every": 4}})
    parts = trained("classify", data, tmp_path / "parts", **changes)
    before, after = (load_file(next(run.glob("checkpoints/step-00000004*")) / FILE) for run in (whole, parts))
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("model", ["vit", "resnet"])
def test_computing_layers_twice_changes_nothing(drawn, tmp_path, model):
    size = SIZES[model] | ({"stochastic_depth": 0.3, "dropout": 0.1} if model == "vit" else {})
    runs = [
        trained("classify", drawn, tmp_path / name, model, size=size, loop={"steps": 2, "recompute": name == "twice"})
        for name in ("once", "twice")
    ]
    once, twice = map(weights, runs)
    assert all(torch.equal(once[name], twice[name]) for name in once)


def test_what_is_frozen_stays_and_the_rest_learns(drawn, tmp_path):
    changes = {"optimize": {"freeze": "stem,stages.0"}, "seed": 3}
    run = from_mapping("classify", settings(drawn, tmp_path / "run", "resnet", **changes))
    first = load_state(run)
    last = weights(train(run).folder)
    for name in first:
        same = torch.equal(first[name], last[name])
        assert same == name.startswith(("stem.", "stages.0.")), name  # statistics of batch norms too


def load_state(run) -> dict[str, torch.Tensor]:
    """The first weights of a run."""
    from qkv.models.saved import build
    from qkv.train import randomness

    task = ClassifyPictures()
    prepared = task.prepare(run.data, run.out.parent / "other", run.seed)
    randomness.seed_all(run.seed)
    return build(run.model, task.config(prepared.codec, run.size)).state_dict()


def test_no_module_of_that_name(drawn, tmp_path):
    with pytest.raises(ConfigError, match=r"optimize\.freeze: no module is called 'blokcs\.0'"):
        trained("classify", drawn, tmp_path / "run", optimize={"freeze": "blokcs.0"})
    with pytest.raises(ConfigError, match="nothing is left to learn"):
        trained("classify", drawn, tmp_path / "again", optimize={"freeze": "*"})


def test_a_run_of_other_classes_starts_with_a_new_head_and_all_other_weights(vit_run, tmp_path, capsys):
    data = shapes(tmp_path / "more", classes=4)
    run = trained("classify", data, tmp_path / "run", init=vit_run, loop={"steps": 1}, optimize={"lr": 1e-12})
    told = capsys.readouterr().out
    assert "new are head.output.weight, head.output.bias, for 4 classes (checks, cross, disc ...) instead of 3" in told
    before, after = weights(vit_run), weights(run)
    for name in before:
        if name.startswith("head.output"):
            assert after[name].shape[0] == 4
        else:
            torch.testing.assert_close(before[name], after[name], atol=1e-9, rtol=0)
    old, new = (ImageCodec.load(folder / "codec") for folder in (vit_run, run))
    assert new.preprocess == old.preprocess and len(new.classes) == 4


def test_as_many_classes_of_other_names_are_other_classes(vit_run, tmp_path, capsys):
    data = shapes(tmp_path / "more", classes=4)
    for part in ("train", "val", "test"):
        (data / part / "checks").rename(tmp_path / f"gone.{part}")
    trained("classify", data, tmp_path / "run", init=vit_run, loop={"steps": 1})
    assert "new are head.output.weight, head.output.bias" in capsys.readouterr().out


def test_a_run_of_the_same_classes_starts_with_all_weights(drawn, vit_run, tmp_path, capsys):
    trained("classify", drawn, tmp_path / "run", init=vit_run, loop={"steps": 1})
    assert "nothing new" in capsys.readouterr().out


def test_another_image_resamples_positions_by_their_rule_and_a_mixer_refuses(drawn, vit_run, tmp_path, capsys):
    data = {"folder": str(drawn), "size": 24}
    run = trained("classify", data, tmp_path / "run", init=vit_run, loop={"steps": 1}, optimize={"lr": 1e-12})
    assert "patches.position is resampled from 4 x 4 to 6 x 6 cells, by the rule of timm" in capsys.readouterr().out
    old, new = load_model(vit_run), load_model(run)
    assert new.config.image == (24, 24)
    torch.testing.assert_close(new.patches.position.table, old.patches.position(6, 6), atol=1e-6, rtol=0)
    mixer = trained("classify", drawn, tmp_path / "mixer", "mixer", loop={"steps": 1})
    with pytest.raises(ConfigError, match=r"keeps to its image of 16 x 16 pixels, and the new one is 24 x 24"):
        trained("classify", data, tmp_path / "other", init=mixer)


def test_several_labels(tmp_path):
    data = shapes(tmp_path / "drawn")
    for part in ("train", "val"):
        rows = [f"{file.relative_to(data)},{file.parent.name}|drawn" for file in sorted((data / part).glob("*/*.png"))]
        (data / f"{part}.csv").write_text("path,label\n" + "\n".join(rows) + "\n")
    places = {"train": str(data / "train.csv"), "dev": str(data / "val.csv"), "labels": "several"}
    run = trained("classify", places, tmp_path / "run", learn={"class_weights": "balanced"}, loop={"steps": 30})
    answer = load(run)(next((data / "val" / "disc").iterdir()))
    assert answer.classes == ("checks", "cross", "disc", "drawn") and answer.several
    assert "drawn" in answer.labels
    assert set(read_scores(run)[-1]["final"]) == {"loss", "map", "micro_f1", "macro_f1"}


class Constant(nn.Module):
    """Says the same of every picture."""

    def __init__(self, *logits: float):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, images):
        return self.logits.expand(len(images), -1)


def test_the_loss_of_a_batch_is_a_sum_and_mixed_labels_count_by_their_shares():
    shares = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    batch = ImageBatch(torch.zeros(2, 3, 4, 4), shares, torch.arange(2))
    loss = ClassifyPictures(smoothing=0.0).loss(Constant(math.log(3), 0.0), batch)
    assert batch.targets == 2
    assert loss.total.item() == pytest.approx(-1.25 * math.log(0.75) - 0.75 * math.log(0.25), rel=1e-5)


def test_weights_of_classes_are_those_of_the_training_pictures(tmp_path, drawn):
    run = from_mapping("classify", settings(drawn, tmp_path / "run", learn={"class_weights": "balanced"}))
    task = ClassifyPictures(class_weights="balanced")
    prepared = task.prepare(run.data, tmp_path / "kept", 0)
    task.begin(run, prepared)
    assert task.weights.tolist() == [1, 1, 1]


def test_numbers_are_for_regress(drawn, tmp_path):
    with pytest.raises(ConfigError, match="qkv train regress"):
        trained("classify", {"folder": str(drawn), "labels": "number"}, tmp_path / "run")


@pytest.mark.parametrize("huber", [0.0, 1.0])
def test_numbers_are_learned_and_told_in_their_own_unit(tmp_path, huber):
    """The target is how bright a picture is, from 1000 to 1255."""
    import numpy as np
    from PIL import Image

    chance, rows = np.random.default_rng(0), ["path,label"]
    for i in range(60):
        level = int(chance.integers(256))
        Image.fromarray(np.full((8, 8, 3), level, np.uint8) ^ chance.integers(2, size=(8, 8, 3), dtype=np.uint8)).save(
            tmp_path / f"{i}.png"
        )
        rows.append(f"{i}.png,{1000 + level}")
    (tmp_path / "all.csv").write_text("\n".join(rows) + "\n")
    size = {"stem": "small", "stem_width": 4, "widths": [4], "depths": [1]}
    data = {"folder": str(tmp_path / "all.csv"), "augment": {"randaugment": 0}}
    run = trained("regress", data, tmp_path / "run", "resnet", size=size, learn={"huber": huber}, loop={"steps": 60})
    scores = read_scores(run)[-1]["final"]
    assert scores["mae"] < 40 and scores["spearman"] > 0.8  # of 256 levels; a constant answer has a mae of 64
    answer = load(run)(np.full((8, 8), 200, np.uint8))
    assert answer.number == pytest.approx(1200, abs=80) and not answer.labels
    assert json.loads((run / "answer.json").read_text()) == {"task": "regress", "kind": "pictures"}


def test_classes_are_not_for_regress(drawn, tmp_path):
    with pytest.raises((ConfigError, DataError)):
        trained("regress", {"folder": str(drawn), "labels": "class"}, tmp_path / "run")
