"""Clips: the same pixels from folders, animations and videos; every fault named; batches by seed and place."""

import json
import shutil
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from films import animation, flat, frames, noise, packed, png, scenes, write
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from qkv.cli import main
from qkv.data.clip_batches import stack
from qkv.data.clip_codec import ClipCodec
from qkv.data.clip_files import ClipFiles, check
from qkv.data.clip_listing import fingerprint, list_clips
from qkv.data.clip_prepare import prepare_clips
from qkv.data.clip_sources import is_clip, open_clip, spread
from qkv.data.frame_labels import frame_classes, frame_labels
from qkv.data.image_codec import ImageCodec
from qkv.data.kind import find_kind
from qkv.data.pictures import PictureError, decode
from qkv.data.preprocess import Preprocess
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError, RunError
from qkv.tasks.task import Position


def pixels(clip) -> list[np.ndarray]:
    return list(clip.frames(range(len(clip.times))))


# Where frames come from


@given(st.integers(0, 500), st.integers(1, 40))
def test_frames_are_spread_evenly_and_short_clips_are_read_whole(count, most):
    wanted = spread(count, most)
    assert len(wanted) == min(count, most) == len(set(wanted)) and wanted == sorted(wanted)
    assert all(0 <= number < count for number in wanted)
    if count > most:  # as much before the first as after the last, but for rounding
        assert abs(wanted[0] - (count - 1 - wanted[-1])) <= 1
        assert np.ptp(np.diff(wanted)) <= 1 if most > 1 else True


def test_the_middles_of_equal_stretches():
    assert spread(16, 4) == [2, 6, 10, 14] and spread(5, 2) == [1, 3] and spread(9, 1) == [4]


def test_frames_of_a_folder_are_in_the_order_of_their_numbers(tmp_path):
    """Sorted as text, frame 10 would come before frame 2."""
    clip = open_clip(frames(tmp_path / "c", *range(12)), rate=4)
    assert [file.name for file in clip.files()] == [f"{i}.png" for i in range(1, 13)]
    assert all((seen == noise(i)).all() for i, seen in enumerate(pixels(clip)))
    assert clip.times[:3] == [0, 0.25, 0.5]
    write(tmp_path / "c", {".hidden.png": b"x", "Thumbs.db": b"x", "notes.txt": b"x", "._1.jpg": b"x"})
    assert len(open_clip(tmp_path / "c").times) == 12


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_an_animation_has_every_frame_at_its_time(tmp_path, form):
    shown = flat(0, 90, 255, 30)
    file = tmp_path / f"a.{form.lower()}"
    file.write_bytes(animation(shown, form, [100, 200, 50, 40]))
    clip = open_clip(file)
    assert clip.times == [0, 0.1, 0.3, 0.35]
    assert all((seen == frame).all() for seen, frame in zip(pixels(clip), shown, strict=True))
    assert [int(seen[0, 0, 0]) for seen in clip.frames([1, 3])] == [90, 30]


def test_an_animation_that_does_not_say_how_long_stands_a_tenth_of_a_second(tmp_path):
    (tmp_path / "a.gif").write_bytes(animation(flat(0, 255, 0), milliseconds=0))
    assert open_clip(tmp_path / "a.gif").times == [0, 0.1, 0.2]


def test_clear_pixels_of_an_animation_lie_on_white_and_frames_on_those_before(tmp_path):
    clear, red = Image.new("RGBA", (4, 4), (0, 0, 0, 0)), Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    red.paste((255, 0, 0, 255), (0, 0, 2, 4))
    for form in ("GIF", "WEBP"):
        how = {"lossless": True} if form == "WEBP" else {"disposal": 2}
        file = tmp_path / f"a.{form.lower()}"
        clear.save(file, form, save_all=True, append_images=[red], duration=50, **how)
        one, two = pixels(open_clip(file))
        assert (one == 255).all(), form
        assert two[0, 0].tolist() == [255, 0, 0] and two[0, 3].tolist() == [255, 255, 255], form


