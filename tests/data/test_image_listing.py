"""Finding labelled pictures: class folders, parts, tables, archives and datasets; hidden things are never a class."""

import csv
import io
import json
import os
import random
import stat
import tarfile
import unicodedata
import zipfile
from pathlib import Path

import pytest
from photos import pets, png, write

from qkv.data.archives import open_archive
from qkv.data.class_folders import arrange
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import fingerprint, list_examples
from qkv.data.pictures import decode
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError


def listed(where: Path | str = "", tmp: Path | None = None, **how) -> tuple[dict, Report]:
    report = Report(unit="pictures")
    found = list_examples(ImageFiles(folder=str(where), **how), tmp or Path("/nowhere"), report)
    return {part: [(e.name, e.label) for e in some] for part, some in found.items()}, report


def test_hidden_and_system_names_are_no_classes(tmp_path):
    """BL-22: cat and dog are the classes; the others are named, once each."""
    files = {f"{name}/1.jpg": png(i) for i, name in enumerate(("cat", "dog", ".ipynb_checkpoints", "__MACOSX"))}
    files |= {f"cat/{name}": b"x" for name in (".DS_Store", "Thumbs.db", "._1.jpg", "notes.txt")}
    write(tmp_path, files)
    (tmp_path / "bird").mkdir()
    found, report = listed(tmp_path)
    assert found == {"train": [("cat/1.jpg", "cat"), ("dog/1.jpg", "dog")]}
    lines = "\n".join(report.lines())
    assert lines.count("bird") == 1 and f"1 class folders without a picture, ignored ({tmp_path}/bird)" in lines
    assert f"2 hidden or system folders, ignored ({tmp_path}/.ipynb_checkpoints; {tmp_path}/__MACOSX)" in lines
    assert "3 hidden or system files, ignored" in lines and "Thumbs.db" in lines and ".DS_Store" in lines
    assert "1 files that are no pictures, ignored" in lines


def test_parts_are_found_by_their_usual_names(tmp_path):
    for part in ("Train", "validation", "test"):
        pets(tmp_path / part, 1)
    found, _ = listed(tmp_path)
    assert list(found) == ["train", "dev", "test"]
    assert found["dev"] == [("validation/cat/00.png", "cat"), ("validation/dog/00.png", "dog")]


def test_a_class_may_be_called_train(tmp_path):
    pets(tmp_path, 2, classes=("car", "train"))
    assert {label for _, label in listed(tmp_path)[0]["train"]} == {"car", "train"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train/cat/1.png", "cat/1.png"], "train and cat lie side by side, one a part of the data"),
        (["val/cat/1.png", "dev/cat/1.png", "train/cat/2.png"], "dev and train and val hold the same part twice"),
    ],
)
def test_parts_that_are_not_clear_are_refused(names, message):
    with pytest.raises(DataError, match=message):
        arrange(names, [], "photos")


def test_nested_loose_and_wrapped_pictures(tmp_path):
    write(tmp_path / "photos", {"cat/old/1.png": png(1), "cat/2.png": png(2), "dog/1.PNG": png(3)})
    found, report = listed(tmp_path)
    assert [label for _, label in found["train"]] == ["cat", "cat", "dog"]
    assert report.count("train", "pictures deeper in a class folder") == 1
    assert f"all pictures of {tmp_path} lie in photos/: classes are looked for there" in report.remarks
    write(tmp_path / "photos", {"9.png": png(4)})
    found, report = listed(tmp_path / "photos")
    assert len(found["train"]) == 3 and report.count("train", "pictures in no class folder") == 1


def test_a_folder_that_links_to_itself_ends(tmp_path):
    pets(tmp_path, 1)
    os.symlink(tmp_path, tmp_path / "cat" / "again")
    assert len(listed(tmp_path)[0]["train"]) == 2


def test_the_same_class_is_the_same_text(tmp_path):
    """Some systems decompose the names of folders; the class is composed."""
    name = "고양이"
    write(tmp_path, {f"{unicodedata.normalize('NFD', name)}/1.png": png(1), "dog/1.png": png(2)})
    assert {label for _, label in listed(tmp_path)[0]["train"]} == {name, "dog"}


TABLE = [("images/1.png", "cat"), ("images/2.png", "dog"), ("images/3.png", " cat ")]


def table(folder: Path, form: str, rows=TABLE, header=("file", "label")) -> Path:
    path = folder / f"labels.{form}"
    if form in ("csv", "tsv"):
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t" if form == "tsv" else ",").writerows([header, *rows])
    elif form == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    else:
        import pyarrow
        import pyarrow.parquet

        columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_name_pictures_and_labels(tmp_path, form):
    write(tmp_path / "images", {f"{i}.png": png(i) for i in (1, 2, 3)})
    path = table(tmp_path, form)
    expected = [(name, label.strip()) for name, label in TABLE]
    for where in (path, tmp_path):
        assert listed(where)[0] == {"train": expected}
    found = list_examples(ImageFiles(folder=str(path)), tmp_path, Report())["train"]
    assert decode(found[1].read()).pixels.shape == (12, 10, 3)
    assert f"{path}:" in found[1].where and "images/2.png" in found[1].where


