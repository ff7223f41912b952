"""Pictures made ready: a split by content, batches by seed and place, and a run's folder that knows what it holds."""

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from photos import noise, packed, pets, png, write
from PIL import Image

from qkv.data import image_prepare
from qkv.data.image_batches import ImageBatch
from qkv.data.image_codec import ImageCodec
from qkv.data.image_files import Augment, ImageFiles
from qkv.data.image_prepare import prepare_images
from qkv.data.image_split import hold_out
from qkv.data.image_store import ImageStore, ImageStoreWriter
from qkv.data.preprocess import Preprocess
from qkv.errors import ConfigError, DataError, RunError
from qkv.tasks.task import Position

PLAIN = Augment(scale=1.0, flip=0.0)
STRONG = Augment(0.3, shift=1, randaugment=2, erasing=0.5, mixup=0.8, cutmix=1.0)


def prepared(folder: Path, run: Path, **how):
    return prepare_images(ImageFiles(folder=str(folder), **({"batch": 8, "size": 8} | how)), run, seed=0)


def names(images) -> list[str]:
    return [images.examples[row].name for row in images.rows]


def epoch(batches, number: int = 0) -> list[ImageBatch]:
    return [batches.batch(Position(number, place)) for place in range(batches.epoch_length(number))]


# The split


@given(st.integers(0, 50), st.lists(st.sampled_from("abc"), min_size=2, max_size=60), st.floats(0.05, 0.95))
def test_each_class_is_held_out_alike_and_copies_stay_together(seed, labels, share):
    chance = np.random.default_rng(seed)
    content = chance.integers(0, 40, len(labels)).astype(np.uint64)
    held = hold_out(content, labels, share)
    assert (
        len(
            {one for one, out in zip(content.tolist(), held.tolist(), strict=True) if out}
            & set(content[~held].tolist())
        )
        == 0
    )
    order = chance.permutation(len(labels))
    first = {}  # a picture under two labels counts for the first; where none is, the order of files says nothing
    for one, label in zip(content.tolist(), labels, strict=True):
        first.setdefault(one, label)
    if all(first[one] == label for one, label in zip(content.tolist(), labels, strict=True)):
        assert (hold_out(content[order], [labels[i] for i in order], share) == held[order]).all()
    groups = Counter(first.values())
    taken = Counter(first[one] for one in set(content[held].tolist()))
    for label, count in groups.items():
        expected = min(count - 1, max(1, round(share * count))) if count > 1 else 0
        assert taken[label] == expected


def test_several_labels_are_held_out_by_the_rarest():
    labels = [("common",)] * 20 + [("common", "rare")] * 4 + [()] * 2
    held = hold_out(np.arange(26, dtype=np.uint64), labels, 0.25)
    assert held[:20].sum() == 5 and held[20:24].sum() == 1 and held[24:].sum() == 1
    assert hold_out(np.arange(10, dtype=np.uint64), [float(i) for i in range(10)], 0.2).sum() == 2


def test_a_split_is_of_content_and_not_of_names_seeds_or_sizes(tmp_path):
    one = prepared(pets(tmp_path / "one", 30), tmp_path / "run", hold_out=0.2)
    assert Counter(e.split("/")[0] for e in names(one.dev.images)) == {"cat": 6, "dog": 6}
    assert not set(names(one.dev.images)) & set(names(one.train.images))
    assert "12 pictures of train, of each class alike, are held out as dev" in "\n".join(one.report)
    other = tmp_path / "other"
    for i in range(30):  # the same pictures in another order, under other names
        write(other, {f"cat/z{99 - i}.png": png(i), f"dog/z{i}.png": png(30 + i)})
    moved = prepare_images(ImageFiles(folder=str(other), hold_out=0.2, size=8), tmp_path / "run2", seed=5)
    pictures = [sorted(p.dev.images.pixels(i).tobytes() for i in range(12)) for p in (one, moved)]
    assert pictures[0] == pictures[1]