def test_a_frame_is_decoded_as_any_picture(tmp_path):
    """A phone's frame is turned, a grey one has three channels, a clear one is white."""
    sideways = Image.fromarray(noise(1, 4, 6))
    exif = Image.Exif()
    exif[0x0112] = 6
    raw = {
        "1.png": packed(sideways, exif=exif),
        "2.png": packed(Image.new("L", (4, 6), 77)),
        "3.png": packed(Image.new("RGBA", (4, 6), (0, 0, 0, 0))),
    }
    one, two, three = pixels(open_clip(write(tmp_path / "c", raw)))
    assert (one == decode(raw["1.png"]).pixels).all() and one.shape == (6, 4, 3)
    assert two[0, 0].tolist() == [77] * 3 and three[0, 0].tolist() == [255] * 3


def a_video(path, shown, rate=10):
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=Fraction(rate))
        stream.height, stream.width = shown[0].shape[:2]
        stream.pix_fmt, stream.bit_rate = "yuv420p", 4_000_000
        for frame in shown:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def test_a_video_has_its_frames_at_their_times(tmp_path):
    shown = flat(20, 120, 220, 60, 180, height=32, width=48)
    a_video(tmp_path / "v.mp4", shown)
    clip = open_clip(tmp_path / "v.mp4")
    assert clip.times == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert [seen.shape for seen in pixels(clip)] == [(32, 48, 3)] * 5
    assert [round(float(seen.mean()), -1) for seen in clip.frames([1, 4])] == [120, 180]


def test_a_video_that_is_cut_off_or_none_is_named(tmp_path):
    a_video(tmp_path / "v.mp4", [noise(i, 32, 48) for i in range(20)])
    whole = (tmp_path / "v.mp4").read_bytes()
    for name, raw in (("cut.mp4", whole[: len(whole) // 2]), ("none.mp4", b"no video"), ("empty.mkv", b"")):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(PictureError, match=name):
            pixels(open_clip(tmp_path / name))


def test_without_pyav_a_video_is_one_clear_sentence(tmp_path, monkeypatch):
    (tmp_path / "v.mp4").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataError, match=r"v\.mp4: video files need PyAV.*qkv\[video\]"):
        _ = open_clip(tmp_path / "v.mp4").times


def test_what_is_a_clip(tmp_path):
    write(
        tmp_path, {"a.gif": animation(flat(0, 9)), "still.gif": packed(Image.new("L", (4, 4)), "GIF"), "p.png": png(1)}
    )
    assert is_clip(tmp_path / "a.gif") and not is_clip(tmp_path / "still.gif") and not is_clip(tmp_path / "p.png")
    assert is_clip(tmp_path) and not is_clip(tmp_path / "nothing")


@pytest.mark.parametrize("raw", [b"", b"GIF89a", animation([noise(i) for i in range(4)])[:-900]])
def test_a_broken_animation_is_a_picture_error_with_its_name(tmp_path, raw):
    (tmp_path / "a.gif").write_bytes(raw)
    with pytest.raises(PictureError, match=r"a\.gif"):
        pixels(open_clip(tmp_path / "a.gif"))


# Labels of frames


def test_frames_are_labelled_one_by_one_or_in_spans():
    times = [0.0, 0.5, 1.0, 1.5, 2.0]
    assert frame_labels("0 0 1 1 0", times) == ("0", "0", "1", "1", "0")
    assert frame_labels([0, 1, 0, 0, 2], times) == ("0", "1", "0", "0", "2")
    assert frame_labels("1-2", times) == ("0", "1", "1", "0", "0")
    assert frame_labels("0.5-1.5s", times) == ("0", "1", "1", "1", "0")
    assert frame_labels("cut:0-0, fade:1.6-9s", times) == ("cut", "0", "0", "0", "fade")
    assert frame_classes([("0", "b"), ("a",), ("0",)]) == ("0", "a", "b")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("0 0 1", "3 frames are labelled, and the clip has 5"),
        ("1-0", "ends before it begins"),
        ("5-6", "begins after the last frame, 4"),
        ("1-2 x", "'x' is no span"),
    ],
)
def test_labels_that_do_not_fit_say_why(said, why):
    with pytest.raises(ValueError, match=why):
        frame_labels(said, [0.0, 0.5, 1.0, 1.5, 2.0])


# What is wrong with the user's clips