def test_a_table_may_say_the_part_and_several_labels_or_numbers(tmp_path):
    rows = [
        ("1.png", "train", "red|round"),
        ("2.png", "Val", ""),
        ("3.png", "holiday", "red"),
        ("4.png", "test", "b|a|b"),
    ]
    path = table(tmp_path, "csv", rows, ("file", "split", "label"))
    found, report = listed(path, labels="several")
    assert found == {"train": [("1.png", ("red", "round"))], "dev": [("2.png", ())], "test": [("4.png", ("a", "b"))]}
    assert f"{path}:4: split is 'holiday', no part of the data" in "\n".join(report.lines())
    rows = [("1.png", "3.5"), ("2.png", "nan"), ("3.png", "old"), ("4.png", "-1e3")]
    found, report = listed(table(tmp_path, "csv", rows, ("path", "age")), label="age", labels="number")
    assert found["train"] == [("1.png", 3.5), ("4.png", -1000.0)]
    assert "2 pictures without a usable label, dropped" in str(report.findings[0]) and ":4: age is 'old'" in str(
        report.findings[0]
    )
    table(tmp_path, "jsonl", [("1.png", ["b", "a"]), ("2.png", 7)], ("file", "labels"))
    assert listed(tmp_path / "labels.jsonl", labels="several")[0]["train"] == [("1.png", ("a", "b")), ("2.png", ("7",))]


def test_broken_rows_are_dropped_by_line(tmp_path):
    (tmp_path / "a.csv").write_text('file,label\n1.png,cat\n2.png\n,dog\n3.png,\n"4,5.png",dog\n')
    found, report = listed(tmp_path / "a.csv")
    assert found["train"] == [("1.png", "cat"), ("4,5.png", "dog")]
    told = "\n".join(report.lines())
    assert "a.csv:3: 1 columns where 2 are expected" in told and "a.csv:4: no path" in told
    assert "a.csv:5: label is ''" in told
    (tmp_path / "b.jsonl").write_text('{"file": "1.png", "label": "cat"}\nno\n[1]\n')
    _, report = listed(tmp_path / "b.jsonl")
    assert "b.jsonl:2: no JSON" in str(report.findings[0]) and "b.jsonl:3: no JSON object" in str(report.findings[0])


def test_columns_that_are_missing_are_named(tmp_path):
    path = table(tmp_path, "csv", TABLE, ("file", "kind"))
    with pytest.raises(DataError, match=r"labels\.csv:1: none of the columns file, kind is a label; expected a column"):
        listed(path)
    with pytest.raises(DataError, match=r"there is no column 'kinds'.*did you mean 'kind'"):
        listed(path, label="kinds")
    assert len(listed(path, label="kind")[0]["train"]) == 3


