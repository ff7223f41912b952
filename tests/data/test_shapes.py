"""Drawn pictures and clips: the class lies in one patch, the events in one to three frames, and a seed says all."""

import json
from itertools import islice

import numpy as np
import pytest

from qkv.data.image_files import ImageFiles, check
from qkv.data.kind import find_kind
from qkv.data.pictures import decode
from qkv.data.shapes import EVENTS, MARKS, clips, shapes, write_clips, write_shapes
from qkv.errors import ConfigError


def test_a_seed_and_a_number_say_all():
    one, again, other = (list(islice(shapes(seed), 12)) for seed in (0, 0, 1))
    assert all((a.pixels == b.pixels).all() and a[1:] == b[1:] for a, b in zip(one, again, strict=True))
    assert not any((a.pixels == b.pixels).all() for a, b in zip(one, other, strict=True))
    later = next(shapes(0, skip=7))
    assert (later.pixels == one[7].pixels).all() and later.region == one[7].region
    assert [shape.label for shape in one] == [*range(len(MARKS))] * 2


def test_the_region_alone_decides_the_class():
    """Each mark is recognised from its region by the nearest pattern; outside of it, pictures of no class differ."""
    patterns = {}
    hits = 0
    for shape in islice(shapes(3), 300):
        left, top, right, bottom = shape.region
        grey = shape.pixels[top:bottom, left:right].mean(-1) > 120
        assert patterns.setdefault(shape.label, grey.tobytes()) == grey.tobytes()
        hits += 1
        assert (right - left, bottom - top) == (8, 8) and left % 8 == top % 8 == 0
    assert len(set(patterns.values())) == len(MARKS) and hits == 300
    outside = {label: [] for label in range(len(MARKS))}
    for shape in islice(shapes(4), 600):
        left, top, right, bottom = shape.region
        rest = shape.pixels.astype(float)
        rest[top:bottom, left:right] = np.nan
        outside[shape.label].append(np.nanmean(rest))
    means = np.array([np.mean(values) for values in outside.values()])
    assert means.std() < 3 * np.std(outside[0]) / np.sqrt(100)


def test_regions_lie_anywhere():
    places = {shape.region for shape in islice(shapes(0), 400)}
    assert len(places) == 16 and len({s.region for s in islice(shapes(0, size=48, patch=12), 400)}) == 16


def test_clips_hold_one_to_three_events():
    counts = set()
    for clip in islice(clips(0), 60):
        assert clip.frames.shape == (16, 32, 32, 3) and clip.frames.dtype == np.uint8
        where = np.flatnonzero(clip.events)
        counts.add(len(where))
        assert where[-1] - where[0] == len(where) - 1
        bright = (clip.frames.min(-1) > 190).sum((1, 2))
        assert bright[clip.events].min() > bright[~clip.events].max()
    assert counts == {1, 2, 3}
    one, again = next(clips(5)), next(clips(5))
    assert (one.frames == again.frames).all() and one.label == again.label == 0


def test_they_are_written_as_a_folder_that_training_takes(tmp_path):
    write_shapes(tmp_path / "s", {"train": 24, "val": 12}, seed=1, classes=4)
    assert find_kind(str(tmp_path / "s")) == "pictures"
    report = check(ImageFiles(folder=str(tmp_path / "s")))
    assert report.kept == {"train": 24, "dev": 12} and not report.refused
    assert not [f for f in report.findings if "also in" in f.kind]
    rows = [json.loads(line) for line in (tmp_path / "s" / "regions.val.jsonl").read_text().splitlines()]
    shape = next(shapes(1, classes=4, skip=24))
    assert tuple(rows[0]["region"]) == shape.region
    assert (decode(tmp_path / "s" / rows[0]["picture"]).pixels == shape.pixels).all()


def test_clips_are_written_frame_by_frame(tmp_path):
    write_clips(tmp_path / "c", {"train": 3}, seed=2)
    rows = [json.loads(line) for line in (tmp_path / "c" / "train.jsonl").read_text().splitlines()]
    clip = next(clips(2))
    assert rows[0]["path"] == f"train/{EVENTS[0]}/00000" and rows[0]["frames"] == clip.events.tolist()
    assert rows[0]["label"] == EVENTS[0] and find_kind(str(tmp_path / "c")) == "clips"
    files = sorted((tmp_path / "c" / rows[0]["path"]).iterdir())
    assert len(files) == 16 and (decode(files[5]).pixels == clip.frames[5]).all()


@pytest.mark.parametrize("how", [{"patch": 7}, {"patch": 4}, {"classes": 1}, {"classes": 7}, {"size": 30}])
def test_what_cannot_be_drawn(how):
    with pytest.raises(ConfigError, match="expected"):
        next(shapes(0, **how))
