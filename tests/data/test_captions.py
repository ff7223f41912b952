"""Pictures with captions as data: what is read from where, what is told, and what never happens."""

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from qkv.data.caption_batches import HeldOutCaptions
from qkv.data.caption_codec import CaptionCodec
from qkv.data.caption_files import CaptionFiles, check
from qkv.data.caption_listing import list_captions
from qkv.data.caption_prepare import prepare_captions
from qkv.data.cell_store import CellStore, fill_cells
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError, RunError
from qkv.tasks.task import Position


def picture(path, seed=0, size=(12, 10)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), np.uint8)
    Image.fromarray(pixels).save(path)


def table(folder, rows, name="train.jsonl"):
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.fixture
def photos(tmp_path):
    """Twenty pictures with two captions each."""
    rows = []
    for i in range(20):
        picture(tmp_path / f"{i}.png", i)
        rows.append({"image": f"{i}.png", "caption": [f"a cat number {i % 4}", "고양이 한 마리"]})
    table(tmp_path, rows)
    return tmp_path


def listed(**where):
    report = Report()
    return list_captions(CaptionFiles(**where), report), report


def test_a_picture_is_listed_once_with_all_its_captions(photos):
    found, _ = listed(folder=str(photos))
    assert len(found["train"]) == 20 and found["train"][5].label == ("a cat number 1", "고양이 한 마리")
    assert found["train"][5].where.endswith("5.png (" + str(photos / "train.jsonl") + ":6)")


def test_rows_may_name_their_captions_differently(tmp_path):
    for i in range(3):
        picture(tmp_path / f"{i}.png", i)
    rows = [{"path": "0.png", "captions": ["one"]}, {"path": "1.png", "caption": "two"}, {"path": "2.png", "text": "x"}]
    found, report = listed(folder=str(table(tmp_path, rows)))
    assert [example.label for example in found["train"]] == [("one",), ("two",), ("x",)] and not report.findings