def test_the_class_list_does_not_depend_on_the_split(tmp_path):
    """A class of which nothing stays in train, or nothing is held out, keeps its place."""
    pets(tmp_path / "d", 12, classes=("10", "2"))
    write(tmp_path / "d", {"1/only.png": png(500)})
    codecs = [prepared(tmp_path / "d", tmp_path / f"run{s}", hold_out=s).codec for s in (0.1, 0.5, 0.9)]
    assert {codec.classes for codec in codecs} == {("1", "10", "2")}
    assert codecs[0].decode(torch.tensor([[0.0, 1.0, 0.0]])) == ["10"]


# Batches


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    folder = tmp_path_factory.mktemp("room")
    pets(folder / "d" / "train", 15)
    pets(folder / "d" / "val", 5, first=300)
    return folder


def test_every_picture_once_an_epoch_and_resuming_is_a_jump(room, tmp_path):
    batches = prepared(room / "d", tmp_path, augment=STRONG, batch=7).train
    whole = epoch(batches, 1)
    assert sorted(torch.cat([batch.ids for batch in whole]).tolist()) == list(range(30))
    assert [batch.size for batch in whole] == [7, 7, 7, 7, 2] and whole[0].targets == 7
    again = prepared(room / "d", tmp_path, augment=STRONG, batch=7).train
    again.batch(Position(9, 0))
    for place in (4, 2, 0, 3, 1):
        other = again.batch(Position(1, place))
        assert torch.equal(other.images, whole[place].images) and torch.equal(other.labels, whole[place].labels)
    assert [b.ids.tolist() for b in epoch(batches, 0)] != [b.ids.tolist() for b in whole]
    with pytest.raises(IndexError, match="no batch 5"):
        batches.batch(Position(0, 5))
    changed = prepare_images(ImageFiles(folder=str(room / "d"), batch=7, size=8), tmp_path, seed=1).train
    assert [b.ids.tolist() for b in epoch(changed, 1)] != [b.ids.tolist() for b in whole]


def test_a_batch_holds_what_the_preprocessing_shows(room, tmp_path):
    ready = prepared(room / "d", tmp_path, augment=PLAIN)
    for batch, images in [(ready.train.batch(Position()), ready.train.images), (ready.dev[0], ready.dev.images)]:
        assert batch.images.dtype == torch.float32 and batch.images.shape == (8, 3, 8, 8)
        for i, image, label in zip(batch.ids.tolist(), batch.images, batch.labels, strict=True):
            name = names(images)[i]
            place = int(name.rpartition("/")[2][:2]) + (0 if "cat" in name else 15 if "train" in name else 5)
            pixels = noise(place + (0 if "train" in name else 300))
            assert torch.equal(image, ready.codec.preprocess(pixels))
            assert label.tolist() == [float("cat" in name), float("dog" in name)]


def test_held_out_batches_are_made_when_asked_for(room, tmp_path):
    dev = prepared(room / "d", tmp_path, batch=4).dev
    assert len(dev) == 3 and [batch.size for batch in dev] == [4, 4, 2]
    assert torch.cat([batch.ids for batch in dev]).tolist() == list(range(10))
    assert torch.equal(dev[1].images, dev[1].images) and dev.images.where(0).endswith("d/val/cat/00.png")
    assert dev[0].to("cpu").labels.shape == (4, 2)


def test_mixing_can_be_left_to_some_batches(room, tmp_path):
    half = replace(PLAIN, mixup=1.0, mixed=0.5)
    batches = [b for e in range(6) for b in epoch(prepared(room / "d", tmp_path, augment=half).train, e)]
    soft = [bool(((b.labels > 0) & (b.labels < 1)).any()) for b in batches]
    assert 4 < sum(soft) < 20 and all(torch.allclose(b.labels.sum(1), torch.ones(b.size)) for b in batches)