def test_check_names_every_broken_empty_single_and_odd_sized_clip(tmp_path, capsys):
    root = scenes(tmp_path / "d", 4)
    (root / "calm" / "empty").mkdir()
    (root / "bird").mkdir()
    (root / ".ipynb_checkpoints").mkdir()
    frames(root / ".ipynb_checkpoints" / "x", 1, 2)
    frames(root / "calm" / "single", 300)
    frames(root / "wild" / "odd", 301, 302, height=20)
    frames(root / "wild" / "uneven", 303)
    frames(root / "wild" / "uneven", 304, first=2, height=14)
    write(root / "wild" / "cut", {"1.png": png(305), "2.png": png(306)[:-40]})
    write(root / "wild", {"broken.gif": b"GIF89a", "moves.gif": animation(flat(1, 2, 3, height=12, width=10))})
    frames(root / "wild" / "again", *range(4))  # as calm/00
    write(root / "wild", {"cover.png": png(400)})
    assert find_kind(str(root)) == "clips"
    assert main(["check", str(root), "--every"]) == 0
    said = capsys.readouterr().out
    for line in (
        "train: 16 clips read",
        "1 clips without a frame, dropped\n",
        f"  {root}/calm/empty",
        "1 clips of one frame, found, kept",
        "1 clips of another size than most",
        f"{root}/wild/odd: 10 x 20, most are 10 x 12",
        "1 clips whose frames differ in size",
        "1 cut-off or damaged clips, dropped",
        f"  {root}/wild/cut: 2.png: the picture is cut off",
        "1 unreadable clips, dropped",
        f"  {root}/wild/broken.gif: this is no picture",
        "2 clips under several labels",
        "1 class folders without a clip, ignored",
        "hidden or system folders, ignored",
        "1 clips in no class folder, dropped",
        "2 classes: calm (4), wild (7)",
    ):
        assert line in said, f"{line!r} not in\n{said}"


def test_the_kind_is_seen_by_what_lies_there(tmp_path):
    def kind(name: str) -> str:
        return find_kind(str(tmp_path / name))

    scenes(tmp_path / "plain", 2)
    scenes(tmp_path / "parts" / "train", 2)
    scenes(tmp_path / "parts" / "val", 2, first=90)
    scenes(tmp_path / "around" / "all", 2)
    write(tmp_path / "gifs", {f"{c}/{i}.gif": animation(flat(i, 9)) for c in "ab" for i in range(2)})
    write(tmp_path / "stills", {f"{c}/{i}.gif": packed(Image.new("L", (4, 4), i), "GIF") for c in "ab" for i in (1, 2)})
    write(tmp_path / "photos", {f"{c}/{i}.png": png(i) for c in "ab" for i in range(3)})
    write(tmp_path / "videos", {"a/1.mp4": b"", "b/2.webm": b""})
    write(tmp_path / "table", {"train.csv": b"path,label,frames\nx,a,0 1\n"})
    write(tmp_path / "named", {"clips.csv": b"path,label\na/1.gif,x\n", "a/1.gif": animation(flat(1, 2))})
    write(tmp_path / "pictures", {"p.csv": b"path,label\n1.png,x\n", "1.png": png(1)})
    clips = ["plain", "parts", "around", "gifs", "videos", "table", "table/train.csv", "named", "named/clips.csv"]
    assert {name: kind(name) for name in clips} == dict.fromkeys(clips, "clips")
    assert [kind(name) for name in ("stills", "photos", "pictures")] == ["pictures"] * 3
    write(tmp_path / "both", {"a/1.mp4": b"", "a/2.png": png(1), "b/1.png": png(2)})
    with pytest.raises(DataError, match=r"videos \(a/1.mp4\) and pictures \(a/2.png\).*--kind clips"):
        kind("both")


def test_tables_name_clips_their_labels_and_frames(tmp_path):
    scenes(tmp_path, 2)
    rows = ["path,label,frames,split", "calm/00,calm,0 0 0 0,train", "calm/01,calm,,train", "wild/00,wild,1-2,train"]
    rows += ["wild/01,wild,0 1,train", "nothing.gif,wild,,train", ",wild,,train", "wild/00,,,train", "calm/00,calm,,x"]
    (tmp_path / "clips.csv").write_text("\n".join(rows) + "\n")
    report = check(ClipFiles(folder=str(tmp_path)))
    said = "\n".join(report.lines())
    for line in (
        f"whose frame labels do not fit, dropped ({tmp_path}/wild/01 ({tmp_path}/clips.csv:5): 2 frames are labelled",
        f"unreadable clips, dropped ({tmp_path}/nothing.gif ({tmp_path}/clips.csv:6): cannot be read",
        "broken records, dropped",
        "clips without a usable label, dropped",
        "split is 'x', no part of the data",
        "classes of frames: 0 (6), 1 (2)",
    ):
        assert line in said, f"{line!r} not in\n{said}"
    assert said.count("classes of frames") == 1
    assert report.kept["train"] == 3