def zipped(path: Path, files: dict[str, bytes], folders: tuple[str, ...] = ()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in folders:
            archive.mkdir(folder)
        for name, raw in files.items():
            archive.writestr(name, raw)
    return path


def tarred(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:" + path.suffix.lstrip(".").replace("tar", "")) as archive:
        for name, raw in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return path


FILES = {f"photos/{name}/{i}.png": png(i + shift) for name, shift in (("cat", 0), ("dog", 5)) for i in (1, 2)}


@pytest.mark.parametrize("form", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_archives_are_read_where_they_lie(tmp_path, form):
    path = (zipped if form == "a.zip" else tarred)(tmp_path / form, FILES)
    data = ImageFiles(folder=str(path))
    found = list_examples(data, tmp_path / "scratch", Report())["train"]
    assert [(e.name, e.label) for e in found] == [(name, name.split("/")[1]) for name in FILES]
    assert [e.read() for e in found] == list(FILES.values())
    outside = {p.name for p in tmp_path.rglob("*") if p.is_file()} - {form}
    assert all(name.startswith("unpacked-") for name in outside) and len(outside) == (form.count(".") > 1)
    again = list_examples(data, tmp_path / "scratch", Report())["train"]  # what is unpacked is found again
    assert fingerprint({"train": again}) == fingerprint({"train": found})


@pytest.mark.parametrize("form", ["a.zip", "a.tar"])
def test_nothing_in_an_archive_leads_out_of_it(tmp_path, form):
    bad = {name: png(1) for name in ("../evil/1.png", "/etc/2.png", "cat/../../3.png", "C:/x/4.png", "cat\\..\\5.png")}
    (tmp_path / "in").mkdir()
    path = (zipped if form == "a.zip" else tarred)(tmp_path / "in" / form, FILES | bad)
    found, report = listed(path, tmp_path / "scratch")
    assert len(found["train"]) == 4
    assert report.count("train", "names in an archive that lead out of it") >= 4
    assert "../evil/1.png" in "\n".join(report.lines())
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == {form}


def test_links_in_archives_are_not_followed(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, raw in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
        link = tarfile.TarInfo("photos/cat/link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    found, report = listed(tmp_path / "a.tar")
    assert len(found["train"]) == 4 and report.count("train", "links and devices in an archive") == 1
    path = zipped(tmp_path / "a.zip", FILES)
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("photos/cat/link.png")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert listed(path)[1].count("train", "links and devices in an archive") == 1


def test_damaged_archives_are_one_error(tmp_path):
    path = zipped(tmp_path / "a.zip", FILES)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"a\.zip: the archive cannot be read"):
        listed(path)
    for form in ("b.tar.gz", "b.tar.xz"):
        path = tarred(tmp_path / form, FILES)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(DataError, match=rf"{form}: the archive cannot be read"):
            listed(path, tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())


def test_empty_folders_in_an_archive_are_told(tmp_path):
    path = zipped(tmp_path / "a.zip", FILES, ("photos/bird",))
    _, report = listed(path)
    assert "photos/bird" in "\n".join(report.lines())


def test_a_dataset_by_name(tmp_path, monkeypatch):
    import datasets

    from qkv.data import formats

    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})

    def part(labels):
        rows = {"image": [{"bytes": png(i), "path": None} for i in range(len(labels))], "label": labels}
        return datasets.Dataset.from_dict(rows, features=features)

    loaded = datasets.DatasetDict({"train": part([1, 0, -1]), "validation": part([0])})
    monkeypatch.setattr(datasets, "load_dataset", lambda name, config: loaded)
    monkeypatch.setattr(formats, "_hub_answers", lambda: True)
    found, report = listed("someone/pets")
    assert found == {"train": [("1", "dog"), ("2", "cat")], "dev": [("1", "cat")]}
    assert report.count("train", "pictures without a usable label") == 1
    examples = list_examples(ImageFiles(folder="someone/pets"), tmp_path, Report())
    assert examples["train"][1].read() == png(1) and examples["train"][1].where == "someone/pets (train):2"
    with pytest.raises(DataError, match="it is not clear which of the columns image, label holds labels"):
        listed("someone/pets", label="kind")
    with pytest.raises(DataError, match="the dataset has no part 'test'"):
        listed(train="someone/pets", test="someone/pets")


def test_what_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="no data is named"):
        listed()
    with pytest.raises(DataError, match="there is no such file or folder; expected a folder"):
        listed(tmp_path / "none")
    write(tmp_path, {"a.doc": b"x"})
    with pytest.raises(DataError, match="this is no folder, archive or table"):
        listed(tmp_path / "a.doc")
    with pytest.raises(DataError, match=r"no labelled picture was found \(train: 1 files that are no pictures"):
        listed(tmp_path)


def test_parts_at_places_of_their_own(tmp_path):
    pets(tmp_path / "one", 2)
    zipped(tmp_path / "two.zip", FILES)
    found, report = listed(train=str(tmp_path / "one"), dev=str(tmp_path / "two.zip"))
    assert {part: len(some) for part, some in found.items()} == {"train": 4, "dev": 4}
    assert report.files == {"train": [str(tmp_path / "one")], "dev": [str(tmp_path / "two.zip")]}


def test_the_fingerprint_is_of_names_labels_and_bytes(tmp_path):
    def of(folder: Path) -> dict:
        return fingerprint(list_examples(ImageFiles(folder=str(folder)), tmp_path, Report()))

    one, moved = pets(tmp_path / "one", 2), pets(tmp_path / "moved", 2)
    assert of(one) == of(moved)
    write(moved, {"cat/00.png": png(99)})
    assert of(one) != of(moved)


def test_a_link_to_nothing_is_told_and_a_pipe_is_left_alone(tmp_path):
    pets(tmp_path, 1)
    os.symlink(tmp_path / "gone.png", tmp_path / "cat" / "link.png")
    os.mkfifo(tmp_path / "cat" / "pipe.png")
    found = list_examples(ImageFiles(folder=str(tmp_path)), tmp_path, Report())["train"]
    assert [example.name for example in found] == ["cat/00.png", "cat/link.png", "dog/00.png"]
    with pytest.raises(DataError, match=r"cat/link\.png: cannot be read \(No such file"):
        found[1].read()


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_damage_anywhere_in_an_archive_is_a_data_error_or_none(tmp_path, form):
    draw, content = random.Random(0), random.Random(1).randbytes(2000)
    file = tmp_path / f"pets.{form}"
    if form == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("cat/a.png", content)
    else:
        with tarfile.open(file, "w:" + form.partition(".")[2]) as archive:
            member = tarfile.TarInfo("cat/a.png")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    whole, refused = file.read_bytes(), 0
    for turn in range(60):
        damaged = bytearray(whole[: draw.randrange(len(whole))] if turn % 2 else whole)
        for _ in range(3 if damaged else 0):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        file.write_bytes(damaged)
        try:
            open_archive(file, tmp_path / f"scratch-{turn}")
        except DataError as error:
            assert str(file) in str(error)
            refused += 1
    assert refused > 10