DIGEST = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_image_prepare import digest
print(digest(Path({data!r}), Path({run!r})))
"""


def digest(data: Path, run: Path) -> str:
    batches = epoch(prepared(data, run, augment=STRONG).train, 3)
    return hashlib.sha256(b"".join(batch.images.numpy().tobytes() for batch in batches)).hexdigest()


def test_every_process_sees_the_same_batches(room, tmp_path):
    code = DIGEST.format(here=str(Path(__file__).parent), data=str(room / "d"), run=str(tmp_path / "theirs"))
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.stdout == digest(room / "d", tmp_path / "ours") + "\n", run.stderr


# What is kept


def test_what_is_kept_is_used_again_until_the_data_change(room, tmp_path, monkeypatch):
    run, data = tmp_path / "run", tmp_path / "d"
    pets(data, 10)
    first = prepared(data, run)
    kept = [p.name for p in (run / "data").iterdir()]
    assert len(kept) == 1

    def never(*_):
        raise AssertionError("decoded again")

    with monkeypatch.context() as patch:
        patch.setattr(image_prepare, "examine_all", never)
        again = prepared(data, run, size=16, augment=STRONG)  # no setting of these decides what is kept
        assert again.summary["files_hash"] == first.summary["files_hash"]
        assert names(again.train.images) == names(first.train.images) and first.report[:-1] == again.report[:-1]
    write(data, {"cat/new.png": png(77)})
    changed = prepared(data, run)
    assert changed.summary["files_hash"] != first.summary["files_hash"] and changed.summary["pictures"] == 19
    assert [p.name for p in (run / "data").iterdir()] != kept and len(list((run / "data").iterdir())) == 1


@pytest.mark.parametrize("name", ["train/pixels", "train/ends", "train.npy", "report.json", "train/store.json"])
def test_what_is_damaged_is_made_again(room, tmp_path, name):
    whole = prepared(room / "d", tmp_path).train.batch(Position())
    file = next((tmp_path / "data").iterdir()) / name
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 0x55
    file.write_bytes(raw)
    again = prepared(room / "d", tmp_path)
    assert torch.equal(again.train.batch(Position()).images, whole.images)


def test_what_is_large_or_has_no_room_is_decoded_anew(room, tmp_path):
    kept = prepared(room / "d", tmp_path / "kept", augment=STRONG)
    anew = prepared(room / "d", tmp_path / "anew", augment=STRONG, keep_mb=0)
    assert kept.train.images.store[0] is not None and anew.train.images.store[0] is None
    assert all(torch.equal(a.images, b.images) for a, b in zip(epoch(kept.train), epoch(anew.train), strict=True))
    assert all(torch.equal(a.images, b.images) for a, b in zip(kept.dev, anew.dev, strict=True))


def test_a_file_that_has_gone_meanwhile_is_named(tmp_path):
    ready = prepared(pets(tmp_path / "d", 10), tmp_path / "run", keep_mb=0)
    (tmp_path / "d" / "cat" / "03.png").unlink()
    with pytest.raises(DataError, match=r"cat/03\.png: cannot be read"):
        [*epoch(ready.train), *ready.dev]


def test_a_full_disk_leaves_nothing_half_made(room, tmp_path, monkeypatch):
    """BL-49: one sentence with what is free; afterwards the same call works."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ImageStoreWriter, "add", full)
        with pytest.raises(DataError, match=r"the decoded pictures cannot be written \(.*No space left.* MB are free"):
            prepared(room / "d", tmp_path)
    assert not list((tmp_path / "data").iterdir())
    assert prepared(room / "d", tmp_path).summary["pictures"] == 30


def test_what_a_batch_is_changed_to_changes_no_other(room, tmp_path):
    batches = prepared(room / "d", tmp_path, augment=PLAIN).train
    one = batches.batch(Position())
    whole = one.images.clone(), one.labels.clone(), one.ids.clone()
    for tensor in (one.images, one.labels, one.ids):
        tensor.zero_()
    again = batches.batch(Position())
    assert all(torch.equal(a, b) for a, b in zip((again.images, again.labels, again.ids), whole, strict=True))