def test_without_a_label_a_clip_is_what_most_of_its_marked_frames_are(tmp_path):
    scenes(tmp_path, 3, classes=("a",))
    (tmp_path / "train.jsonl").write_text(
        "".join(
            json.dumps({"path": f"a/{i:02}", "frames": said}) + "\n" for i, said in enumerate(["0 x x y", "0 0 0 0"])
        )
    )
    (tmp_path / "dev.jsonl").write_text('{"path": "a/02", "frames": "0 0 0 z"}\n')
    report = check(ClipFiles(folder=str(tmp_path)))
    assert "train: 2 classes: 0 (1), x (1)" in "\n".join(report.lines())
    refused = " ".join(map(str, report.refused))
    assert "dev has the class 'z'" in refused and "frames of dev have the class 'z'" in refused


def test_what_cannot_be_data(tmp_path):
    for how, error in (({"frames": 0}, "frames"), ({"rate": 0}, "rate"), ({"flip": 2}, "flip")):
        with pytest.raises(ConfigError, match=error):
            ClipFiles(**how)
    with pytest.raises(ConfigError, match="no data is named"):
        check(ClipFiles())
    (tmp_path / "x.zip").write_bytes(b"")
    with pytest.raises(DataError, match="the archive cannot be read"):
        check(ClipFiles(folder=str(tmp_path / "x.zip")))
    with pytest.raises(DataError, match="there is no such file or folder"):
        check(ClipFiles(folder=str(tmp_path / "none" / "clips")))
    (tmp_path / "x.zip").unlink()
    with pytest.raises(DataError, match="no labelled clip"):
        check(ClipFiles(folder=str(tmp_path)))


# In archives and datasets


def archived(root: Path, form: str) -> Path:
    """An archive of a folder, beside it."""
    return Path(shutil.make_archive(str(root), form, root))


def listed(where, tmp_path, **how) -> dict:
    report = Report(unit="clips", every=True)
    return list_clips(ClipFiles(folder=str(where), **how), tmp_path / "scratch", report), report


@pytest.mark.parametrize("form", ["zip", "tar", "gztar"])
def test_clips_in_an_archive_are_those_of_its_folder(tmp_path, form):
    root = scenes(tmp_path / "d", 2)
    frames(root / "calm" / "long", *range(20, 32))
    write(root / "wild", {"moves.gif": animation(flat(1, 2, 3)), "broken.gif": b"GIF89a"})
    write(root / "wild" / "cut", {"1.png": png(305), "2.png": png(306)[:-40]})
    (root / "calm" / "empty").mkdir()
    write(root / ".cache" / "x", {"1.png": png(1)})
    archive = archived(root, form)
    (loose, report), (inside, told) = listed(root, tmp_path, rate=2), listed(archive, tmp_path, rate=2)
    assert fingerprint(inside) == fingerprint(loose)
    for one, other in zip(loose["train"], inside["train"], strict=True):
        assert (one.name, one.label) == (other.name, other.label)
        assert other.where == f"{archive}:{one.name}" == str(other.clip.path)
        if one.name not in ("wild/broken.gif", "wild/cut"):
            assert one.clip.times == other.clip.times
            assert all(map(np.array_equal, pixels(one.clip), pixels(other.clip)))
    assert [str(f).split(":")[0] for f in report.findings] == [str(f).split(":")[0] for f in told.findings]
    assert find_kind(str(archive)) == "clips"
    lines = "\n".join(check(ClipFiles(folder=str(archive)), every=True).lines())
    assert f"{archive}:wild/cut: 2.png: " in lines and f"{archive}:wild/broken.gif: " in lines
    assert f"{archive}:calm/empty" in lines


def test_an_archive_of_pictures_is_none_of_clips(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "d" / name, {"1.png": png(1), "2.gif": png(2)})
    assert find_kind(str(archived(tmp_path / "d", "zip"))) == "pictures"


