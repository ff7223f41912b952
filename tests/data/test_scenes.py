"""Drawn scenes: one right caption each, gold boxes, and combinations that training never shows."""

import json
from itertools import islice

import numpy as np
import pytest
from PIL import Image

from qkv.data.scenes import COLOURS, SHAPES, combinations, scenes, write_scenes
from qkv.errors import ConfigError


def test_a_scene_is_a_function_of_seed_and_number():
    one, other = (list(islice(scenes(3, skip=skip), count)) for skip, count in ((0, 5), (4, 1)))
    assert np.array_equal(one[4].pixels, other[0].pixels) and one[4].caption() == other[0].caption()


def test_test_combinations_are_unseen_and_their_parts_are_seen():
    train, test = set(combinations("train")), set(combinations("test"))
    assert not train & test and len(test) == (len(test) + len(train)) // 5
    assert {part for one in test for part in one} <= {part for one in train for part in one}
    coloured = {one[:2] for one in train} & {one[3:] for one in train}
    assert coloured == {(colour, shape) for colour in COLOURS for shape in SHAPES}


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_caption_says_what_stands_where(part):
    for scene in islice(scenes(1, part), 40):
        assert scene.combination in combinations(part)
        first, second = scene.boxes
        if scene.combination[2] == "left of":
            assert first[2] < second[0]
        else:
            assert first[3] < second[1]
        for (colour, _), box in zip((scene.combination[:2], scene.combination[3:]), scene.boxes, strict=True):
            inside = scene.pixels[box[1] : box[3], box[0] : box[2]].astype(int)
            middle = inside[inside.shape[0] // 2, inside.shape[1] // 2]
            assert abs(middle - np.array(COLOURS[colour][0])).max() < 60


def test_words_have_their_place_and_their_shape():
    scene = next(scenes(0))
    for language in ("en", "ko"):
        text = scene.caption(language)
        assert all(text[slice(*said.span)] == said.word for said in scene.said(language))
        assert sum(said.box == scene.boxes[0] for said in scene.said(language)) == 2
    first, second = ([s.word for s in scene.said("ko")][i] for i in (-1, 1))
    assert (first, second) == (SHAPES[scene.combination[1]], SHAPES[scene.combination[4]])


def test_they_are_written_as_captions_are_read(tmp_path):
    write_scenes(tmp_path / "s", {"train": 3, "test": 2}, "ko", size=32)
    lines = [json.loads(line) for line in (tmp_path / "s" / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 3 and " ".join(word["word"] for word in lines[0]["words"]) == lines[0]["caption"]
    assert Image.open(tmp_path / "s" / lines[0]["image"]).size == (32, 32)
    with pytest.raises(ConfigError, match="scenes of 16 pixels"):
        next(scenes(0, size=16))