def test_a_store_gives_back_what_it_was_given(tmp_path):
    pictures = [noise(1), None, noise(2, 3, 40), noise(3, 1, 1), noise(4, 50, 50)]
    with ImageStoreWriter(tmp_path / "s", 1000) as store:
        for pixels in pictures:
            store.add(pixels)
    opened = ImageStore(tmp_path / "s")
    assert len(opened) == 5 and [opened.holds(i) for i in range(5)] == [True, False, True, True, False]
    for i in (0, 2, 3):
        assert (opened[i] == pictures[i]).all()
    assert opened[1] is None and opened[4] is None  # there was no room for the last
    with ImageStoreWriter(tmp_path / "e", 1000):
        pass
    assert len(ImageStore(tmp_path / "e")) == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_a_name_that_is_not_utf8_is_kept_as_it_is(tmp_path):
    pets(tmp_path / "data", 6)
    os.rename(next((tmp_path / "data").glob("*/*")), os.fsencode(tmp_path / "data" / "cat") + b"/bad\xff.png")
    (tmp_path / "data" / "cat" / os.fsdecode(b"no\xfe.png")).write_bytes(b"nothing")  # is named in the report
    once = prepared(tmp_path / "data", tmp_path / "run")
    again = prepared(tmp_path / "data", tmp_path / "run")
    assert again.summary == once.summary and any("no\udcfe.png" in line for line in again.report)