def test_a_run_learns_from_an_archive_as_from_its_folder(tmp_path):
    root = scenes(tmp_path / "d", 4)
    one, other = prepared(root, tmp_path / "one"), prepared(archived(root, "gztar"), tmp_path / "other")
    assert names(one.dev.clips) == names(other.dev.clips)
    for batch, same in zip(one.dev, other.dev, strict=True):
        assert torch.equal(batch.images, same.images) and torch.equal(batch.labels, same.labels)


def test_a_video_in_an_archive_is_read_from_memory(tmp_path):
    (tmp_path / "d" / "calm").mkdir(parents=True)
    a_video(tmp_path / "d" / "calm" / "v.mp4", flat(20, 120, 220, height=32, width=48))
    (found, _), (inside, _) = listed(tmp_path / "d", tmp_path), listed(archived(tmp_path / "d", "zip"), tmp_path)
    one, other = found["train"][0].clip, inside["train"][0].clip
    assert one.times == other.times and all(map(np.array_equal, pixels(one), pixels(other)))


def test_a_dataset_by_name_has_videos_or_lists_of_pictures(tmp_path, monkeypatch):
    import datasets

    from qkv.data import formats

    kinds = datasets.ClassLabel(names=["calm", "wild"])
    features = datasets.Features({"frames": datasets.List(datasets.Image()), "label": kinds})
    clips = [[{"bytes": png(i + j), "path": None} for j in range(3)] for i in range(3)]
    whole = datasets.Dataset.from_dict({"frames": clips, "label": [1, 0, -1]}, features=features)
    monkeypatch.setattr(datasets, "load_dataset", lambda name, config: datasets.DatasetDict({"train": whole}))
    monkeypatch.setattr(formats, "_hub_answers", lambda: True)
    found, report = listed("someone/scenes", tmp_path, rate=4)
    assert [(one.name, one.label, one.where) for one in found["train"]] == [
        ("1", "wild", "someone/scenes (train):1"),
        ("2", "calm", "someone/scenes (train):2"),
    ]
    assert report.count("train", "clips without a usable label") == 1
    clip = found["train"][1].clip
    assert clip.times == [0, 0.25, 0.5]
    assert np.array_equal(next(clip.frames([2])), decode(png(3)).pixels)
    assert fingerprint(found) == fingerprint(listed("someone/scenes", tmp_path)[0])
    with pytest.raises(DataError, match="it is not clear which of the columns frames, label holds labels"):
        listed("someone/scenes", tmp_path, label="kind")


# Made ready


def prepared(folder, run, **how):
    return prepare_clips(ClipFiles(folder=str(folder), **({"batch": 4, "frames": 3} | how)), run, seed=0)


def names(clips) -> set[str]:
    return {clips.examples[row].name for row in clips.rows}


def test_clips_are_split_by_content_so_that_copies_never_straddle(tmp_path):
    one = prepared(scenes(tmp_path / "one", 10), tmp_path / "run", hold_out=0.2)
    assert len(one.dev.clips) == 4 and not names(one.dev.clips) & names(one.train.clips)
    for i in range(10):  # the same clips in another order, under other names, with one copy
        (tmp_path / "one" / "calm" / f"{i:02}").rename(tmp_path / "one" / "calm" / f"z{9 - i}")
    frames(tmp_path / "one" / "calm" / "copy", *range(4))
    other = prepared(tmp_path / "one", tmp_path / "run2", hold_out=0.2)
    held = [sorted(p.dev.clips.pixels(i).tobytes() for i in range(4)) for p in (one, other)]
    assert held[0] == held[1] and other.summary["clips"] == 16
    assert one.codec == other.codec and one.codec.images.classes == ("calm", "wild")


def test_batches_are_padded_and_a_function_of_seed_epoch_and_place(tmp_path):
    root = scenes(tmp_path / "d", 6, length=3)
    frames(root / "calm" / "short", 500)
    frames(root / "wild" / "long", *range(600, 611))
    data = prepared(root, tmp_path / "run", shift=1, flip=0.5)
    batches, seen = [data.train.batch(Position(1, i)) for i in range(data.train.epoch_length(1))], []
    for batch in batches:
        assert batch.images.shape[1] == int(batch.lengths.max()) <= 3 and batch.targets == batch.size
        for i, length in enumerate(batch.lengths.tolist()):
            assert (batch.images[i, length:] == 0).all() and (batch.frame_labels[i, length:] == -1).all()
        seen += batch.ids.tolist()
    assert sorted(seen) == list(range(len(data.train.clips)))
    again = prepared(root, tmp_path / "run", shift=1, flip=0.5).train.batch(Position(1, 1))
    assert all(torch.equal(value, getattr(again, key)) for key, value in vars(batches[1]).items())
    assert not torch.equal(batches[1].ids, data.train.batch(Position(2, 1)).ids)
    with pytest.raises(IndexError, match="no batch 99"):
        data.train.batch(Position(0, 99))


