"""Recipes stand in for defaults, and what the user says wins."""

import pytest
from pictures import shapes
from PIL import Image

from qkv.data.image_codec import ImageCodec
from qkv.data.image_files import ImageFiles
from qkv.data.image_glance import glance
from qkv.data.preprocess import Preprocess
from qkv.errors import ConfigError
from qkv.models.resnet import ResNetConfig
from qkv.models.vit import ViTConfig
from qkv.tasks.classify_pictures import ClassifyPictures
from qkv.tasks.picture_recipe import _patch, traps
from qkv.train.options import from_flags, from_mapping


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return str(shapes(tmp_path_factory.mktemp("shapes")))


def flags(drawn, *more):
    return from_flags(["classify", "--data", drawn, "--out", "run", *more])


def test_few_small_pictures(drawn):
    run = flags(drawn)
    assert (run.model, run.kind, run.data.size) == ("vit", "pictures", 16)
    assert (run.size.dim, run.size.patch) == (64, 4)  # nano, and 16 patches
    assert (run.loop.epochs, run.optimize.schedule, run.optimize.warmup) == (100, "cosine", 15)  # of 300 steps
    assert run.data.batch == 16 and not any("batch" in line for line in traps(run, 36, (16, 16)))
    assert run.data.augment.shift == 2 and run.data.augment.scale == 1


@pytest.mark.parametrize(
    ("model", "key", "value"), [("swin", "window", 4), ("mixer", "patch", 4), ("resnet", "stem", "small")]
)
def test_each_model_is_made_for_small_pictures(drawn, model, key, value):
    assert getattr(flags(drawn, "--model", model).size, key) == value


def test_what_the_user_says_wins(drawn):
    run = flags(drawn, "--size", "tiny", "--size.patch", "8", "--optimize.lr", "0.5", "--loop.steps", "7")
    assert (run.size.dim, run.size.depth, run.size.patch) == (192, 12, 8)
    assert (run.optimize.lr, run.loop.steps, run.loop.epochs) == (0.5, 7, None)


def test_a_width_may_suit_the_recipe_and_not_the_default_size(drawn):
    size = flags(drawn, "--model", "vit", "--size.dim", "128").size
    assert (size.dim, size.heads, size.depth) == (128, 2, 4)
    with pytest.raises(ConfigError, match=r"size.dim 33 cannot be shared evenly by size.heads"):
        flags(drawn, "--model", "vit", "--size.dim=33")


def test_some_fields_of_a_size_change_the_one_that_suits_and_a_name_is_another(drawn):
    def size(asked):
        return from_mapping("classify", {"data": str(drawn), "model": "vit", "out": "x", "size": asked}).size

    assert (size({"dim": 32}).dim, size({"dim": 32}).depth) == (32, 4) and size({}).depth == 4
    assert (size("tiny").dim, size("tiny").depth) == (192, 12)


def test_another_size_of_a_resnet_is_that_size_whole(drawn):
    size = flags(drawn, "--model", "resnet", "--size", "18").size
    assert (size.stem, size.stem_width, size.widths, size.shortcut) == ("small", 64, (64, 128, 256, 512), "projected")


def test_minutes_alone_do_not_tell_the_last_step(drawn):
    run = flags(drawn, "--loop.minutes", "5")
    assert run.optimize.schedule == "constant" and run.loop.epochs is None
    assert any("minutes do not tell the last step" in line for line in traps(run, 36, (16, 16)))


def test_the_printed_settings_are_those_of_the_recipe(drawn, capsys):
    with pytest.raises(SystemExit):
        flags(drawn, "--print_config")
    told = capsys.readouterr().out
    assert "patch: 4" in told and "epochs: 100" in told


def test_the_same_run_comes_of_its_own_settings(drawn):
    from qkv.train.options import to_mapping

    run = flags(drawn, "--model", "resnet")
    values = to_mapping(run)
    assert from_mapping(values.pop("task"), values) == run


def test_traps(drawn):
    def of(*more, pictures=36, size=(16, 16)):
        return " ".join(traps(flags(drawn, *more), pictures, size))

    assert "patches of 8 pixels cut 16 x 16 into 4 only: take smaller ones, --size.patch 4" in of("--size.patch", "8")
    assert "36 pictures are few for a vit from scratch (fewer than 10,000)" in of()
    assert "a batch of 48 holds all 36 pictures" in of("--data.batch", "48")
    assert "the large stem leaves a quarter of 16 pixels" in of("--model", "resnet", "--size.stem", "large")
    assert of("--model", "resnet", "--data.batch", "8") == ""
    assert of(pictures=50_000) == ""


def test_a_patch_that_does_not_divide_the_picture_is_refused_with_both_sizes():
    codec = ImageCodec(Preprocess((220, 220)), ("a", "b"))
    with pytest.raises(ConfigError, match=r"size\.patch 16 does not divide size\.image 220 x 220"):
        ClassifyPictures().config(codec, ViTConfig(patch=16))
    assert ClassifyPictures().config(codec, ViTConfig(patch=11)).image == (220, 220)  # 11 does not divide 224
    assert ClassifyPictures().config(codec, ResNetConfig()).classes == 2


def test_a_glance_decodes_nothing(drawn, monkeypatch):
    monkeypatch.setattr(Image.Image, "load", None)
    assert glance(ImageFiles(drawn)) == (36, 16)
    assert glance(ImageFiles(train=f"{drawn}/train")) == (32, 16)  # some of them will be held out


def test_patches_divide_the_picture_and_leave_rows_enough():
    sides = [8, 16, 28, 32, 48, 64, 96, 128, 224]
    assert [_patch(side) for side in sides] == [2, 4, 4, 4, 4, 8, 8, 16, 16]
