"""Film strips: the weights of known maps to the digit, a page that needs nothing else, a strip as a picture."""

import base64
import io
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from qkv.axis import Frames
from qkv.data.clip_codec import ClipCodec
from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.errors import ConfigError, RunError
from qkv.look.clips import choose_view, film, share
from qkv.look.film_draw import draw_film
from qkv.look.film_page import film_page
from qkv.look.record import Map, Trace
from qkv.models.video import Video, VideoConfig
from qkv.tasks.clip_classifier import ClipClassifier

NASTY = '</script><img src=x onerror="alert(1)">$x^2$ & {{data}}'


def a_png(value: int) -> str:
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


def a_film(frames: int = 4, name: str = "a.gif", prefix=("[CLS]",), label: str = "wild") -> Trace:
    """Two blocks of two heads; in block 1, head 1 the class token looks at frame 2 alone."""
    axis = Frames(tuple(i / 2 for i in range(frames)), prefix)
    size = len(axis)
    even = torch.full((2, size, size), 1 / size)
    sharp = even.clone()
    sharp[1, 0] = 0
    sharp[1, 0, len(prefix) + 2] = 1
    maps = {
        f"blocks.{i}.attention": [Map(f"blocks.{i}.attention", "self", w, axis, axis, (0, 1), tuple(range(size)))]
        for i, w in enumerate((even, sharp))
    }
    said = ["0", "0", "1", "0", *["0"] * (frames - 4)]
    answer = {
        "clip": name, "label": label, "probabilities": {label: 0.75, "calm": 0.25}, "times": list(axis.times),
        "frames": said, "frame_probabilities": [0.9] * frames,
    }  # fmt: skip
    return Trace(
        maps,
        {"shows": "film", "film": [a_png(40 * i % 256) for i in range(frames)], "answer": answer, "run": "runs/scenes"},
    )


def test_the_weights_of_a_layer_a_head_and_a_query():
    seen = film(a_film())
    assert list(seen.layers()) == ["0", "1", "rollout"] and seen.pooled == "[CLS]"
    assert seen.weights("1", 1).tolist() == [0, 0, 1, 0]
    assert seen.weights("0").tolist() == pytest.approx([0.2] * 4)
    assert seen.weights("last").tolist() == pytest.approx([0.1, 0.1, 0.6, 0.1])  # the mean over heads
    assert torch.equal(seen.weights(), seen.weights("rollout")) and seen.weights(head=1).tolist() == [0, 0, 1, 0]
    assert seen.weights("1", 1, query=0).tolist() == pytest.approx([0.2] * 4)
    assert seen.weights("rollout").sum() <= 1
    for wrong in (("2", None), ("1", 2), ("1", 0, 4)):
        with pytest.raises(ConfigError, match=r"no (layer|frame)|has no head"):
            seen.weights(*wrong)


def test_without_a_class_token_all_frames_look():
    trace = a_film(prefix=())
    map = trace["blocks.1.attention"][0]
    seen = film(trace)
    assert seen.pooled == "mean of frames"
    assert torch.allclose(seen.weights("1", 1), map.weights[1].mean(0))


def test_the_share_of_marked_frames_beside_chance_and_the_view_that_shows_it_best():
    seen, marked = film(a_film()), [False, False, True, False]
    assert share(seen.weights("1", 1), marked) == (1.0, 0.25)
    assert share(seen.weights("0"), marked) == pytest.approx((0.25, 0.25))
    assert share(torch.zeros(4), marked) == (0.0, 0.25)
    assert choose_view([seen, seen], [marked, marked]) == ("1", 1)


def test_a_trace_without_a_film_is_told():
    trace = a_film()
    with pytest.raises(RunError, match="no film"):
        film(Trace(trace.maps, {}))
    part = Map(
        "blocks.0.attention", "self", torch.ones(2, 1, 5) / 5, *[trace["blocks.0.attention"][0].query] * 2, (0, 1), (0,)
    )
    with pytest.raises(RunError, match="no film"):
        film(Trace({"blocks.0.attention": [part]}, trace.notes))


def test_the_page_needs_nothing_else_and_takes_no_name_for_markup():
    text = film_page(a_film(name=NASTY, label=NASTY))
    assert "default-src 'none'" in text and "<img src=x" not in text and "<script src" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert data["answer"]["label"] == NASTY and data["layers"][1]["weights"][1][0][3] == 1


def test_a_strip_is_drawn_the_same_each_time(tmp_path):
    for name in ("a.svg", "b.svg"):
        a_film(label=NASTY).save(tmp_path / name)
        ElementTree.parse(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    a_film(18, prefix=()).save(tmp_path / "two-rows.svg")
    draw_film(a_film(), tmp_path / "a.png", layer="1", head=1)
    assert Image.open(tmp_path / "a.png").width > 300
    with pytest.raises(ConfigError, match="no layer '7'"):
        draw_film(a_film(), tmp_path / "a.png", layer="7")


def test_the_record_is_read_back_and_is_the_same_film(tmp_path):
    for name in ("a.safetensors", "a.json"):
        a_film().save(tmp_path / name)
        again = film(Trace.load(tmp_path / name))
        assert again.weights("1", 1).tolist() == [0, 0, 1, 0] and again.png == film(a_film()).png
        assert film_page(Trace.load(tmp_path / name)) == film_page(a_film())


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_looking_changes_nothing_and_shows_what_was_read(tmp_path, pool):
    """Of a clip longer than is read, the frames, times and weights are those of the frames that were read."""
    torch.manual_seed(0)
    config = VideoConfig(
        classes=2, frame_classes=2, frames=5, image=(16, 16), dim=16, depth=2, heads=2, hidden=32, pool=pool
    )
    codec = ClipCodec(ImageCodec(Preprocess((16, 16)), ("calm", "wild")), 5, 2.0, ("0", "1"))
    classifier = ClipClassifier(Video(config), codec)
    folder = tmp_path / "c"
    folder.mkdir()
    for i in range(20):
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(
            folder / f"{i}.png"
        )
    before = classifier(folder)
    seen = classifier.look(folder)
    assert classifier(folder) == before and list(seen) == ["blocks.0.attention", "blocks.1.attention"]
    shown = film(seen)
    assert shown.axis.times == (1.0, 3.0, 5.0, 7.0, 9.0) == before.times  # frames 2, 6, 10, 14, 18 at two a second
    first = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown.png[0]))))
    assert (first == np.asarray(Image.open(folder / "2.png"))).all()
    inside = classifier.look(folder, "*")
    assert len(inside["encoder.blocks.0.attention"]) == 5 and len(inside["blocks.0.attention"]) == 1
    assert "frames.position" in inside
    inside.save(tmp_path / "all.html")