def test_an_archive_can_be_learned_from(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for i in range(20):
            archive.writestr(f"photos/{'cat' if i % 2 else 'dog'}/{i}.png", png(i))
    (tmp_path / "a.zip").write_bytes(stream.getvalue())
    ready = prepared(tmp_path / "a.zip", tmp_path / "run", keep_mb=0)
    assert ready.summary["pictures"] == 18 and ready.codec.classes == ("cat", "dog")
    assert epoch(ready.train)[0].images.shape == (8, 3, 8, 8)


# Codecs


def test_a_codec_given_keeps_its_classes_and_its_preprocessing(room, tmp_path):
    codec = ImageCodec(Preprocess((16, 16)), ("bird", "cat", "dog"))
    ready = prepare_images(ImageFiles(folder=str(room / "d"), size=8), tmp_path, 0, codec)
    assert ready.codec is codec and ready.dev[0].images.shape[2:] == (16, 16) and ready.dev[0].labels.shape[1] == 3
    with pytest.raises(DataError, match="train has the class 'dog', which the model has not"):
        prepare_images(ImageFiles(folder=str(room / "d")), tmp_path, 0, replace(codec, classes=("cat",)))


def test_a_codec_is_saved_loaded_and_known(tmp_path):
    one = ImageCodec(Preprocess((8, 8)), ("1", "10", "고양이"), "several")
    one.save(tmp_path / "codec")
    assert ImageCodec.load(tmp_path / "codec") == one
    assert ImageCodec.load(tmp_path / "codec").fingerprint() == one.fingerprint()
    others = [replace(one, classes=("10", "1", "고양이")), replace(one, preprocess=Preprocess((9, 8)))]
    assert len({codec.fingerprint() for codec in (one, *others)}) == 3
    plain = json.loads((tmp_path / "codec" / "codec.json").read_text())
    for wrong in ("{}", "[]", json.dumps(plain | {"version": 2}), json.dumps(plain | {"labels": "two"})):
        (tmp_path / "codec" / "codec.json").write_text(wrong)
        with pytest.raises(RunError, match="the codec cannot be read"):
            ImageCodec.load(tmp_path / "codec")
    with pytest.raises(RunError):
        ImageCodec.load(tmp_path / "none")


def test_labels_become_numbers_and_come_back():
    classes = ImageCodec(Preprocess(), ("a", "b", "c"))
    assert classes.encode(["c", "a"]).tolist() == [[0, 0, 1], [1, 0, 0]] and classes.outputs == 3
    assert classes.decode(classes.encode(["c", "a"])) == ["c", "a"]
    several = replace(classes, labels="several")
    assert several.encode([("a", "c"), ()]).tolist() == [[1, 0, 1], [0, 0, 0]]
    numbers = ImageCodec(Preprocess(), (), "number", centre=100.0, spread=10.0)
    assert numbers.encode([90.0, 125.0]).tolist() == [[-1.0], [2.5]] and numbers.outputs == 1
    assert numbers.decode(torch.tensor([[-1.0], [2.5]])) == [90.0, 125.0]
    with pytest.raises(DataError, match="there is no class 'd'"):
        classes.encode(["d"])


def test_size_mean_and_deviation_are_measured(tmp_path):
    pets(tmp_path / "d", 10)
    ready = prepare_images(ImageFiles(folder=str(tmp_path / "d")), tmp_path / "run", 0)
    pixels = np.stack([ready.train.images.pixels(i) for i in range(len(ready.train.images))]) / 255
    assert ready.codec.preprocess.size == (8, 8)  # pictures of 12 x 10
    assert np.allclose(ready.codec.preprocess.mean, pixels.mean((0, 1, 2)), atol=1e-4)
    assert np.allclose(ready.codec.preprocess.std, pixels.std((0, 1, 2)), atol=1e-4)
    write(
        tmp_path / "e",
        {
            f"{c}/{i}.png": packed(Image.new("RGB", (300 + i, 400), (9 * i, d, 0)))
            for i in range(4)
            for c, d in (("a", 1), ("b", 2))
        },
    )
    large = prepare_images(
        ImageFiles(folder=str(tmp_path / "e"), mean=(0.5,) * 3, std=(0.5,) * 3), tmp_path / "run2", 0
    )
    assert large.codec.preprocess == Preprocess((224, 224))
    assert f"preprocessing: {large.codec.preprocess}" in large.report


def test_numbers_and_several_labels_are_learned_too(tmp_path):
    write(tmp_path, {f"{i}.png": png(i) for i in range(20)})
    (tmp_path / "n.csv").write_text("file,target\n" + "".join(f"{i}.png,{i}\n" for i in range(20)))
    ready = prepare_images(ImageFiles(folder=str(tmp_path / "n.csv"), labels="number", size=8), tmp_path / "run", 0)
    labels = torch.cat([batch.labels for batch in epoch(ready.train)])
    assert labels.shape == (18, 1) and abs(labels.mean()) < 1e-5 and abs(labels.std(correction=0) - 1) < 1e-5
    found = sorted(ready.codec.decode(labels) + ready.codec.decode(torch.cat([b.labels for b in ready.dev])))
    assert np.allclose(found, range(20), atol=1e-4)
    (tmp_path / "s.csv").write_text(
        "file,labels\n" + "".join(f"{i}.png,{'a|b' if i % 2 else 'c'}\n" for i in range(20))
    )
    ready = prepare_images(ImageFiles(folder=str(tmp_path / "s.csv"), labels="several", size=8), tmp_path / "run", 0)
    assert ready.codec.classes == ("a", "b", "c") and set(ready.dev[0].labels.sum(1).tolist()) == {1.0, 2.0}


def test_what_cannot_be_trained_on(tmp_path):
    pets(tmp_path / "only" / "test", 3)
    with pytest.raises(ConfigError, match=r"there is nothing to train on. Name it with --data\.train"):
        prepared(tmp_path / "only", tmp_path / "run")
    write(tmp_path / "two", {"cat/1.png": png(1), "dog/1.png": png(2)})
    with pytest.raises(DataError, match="2 pictures are too few to hold some out"):
        prepared(tmp_path / "two", tmp_path / "run")
    with pytest.raises(DataError, match="all pictures of train are of one class"):
        prepared(pets(tmp_path / "one", 4, classes=("cat",)), tmp_path / "run")
    assert not [p for p in (tmp_path / "run" / "data").iterdir() if not p.name.startswith(".")]
