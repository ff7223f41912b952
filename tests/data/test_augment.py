"""Augmentation: bounded, drawn from the given generator alone, and true to area where labels are mixed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from photos import noise

from qkv.data.augment import erase, flip, random_box, shift
from qkv.data.image_files import Augment
from qkv.data.mix import cutmix, mixup
from qkv.data.randaugment import OPERATIONS, randaugment
from qkv.errors import ConfigError


def chance(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0.05, 0.99), st.floats(1, 3), st.integers(0, 10_000))
def test_a_random_crop_lies_inside_and_is_as_large_as_asked(height, width, scale, ratio, seed):
    box = random_box(height, width, (height, width), scale, ratio, chance(seed))
    if box is not None:
        left, top, right, bottom = box
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
        rows, columns = bottom - top, right - left
        assert (rows + 0.5) * (columns + 0.5) >= scale * height * width


def test_crops_are_of_the_shape_that_they_are_stretched_to():
    boxes = [random_box(300, 300, (32, 64), 0.1, 4 / 3, chance(seed)) for seed in range(200)]
    shapes = [(right - left) / (bottom - top) for left, top, right, bottom in filter(None, boxes)]
    assert len(shapes) > 150 and min(shapes) > 1.4 and max(shapes) < 2.8


def test_flip_and_shift_move_and_change_nothing_else():
    pixels = noise(1)
    assert (flip(pixels, 1, chance()) == pixels[:, ::-1]).all() and (flip(pixels, 0, chance()) == pixels).all()
    moved = {shift(pixels, 2, chance(seed)).tobytes() for seed in range(300)}
    assert len(moved) == 25 and pixels.tobytes() in moved


@pytest.mark.parametrize("name", list(OPERATIONS))
@pytest.mark.parametrize("strength", [-1.0, -0.3, 0.0, 1.0])
def test_every_operation_keeps_size_and_colour(name, strength):
    from PIL import Image

    image = Image.fromarray(noise(2, 16, 24))
    changed = OPERATIONS[name](image, strength)
    assert changed.size == image.size and changed.mode == "RGB"
    gentle = name in ("auto contrast", "equalise")
    if strength == 0 and not gentle:
        assert (np.asarray(changed) == np.asarray(image)).all()


def test_shears_turn_about_the_middle():
    from PIL import Image

    image = np.zeros((21, 21, 3), np.uint8)
    image[10, 10] = 255
    for name in ("shear across", "shear down"):
        changed = np.asarray(OPERATIONS[name](Image.fromarray(image), 1.0)).astype(int)
        changed[(changed == 128).all(-1)] = 0  # what came in from outside
        assert np.unravel_index(changed[:, :, 0].argmax(), (21, 21)) in [(10, 9), (10, 10), (10, 11), (9, 10), (11, 10)]


def test_randaugment_is_a_function_of_its_generator():
    pixels = noise(3, 32, 32)
    one, again, other = (randaugment(pixels, 2, 9, chance(seed)) for seed in (1, 1, 2))
    assert (one == again).all() and (one != other).any() and one.shape == pixels.shape
    assert len({randaugment(pixels, 1, 9, chance(seed)).tobytes() for seed in range(200)}) > 15


def test_erasing_replaces_one_rectangle():
    for seed in range(50):
        image = torch.full((3, 20, 30), 7.0)
        erased = erase(image.clone(), 1.0, chance(seed)) != 7.0
        rows, columns = erased[0].any(1).nonzero().ravel(), erased[0].any(0).nonzero().ravel()
        assert erased[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert 0.01 <= erased[0].float().mean() <= 0.4
    assert torch.equal(erase(torch.ones(3, 4, 4), 0.0, chance()), torch.ones(3, 4, 4))
    assert erase(torch.ones(3, 1, 1), 1.0, chance()).shape == (3, 1, 1)


@pytest.mark.parametrize("mix", [mixup, cutmix])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_mixed_labels_say_how_much_of_each_picture_is_there(mix, count):
    """Picture i is filled with i, so that its share can be read off the pixels; odd batches and batches of one too."""
    images = torch.arange(count).float()[:, None, None, None].expand(count, 3, 9, 7).clone()
    labels = torch.eye(count)
    for seed in range(40):
        mixed, soft = mix(images, labels, 1.0, chance(seed))
        assert torch.allclose(soft.sum(1), torch.ones(count))
        read = (soft * torch.arange(count)).sum(1)
        assert torch.allclose(mixed.mean((1, 2, 3)), read, atol=1e-5)
        assert torch.equal(images[:, 0, 0, 0], torch.arange(count).float())  # what was given is left alone


def test_cutmix_takes_whole_pixels_up_to_the_border():
    images = torch.tensor([0.0, 1.0])[:, None, None, None].expand(2, 3, 8, 8).clone()
    shares = set()
    for seed in range(200):
        mixed, soft = cutmix(images, torch.eye(2), 1.0, chance(seed))
        assert set(mixed.unique().tolist()) <= {0.0, 1.0}
        shares.add(round(float(soft[0, 0]) * 64, 4))
    assert all(share == int(share) for share in shares) and len(shares) > 20


@pytest.mark.parametrize("change", [{"scale": 0}, {"ratio": 0.5}, {"flip": 2}, {"magnitude": 11}, {"mixup": -1}])
def test_settings_that_cannot_be(change):
    name, value = next(iter(change.items()))
    with pytest.raises(ConfigError, match=f"data.augment.{name} is {value}; expected"):
        Augment(**change)
