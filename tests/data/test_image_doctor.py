"""The picture doctor: every fault by name, each picture decoded once, and classes that can be learned."""

import numpy as np
import pytest
from photos import noise, packed, pets, png, raw_png, write
from PIL import Image

from qkv.cli import main
from qkv.data import image_doctor
from qkv.data.image_doctor import examine_all
from qkv.data.image_files import ImageFiles, check
from qkv.data.kind import find_kind
from qkv.errors import ConfigError, DataError
from qkv.tasks import kind_of
from qkv.train.options import from_flags


def lines(where, **how) -> str:
    return "\n".join(check(ImageFiles(folder=str(where), **how)).lines())


def zoo(folder):
    """One picture of each kind, the class of each what it is about."""
    exif = Image.Exif()
    exif[0x0112] = 6
    plain = Image.fromarray(noise(1))
    grey = Image.fromarray(noise(2)[:, :, 0])
    clear = Image.fromarray(np.dstack([noise(3), noise(3)[:, :, :1]]))
    frames = [Image.fromarray(noise(i)) for i in (4, 5)]
    whole = packed(Image.fromarray(noise(6, 60, 60)))
    pets(folder, 3, first=100)
    return write(
        folder,
        {
            "cat/turned.jpg": packed(plain, "JPEG", exif=exif),
            "cat/deep.png": packed(Image.fromarray(noise(7)[:, :, 0].astype(np.uint16) * 200)),
            "cat/palette.png": packed(Image.fromarray(noise(8)).quantize(16)),
            "cat/clear.png": packed(clear),
            "cat/print.jpg": packed(Image.fromarray(noise(9)).convert("CMYK"), "JPEG"),
            "cat/grey.png": packed(grey),
            "cat/moving.png": packed(frames[0], save_all=True, append_images=frames[1:]),
            "cat/cut.png": whole[: len(whole) // 2],
            "cat/text.jpg": b"this is text",
            "cat/big.png": raw_png(20_000, 20_000, 8, 2, b""),
            "dog/copy.bmp": packed(Image.fromarray(noise(100)), "BMP"),
            "dog/same.png": png(103),
        },
    )


FAULTS = {
    "1 pictures turned by EXIF, mended": "turned.jpg",
    "1 16-bit pictures, mended": "deep.png",
    "1 palette pictures, mended": "palette.png",
    "1 transparent pictures, laid on white, mended": "clear.png",
    "1 CMYK pictures, mended": "print.jpg",
    "2 grey pictures, mended": "grey.png",
    "1 animated or paged pictures, first frame taken, mended": "moving.png",
    "1 cut-off or damaged pictures, dropped": "cut.png",
    "1 unreadable pictures, dropped": "text.jpg",
    "1 repeated pictures, dropped": "same.png",
    "2 pictures under several labels, dropped": "copy.bmp",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_fault_is_named(tmp_path):
    told = lines(zoo(tmp_path))
    for fault, name in FAULTS.items():
        line = next((line for line in told.splitlines() if fault in line), "")
        assert name in line, f"{fault} {name}\n{told}"
    assert (
        "oversize pictures, dropped" in told
        and "big.png: the picture has 400,000,000 pixels; expected at most 89,478,485" in told
    )
    assert "train: 18 pictures read" in told and "12 kept" in told


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_of_them_are_named_if_asked(tmp_path, capsys):
    pets(tmp_path, 3)
    write(tmp_path, {f"cat/bad{i}.png": b"x" * (i + 1) for i in range(9)})
    assert main(["check", str(tmp_path)]) == 0
    assert "bad3.png" not in capsys.readouterr().out
    assert main(["check", str(tmp_path), "--every"]) == 0
    told = capsys.readouterr().out
    assert all(f"  {tmp_path}/cat/bad{i}.png: this is no picture" in told for i in range(9))


def test_each_picture_is_decoded_once(tmp_path, monkeypatch):
    seen = []
    decode = image_doctor.decode
    monkeypatch.setattr(image_doctor, "decode", lambda raw, name: (seen.append(name), decode(raw, name))[1])
    pets(tmp_path / "train", 4)
    pets(tmp_path / "val", 2)
    check(ImageFiles(folder=str(tmp_path)))
    assert len(seen) == len(set(seen)) == 12


def test_what_is_handed_on_is_small_and_in_order(tmp_path):
    pets(tmp_path, 40)
    write(tmp_path, {"cat/99.png": packed(Image.new("L", (1100, 1000), 7))})
    handed = []
    _, examples, looks = examine_all(ImageFiles(folder=str(tmp_path)), tmp_path, lambda part: handed.append)
    assert [None if p is None else int(p[0, 0, 0]) for p in handed] == [
        None if e.name == "cat/99.png" else int(noise(i - (i > 40))[0, 0, 0]) for i, e in enumerate(examples["train"])
    ]
    look = looks["train"][40]
    assert (look["height"], look["width"]) == (1000, 1100) and np.allclose(look["mean"], 7 / 255)


def test_a_picture_that_is_also_held_out_leaves_train(tmp_path):
    pets(tmp_path / "train", 5)
    write(tmp_path, {"val/cat/x.bmp": packed(Image.fromarray(noise(1)), "BMP"), "val/dog/y.png": png(2)})
    write(tmp_path, {"test/cat/z.png": png(1), "test/dog/w.png": png(900)})
    told = lines(tmp_path)
    assert "train: 10 pictures read" in told and "8 kept" in told
    assert "1 pictures that are also in dev, dropped" in told and "x.bmp (cat)" in told
    assert "1 pictures that are also in dev, with another label, dropped" in told and "(cat) like" in told
    assert "1 pictures that are also in test, found, kept" in told
    assert "WARNING: 2 pictures of train are also in dev; they are dropped from train" in told
    assert lines(tmp_path, keep_duplicates=True) == told  # that is for repeats within train


def test_validation_is_read_by_the_classes_of_train(tmp_path):
    """BL-23: 1, 2 and 10 sort as text; a part without 2 is told, a class that train has not is refused by name."""
    pets(tmp_path / "train", 2, classes=("1", "2", "10"))
    pets(tmp_path / "val", 2, first=50, classes=("1", "10"))
    told = lines(tmp_path)
    assert "train: 3 classes: 1 (2), 10 (2), 2 (2)" in told and "dev: 1 classes of train without a picture" in told
    assert "refused" not in told
    pets(tmp_path / "val", 1, first=90, classes=("3",))
    report = check(ImageFiles(folder=str(tmp_path)))
    with pytest.raises(DataError, match=r"dev has the class '3', which train has not\. Known: 1, 10, 2"):
        report.raise_if_refused()


def test_classes_that_teach_little_are_told(tmp_path):
    pets(tmp_path, 1, classes=("rare",))
    pets(tmp_path, 30, first=5, classes=("usual",))
    told = lines(tmp_path)
    assert "WARNING: 96.8% of train is 'usual'" in told
    assert "1 classes of one picture, which cannot be held out, found, kept (rare)" in told
    pets(tmp_path / "only", 2, classes=("cat",))
    assert "refused: " in lines(tmp_path / "only") and "all pictures of train are of one class, 'cat'" in lines(
        tmp_path / "only"
    )


def test_nothing_left_says_why(tmp_path):
    write(tmp_path, {"cat/1.png": b"x", "dog/1.png": b""})
    told = lines(tmp_path)
    assert "no picture of train is left (train: 2 unreadable pictures, dropped" in told


def test_a_part_that_is_named_and_empty_is_refused(tmp_path):
    pets(tmp_path / "train", 2)
    (tmp_path / "dev" / "cat").mkdir(parents=True)
    told = lines("", train=str(tmp_path / "train"), dev=str(tmp_path / "dev"))
    assert f"refused: {tmp_path}/dev: no picture of dev is left (dev: 1 class folders without a picture" in told


def test_numbers_are_described(tmp_path):
    write(tmp_path, {f"{i}.png": png(i) for i in range(4)})
    table = tmp_path / "t.csv"
    table.write_text("file,target\n" + "".join(f"{i}.png,{i * 10}\n" for i in range(4)))
    assert "train: targets from 0 to 30, mean 15, deviation 11.18" in lines(table, labels="number")
    table.write_text("file,target\n" + "".join(f"{i}.png,5\n" for i in range(4)))
    assert "refused: " in lines(table, labels="number") and "every target of train is 5" in lines(
        table, labels="number"
    )


def test_a_number_far_from_all_others_is_pointed_out(tmp_path):
    write(tmp_path, {f"{i}.png": png(i) for i in range(41)})
    table = tmp_path / "t.csv"
    rows = [f"{i}.png,{i}\n" for i in range(40)]
    table.write_text("file,target\n" + "".join(rows) + "40.png,1e30\n")
    assert "most targets of train lie from 2 to 38, but one is 1e+30" in lines(table, labels="number")
    table.write_text("file,target\n" + "".join(rows) + "40.png,300\n")
    assert "WARNING" not in lines(table, labels="number")


def test_check_sees_what_lies_there(tmp_path, capsys):
    pets(tmp_path / "photos", 2)
    pairs = write(tmp_path / "ko_en", {"train.ko": "가\n나\n".encode(), "train.en": b"a\nb\n"})
    assert find_kind(str(tmp_path / "photos")) == "pictures" and find_kind(str(pairs)) == "pairs"
    assert find_kind(str(pairs / "train")) == "pairs"
    assert main(["check", str(tmp_path / "photos")]) == 0 and "4 pictures read" in capsys.readouterr().out
    assert main(["check", str(pairs)]) == 0 and "2 pairs read" in capsys.readouterr().out
    write(pairs, {"img/1.png": png(1)})
    assert main(["check", str(pairs)]) == 2
    error = capsys.readouterr().err
    assert (
        error.count("\n") == 1 and "img/1.png) and sentence pairs (" in error and "say --kind pictures" in error.lower()
    )
    assert main(["check", str(pairs), "--kind", "pairs"]) == 0
    (tmp_path / "none").mkdir()
    assert main(["check", str(tmp_path / "none")]) == 2
    assert "there are neither pictures, clips nor sentence pairs" in capsys.readouterr().err


def test_columns_that_the_user_names_tell_what_a_table_is(tmp_path, capsys):
    pets(tmp_path / "photos", 2)
    rows = "".join(f"photos/{file.parent.name}/{file.name},{i}\n" for i, file in enumerate(tmp_path.glob("photos/*/*")))
    write(tmp_path, {"ages.csv": f"file,age\n{rows}".encode(), "films.csv": b"review,stars,id\ngood,5,1\nbad,1,2\n"})
    ages, films = str(tmp_path / "ages.csv"), str(tmp_path / "films.csv")
    assert find_kind(ages) == find_kind(films) == "pairs"
    assert find_kind(ages, {"label": "age"}) == kind_of("regress", ages, {"label": "age"}) == "pictures"
    assert find_kind(films, {"text": "review", "label": "stars"}) == "texts"
    assert find_kind(films, {"text": "nothing", "label": "stars"}) == "pairs"
    assert main(["check", ages, "--path", "file", "--label", "age", "--labels", "number"]) == 0
    assert "4 pictures read" in capsys.readouterr().out
    run = from_flags(["--task", "regress", "--data", ages, "--data.label", "age", "--out", str(tmp_path / "run")])
    assert (run.kind, run.data.label) == ("pictures", "age")


def test_tables_are_told_apart_by_their_columns(tmp_path):
    write(tmp_path, {"a.csv": b"file,label\n1.png,cat\n", "b.csv": b"ko,en\nx,y\n"})
    write(tmp_path / "pairs", {"train.tsv": "가\ta\n".encode()})
    write(tmp_path / "pictures", {"train.tsv": b"path\tclass\n1.png\tcat\n"})
    kinds = [find_kind(str(tmp_path / name)) for name in ("a.csv", "b.csv", "pairs", "pictures")]
    assert kinds == ["pictures", "pairs", "pairs", "pictures"]
    write(pets(tmp_path / "loose", 1), {"test1.png": png(8), "test2.png": png(9)})
    assert find_kind(str(tmp_path / "loose")) == "pictures"
    assert find_kind("someone/dataset") == "pairs" and find_kind("x.tar.gz") == "pictures"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "two"}, "data.labels is two; expected class, several or number"),
        ({"hold_out": 1.0}, "data.hold_out is 1.0"),
        ({"batch": 0}, "data.batch is 0"),
        ({"size": -1}, "data.size is -1"),
        ({"crop": 0.0}, "data.crop is 0.0"),
    ],
)
def test_settings_that_cannot_be(change, message):
    with pytest.raises(ConfigError, match=message):
        ImageFiles(**change)