@pytest.mark.parametrize(("name", "text", "message"), [
    ("e.jsonl", "", "e.jsonl: the table is empty"), ("c.json", "[]", "c.json: is no annotation file of COCO; expected"),
    ("c.json", '{"images": [', r"c.json: is no JSON, or cut off \(Expecting"),
])  # fmt: skip
def test_what_is_no_table_is_said_in_words(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        listed(folder=str(tmp_path / name))


def test_tables_of_every_kind_say_the_same(tmp_path):
    picture(tmp_path / "a.png")
    (tmp_path / "c.csv").write_text("file,caption\na.png,one\na.png,two\n", encoding="utf-8")
    (tmp_path / "c.tsv").write_text("file\ttext\na.png\tone\na.png\ttwo\n", encoding="utf-8")
    record = {
        "images": [{"id": 7, "file_name": "a.png"}],
        "annotations": [{"image_id": 7, "caption": "one"}, {"image_id": 7, "caption": "two"}, {"image_id": 8}],
    }
    (tmp_path / "captions_train.json").write_text(json.dumps(record), encoding="utf-8")
    for name in ("c.csv", "c.tsv", "captions_train.json"):
        found, report = listed(folder=str(tmp_path / name))
        assert [example.label for example in found["train"]] == [("one", "two")], name
    assert report.count("train", "broken records") == 1


def test_a_list_of_paths_shares_its_captions(tmp_path):
    for name in ("a.png", "b.png"):
        picture(tmp_path / name)
    file = table(tmp_path, [{"images": ["a.png", "b.png"], "ko": "별"}])
    found, _ = listed(folder=str(file), path="images", caption="ko")
    assert [(e.name, e.label) for e in found["train"]] == [("a.png", ("별",)), ("b.png", ("별",))]


def test_parts_are_found_by_a_word_of_the_name(tmp_path):
    picture(tmp_path / "a.png")
    for name in ("captions_train2014.jsonl", "captions_val2014.jsonl", "test.jsonl"):
        table(tmp_path, [{"image": "a.png", "caption": name}], name)
    found, _ = listed(folder=str(tmp_path))
    assert {part: some[0].label for part, some in found.items()} == {
        "train": ("captions_train2014.jsonl",), "dev": ("captions_val2014.jsonl",), "test": ("test.jsonl",)
    }  # fmt: skip


def test_the_doctor_names_what_is_wrong(photos):
    (photos / "broken.png").write_bytes(b"junk")
    rows = [
        {"image": "missing.png", "caption": "gone"},
        {"image": "broken.png", "caption": "broken"},
        {"image": "1.png", "caption": "  \u200b\t".replace("\u200b", "")},
        {"image": "2.png", "caption": "x" * 1001},
        {"image": "3.png"},
        {"caption": "no path"},
    ]
    table(photos, rows, "bad.jsonl")
    report = check(CaptionFiles(train=str(photos / "bad.jsonl"), dev=str(photos / "train.jsonl")), every=True)
    lines = "\n".join(report.lines())
    assert report.count("train", "unreadable pictures") == 2 and "missing.png" in lines and "broken.png" in lines
    assert report.count("train", "empty captions") == 2 and "bad.jsonl:3" in lines
    assert report.count("train", "over-long captions") == 1 and "bad.jsonl:4: 1,001 characters" in lines
    assert report.count("train", "pictures without a caption") == 3
    assert report.count("train", "broken records") == 1
    assert report.refused  # nothing is left of train


def test_a_table_without_captions_is_refused_with_the_columns(tmp_path):
    file = table(tmp_path, [{"image": "a.png", "words": "x"}])
    with pytest.raises(DataError, match=r"none of the columns image, words is a caption.*--data.caption"):
        listed(folder=str(file))
    with pytest.raises(DataError, match="no table of pictures and captions"):
        listed(folder=str(tmp_path))
    with pytest.raises(ConfigError, match="no data is named"):
        listed()
    with pytest.raises(ConfigError, match=r"data.augment is a mixture"):
        from qkv.data.image_files import Augment

        CaptionFiles(augment=Augment(mixup=0.2))


def test_captions_of_one_picture_never_straddle(tmp_path):
    """Copies of a picture under other names too: what is held out is chosen by pixels."""
    rows = []
    for i in range(30):
        for copy in range(3):
            picture(tmp_path / f"{i}-{copy}.png", i)
            rows.append({"image": f"{i}-{copy}.png", "caption": f"picture {i} copy {copy}"})
    table(tmp_path, rows)
    prepared = prepare_captions(CaptionFiles(folder=str(tmp_path), hold_out=0.3), tmp_path / "run", seed=0)
    images = {"train": prepared.train.captions.images, "dev": prepared.dev.images}
    held = {
        part: {Path(some.where(i).split(" (")[0]).stem.split("-")[0] for i in range(len(some))}
        for part, some in images.items()
    }
    assert held["train"] and held["dev"] and not held["train"] & held["dev"]
    assert len(images["dev"]) == 3 * len(held["dev"])


def test_pictures_that_are_also_held_out_leave_train(photos):
    picture(photos / "copy.png", 3)
    table(photos, [{"image": "copy.png", "caption": "held out"}], "dev.jsonl")
    prepared = prepare_captions(CaptionFiles(folder=str(photos)), photos / "run", seed=0)
    assert len(prepared.train.captions.images) == 19 and prepared.references == [("held out",)]
    assert any("are also in dev" in line for line in prepared.report)


def test_special_marks_and_hangul_stay_text(photos):
    said = ["a </s> and a <pad> <s>", "키 캡: 별", "an emoji 👩🏽‍🚀"]
    codec = prepare_captions(CaptionFiles(folder=str(photos)), photos / "run", seed=0).codec
    for caption, ids in zip(said, codec.encode([said])[0], strict=True):
        assert ids[0] == codec.start and ids[-1] == codec.end
        assert not {codec.start, codec.end, codec.pad} & set(ids[1:-1])
        assert codec.vocabulary.decode(ids[1:-1]) == codec.vocabulary.normalise(caption)


def test_too_long_captions_are_dropped_and_told(photos):
    rows = [{"image": f"{i}.png", "caption": "word " * (30 if i == 7 else 2)} for i in range(20)]
    table(photos, rows)
    prepared = prepare_captions(CaptionFiles(folder=str(photos), max_length=8), photos / "run", seed=0)
    assert len(prepared.train) + len(prepared.references) == 19
    assert any("captions of more than 8 pieces, dropped" in line for line in prepared.report)


def test_every_caption_occurs_once_an_epoch_and_batches_depend_on_their_place_alone(photos):
    prepared = prepare_captions(CaptionFiles(folder=str(photos), batch=7), photos / "run", seed=0)
    again = prepare_captions(CaptionFiles(folder=str(photos), batch=7), photos / "run", seed=0)
    batches = [prepared.train.batch(Position(2, i)) for i in range(prepared.train.epoch_length(2))]
    assert sum(batch.size for batch in batches) == len(prepared.train) == 38
    for i, batch in reversed(list(enumerate(batches))):
        other = again.train.batch(Position(2, i))
        assert torch.equal(batch.target, other.target) and torch.equal(batch.pictures, other.pictures)
        assert batch.targets == int((batch.lengths - 1).sum())
        assert batch.pictures.shape[1:] == (3, 8, 8)  # 10 pixels, in fours
    with pytest.raises(IndexError):
        prepared.train.batch(Position(0, 99))


def test_a_batch_holds_each_picture_once(photos):
    prepared = prepare_captions(CaptionFiles(folder=str(photos), batch=64), photos / "run", seed=0)
    batch = prepared.train.batch(Position())
    assert batch.size == 38 and len(batch.pictures) == 19 and batch.which.bincount().tolist() == [2] * 19


def test_a_codec_comes_back_and_a_broken_one_is_named(photos, tmp_path):
    codec = prepare_captions(CaptionFiles(folder=str(photos)), photos / "run", seed=0).codec
    codec.save(tmp_path / "codec")
    assert CaptionCodec.load(tmp_path / "codec").fingerprint() == codec.fingerprint()
    (tmp_path / "codec" / "codec.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="the codec cannot be read"):
        CaptionCodec.load(tmp_path / "codec")


def see(ids):
    return torch.stack([torch.full((2, 3), float(i)) for i in ids])


def test_what_an_encoder_saw_is_kept(tmp_path):
    asked = []
    store = fill_cells(tmp_path, 7, (2, 3), lambda ids: asked.extend(ids) or see(ids), chunk=2)
    assert asked == list(range(7)) and torch.equal(store[np.array([5, 0])], see([5, 0]))
    fill_cells(tmp_path, 7, (2, 3), None)  # whole: nothing is asked for
    with open(tmp_path / "cells", "r+b") as file:
        file.write(b"\1")
    with pytest.raises(DataError, match="damaged"):
        CellStore(tmp_path)
    assert torch.equal(fill_cells(tmp_path, 7, (2, 3), see)[np.arange(7)], see(range(7)))


def _killed(folder):
    def dies(ids):
        if 4 in ids:
            with open(folder / "cells", "ab") as file:  # half a picture that no progress tells of
                file.write(b"\7\7\7")
            os._exit(9)
        return see(ids)

    fill_cells(folder, 7, (2, 3), dies, chunk=2)


def test_a_kill_while_it_is_filled_costs_at_most_a_chunk(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 9
    asked = []
    store = fill_cells(tmp_path, 7, (2, 3), lambda ids: asked.extend(ids) or see(ids), chunk=2)
    assert asked == [4, 5, 6] and torch.equal(store[np.arange(7)], see(range(7)))


def test_cells_take_the_place_of_pictures(photos, tmp_path):
    prepared = prepare_captions(CaptionFiles(folder=str(photos)), photos / "run", seed=0)
    stores = {part: fill_cells(tmp_path / part, count, (2, 3), see) for part, count in (("train", 19), ("dev", 1))}
    seen = prepared.with_cells(stores)
    batch = seen.train.batch(Position())
    assert batch.seen and batch.pictures.shape == (19, 2, 3)
    assert torch.equal(batch.target, prepared.train.batch(Position()).target)
    assert isinstance(seen.dev, HeldOutCaptions) and seen.dev.pictures([0]).shape == (1, 2, 3)
