"""Recipes of captions stand in for defaults, what the user says wins, and what is told at the end can be typed."""

import json
from dataclasses import replace

import pytest

from qkv.data.scenes import write_scenes
from qkv.errors import ConfigError
from qkv.tasks.caption import Caption
from qkv.tasks.caption_recipe import described
from qkv.train.options import from_flags


@pytest.fixture(scope="module", params=[32, 64, 128])
def drawn(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("drawn")
    write_scenes(folder, {"train": 12, "dev": 2, "test": 2}, size=request.param)
    return folder, request.param


def flags(folder, *more):
    return from_flags(["caption", "--data", str(folder), "--out", "run", *more])


def test_few_pictures_have_a_small_encoder_and_few_steps(drawn):
    folder, side = drawn
    run = flags(folder)
    size = run.size.encoder_size
    assert (size if side == 32 else json.loads(size)["widths"]) == {32: "nano", 64: [32, 64], 128: [32, 64, 128]}[side]
    assert (run.size.dim, run.size.positions, run.data.batch) == (128, "learned", 4)
    assert (run.loop.steps, run.optimize.warmup, run.optimize.schedule) == (600, 60, "cosine")
    assert "few pictures from scratch: 600 steps of 4 captions" in described(run, 12)


def test_what_the_user_says_wins(drawn):
    folder, _ = drawn
    run = flags(folder, "--size", "base", "--size.encoder_size", "34", "--optimize.lr", "0.5", "--loop.steps", "40")
    assert (run.size.dim, run.size.encoder_size, run.optimize.lr) == (512, "34", 0.5)
    assert (run.loop.steps, run.optimize.warmup) == (40, 4)
    timed = flags(folder, "--loop.minutes", "2")
    assert (timed.loop.steps, timed.optimize.schedule) == (None, "constant")
    assert flags(folder, "--model", "caption-transformer").size.depth == 2  # tiny
    assert flags(folder, "--size.encoder", "vit", "--size.encoder_size", "nano").size.encoder_size == "nano"


def test_a_trained_encoder_and_many_pictures_have_their_own(drawn, monkeypatch):
    folder, side = drawn
    run = flags(folder, "--learn.encoder", "runs/lite0")
    assert (run.size.encoder_size, run.loop.steps, run.optimize.lr) == ("18", 800, 1e-3)
    assert "an encoder that was trained before" in described(run, 12)
    monkeypatch.setattr("qkv.tasks.caption_recipe.MANY", 5)
    many = flags(folder)
    assert many.size.encoder_size == ("20" if side == 32 else "18") and many.loop.steps == 5000
    assert "many pictures from scratch" in described(replace(many, learn={}), 12)


def test_the_next_command_names_the_users_own_test(drawn, tmp_path):
    folder, _ = drawn
    task, run = Caption(), flags(folder)
    task.begin(run, task.prepare(run.data, tmp_path, 0))
    assert task.next_commands(tmp_path)[-1].endswith(f"--data {folder / 'test.jsonl'}")


def test_an_option_of_another_model_is_named_with_it(drawn):
    with pytest.raises(ConfigError, match="A caption-transformer has none: leave it out, or use --model captioner"):
        flags(drawn[0], "--model", "caption-transformer", "--attention", "none")