def test_all_frames_of_a_clip_are_moved_alike(tmp_path):
    root = tmp_path / "d"
    for i in range(8):
        frames(root / "ab"[i % 2] / str(i), i, i, i)
    data = prepared(root, tmp_path / "run", shift=2, flip=0.5)
    plain = prepared(root, tmp_path / "run")
    moved = 0
    for place in range(data.train.epoch_length(0)):
        one, other = (d.train.batch(Position(0, place)) for d in (data, plain))
        for clip, length in zip(one.images, one.lengths.tolist(), strict=True):
            assert all(torch.equal(clip[0], frame) for frame in clip[:length])
        moved += sum(not torch.equal(a, b) for a, b in zip(one.images, other.images, strict=True))
    assert moved > 3


def test_what_is_kept_is_used_again_and_a_change_is_noticed(tmp_path, monkeypatch):
    root = scenes(tmp_path / "d", 4)
    first = prepared(root, tmp_path / "run")
    (kept,) = [folder for folder in (tmp_path / "run" / "data").iterdir() if folder.is_dir()]
    made = (kept / "report.json").stat().st_mtime_ns
    again = prepare_clips(ClipFiles(folder=str(root), batch=4, frames=3), tmp_path / "run", 0, first.codec)
    assert (kept / "report.json").stat().st_mtime_ns == made and again.summary == first.summary
    without_room = prepared(root, tmp_path / "run2", keep_mb=0)
    assert all(torch.equal(a.images, b.images) for a, b in zip(first.dev, without_room.dev, strict=True))
    with open(kept / "train" / "pixels", "r+b") as file:  # damaged: made again
        file.write(b"\xff" * 9)
    assert torch.equal(prepared(root, tmp_path / "run").dev[0].images, first.dev[0].images)
    frames(root / "calm" / "new", 900, 901)
    assert prepared(root, tmp_path / "run").summary["files_hash"] != first.summary["files_hash"]


def test_marks_travel_with_the_frames_that_are_read_and_missed_ones_are_told(tmp_path):
    scenes(tmp_path, 4, length=9)
    with open(tmp_path / "train.jsonl", "w") as table:
        for name in ("calm", "wild"):
            for i in range(4):
                marked = "0-0" if i == 0 else "4-4" if name == "wild" else "0 " * 9
                table.write(json.dumps({"path": f"{name}/{i:02}", "label": name, "frames": marked}) + "\n")
    data = prepared(tmp_path, tmp_path / "run", hold_out=0.3)
    assert data.codec.frame_classes == ("0", "1")
    assert "clips whose marked frames fall between those that are read (raise --data.frames)" in "\n".join(data.report)
    for batch in (*data.dev, data.train.batch(Position())):
        for label, marks, times in zip(batch.labels, batch.frame_labels, batch.times, strict=True):
            assert times.tolist() == [1, 4, 7]
            assert marks.tolist() in ([[0, 0, 0]] if label[0] else [[0, 1, 0], [0, 0, 0]])


def test_the_codec_is_read_back_and_a_broken_one_is_told(tmp_path):
    codec = ClipCodec(ImageCodec(Preprocess((8, 8)), ("a", "b")), 5, 2.0, ("0", "1"))
    codec.save(tmp_path)
    assert ClipCodec.load(tmp_path) == codec and ClipCodec.load(tmp_path).fingerprint() == codec.fingerprint()
    with pytest.raises(DataError, match="no class 'x'"):
        codec.encode_frames(("0", "x"), 2)
    images, lengths = stack([np.zeros((2, 8, 8, 3), np.uint8), np.zeros((0, 8, 8, 3), np.uint8)], codec)
    assert images.shape == (2, 2, 3, 8, 8) and lengths.tolist() == [2, 0] and (images[1] == 0).all()
    (tmp_path / "clips.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        ClipCodec.load(tmp_path)
