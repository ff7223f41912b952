"""Preprocessing: published constants give published numbers, crops lie where they should, and files bring it back."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from photos import noise

from qkv.data.preprocess import IMAGENET, Preprocess, resize
from qkv.errors import ConfigError, RunError

WHITE = np.full((8, 8, 3), 255, np.uint8)


def test_a_white_pixel_is_what_the_weights_were_trained_with():
    """BL-21: 1.0 with mean and deviation 0.5; 2.2489 (red) with the constants of ImageNet."""
    assert torch.equal(Preprocess((8, 8))(WHITE), torch.ones(3, 8, 8))
    red, green, blue = Preprocess((8, 8), **IMAGENET)(WHITE)[:, 0, 0].tolist()
    assert (round(red, 4), round(green, 4), round(blue, 4)) == (2.2489, 2.4286, 2.64)


@pytest.mark.parametrize(
    ("size", "crop", "picture", "region"),
    [
        ((224, 224), 0.875, (256, 256), (16, 16, 240, 240)),
        ((224, 224), 1.0, (224, 448), (112, 0, 336, 224)),
        ((224, 224), 1.0, (448, 224), (0, 112, 224, 336)),
        ((224, 224), 0.875, (512, 1024), (288, 32, 736, 480)),
        ((32, 64), 1.0, (32, 64), (0, 0, 64, 32)),
        ((32, 64), 1.0, (64, 64), (0, 16, 64, 48)),
    ],
)
def test_the_centre_crop_leads_back_into_the_picture(size, crop, picture, region):
    assert Preprocess(size, crop).region(*picture) == region


def test_a_picture_that_may_be_stretched_is_read_whole():
    assert Preprocess((224, 224), stretch=True).region(448, 100) == (0, 0, 100, 448)
    assert Preprocess((224, 224), 0.875, stretch=True).region(512, 256) == (16, 32, 240, 480)


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 40), st.integers(1, 40), st.floats(0.3, 1))
def test_a_crop_lies_inside_of_any_picture(height, width, rows, columns, crop):
    left, top, right, bottom = Preprocess((rows, columns), crop).region(height, width)
    assert 0 <= left < right <= width and 0 <= top < bottom <= height


def test_cropping_in_one_step_is_resizing_and_then_cropping():
    from PIL import Image

    pixels = noise(1, 100, 150)
    found = Preprocess((40, 40), 0.8).shown(pixels)
    whole = Image.fromarray(pixels).resize((75, 50), Image.Resampling.BICUBIC)
    expected = np.asarray(whole.crop((18, 5, 58, 45)))
    assert abs(found.astype(int) - expected).max() <= 1


def test_a_picture_of_one_row_does_not_grow_before_it_is_cropped():
    assert Preprocess((224, 224)).shown(np.zeros((1, 1_000_000, 3), np.uint8)).shape == (224, 224, 3)


def test_a_picture_of_the_right_size_is_left_alone():
    pixels = noise(2, 32, 32)
    assert (Preprocess((32, 32)).shown(pixels) == pixels).all()
    assert (Preprocess((32, 32), antialias=False).shown(pixels) == pixels).all()


def test_antialias_averages_and_nearest_does_not():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 254
    smooth = resize(stripes, (8, 8), None, "bilinear")
    sharp = resize(stripes, (8, 8), None, "nearest")
    assert smooth[4, 4, 0] in range(120, 135) and set(sharp.ravel().tolist()) <= {0, 254}
    assert set(resize(stripes, (8, 8), None, "bilinear", antialias=False).ravel().tolist()) <= set(range(255))


def test_it_is_saved_and_never_typed_again(tmp_path):
    one = Preprocess((32, 48), 0.9, **IMAGENET, interpolation="bilinear", antialias=False)
    one.save(tmp_path)
    assert Preprocess.load(tmp_path) == one
    assert str(one) == (
        "32 x 48 pixels, centre crop 0.9, bilinear without antialias, mean 0.485, 0.456, 0.406, std 0.229, 0.224, 0.225"
    )
    plain = json.loads((tmp_path / "preprocess.json").read_text())
    for wrong in ("{", json.dumps(plain | {"std": [0, 1, 1]}), json.dumps(plain | {"zoom": 2}), "[]"):
        (tmp_path / "preprocess.json").write_text(wrong)
        with pytest.raises(RunError, match=r"preprocess\.json: the preprocessing cannot be read"):
            Preprocess.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": (0, 4)}, r"preprocess.size is \(0, 4\); expected a height and a width"),
        ({"crop": 0}, "preprocess.crop is 0; expected more than 0"),
        ({"std": (1, 1, 0)}, "preprocess.std is"),
        ({"interpolation": "cubic"}, "preprocess.interpolation is 'cubic'; expected nearest, bilinear"),
        ({"interpolation": "lanczos", "antialias": False}, "lanczos is defined with it"),
    ],
)
def test_settings_that_cannot_be(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(Preprocess(), **change)


def test_a_batch_is_normalised_as_each_picture_is():
    one = Preprocess((12, 10), **IMAGENET)
    batch = one.normalise(torch.from_numpy(np.stack([noise(1), noise(2)])))
    assert torch.equal(batch[1], one(noise(2))) and batch.shape == (2, 3, 12, 10) and batch.is_contiguous()
