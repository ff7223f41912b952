"""Labelled texts: found, read, checked, split and cut into batches."""

import gzip
import json

import numpy as np
import pyarrow.parquet
import pytest
import torch

from qkv.data.kind import find_kind
from qkv.data.report import Report
from qkv.data.texts import TextFiles, check
from qkv.data.texts_doctor import examine_all
from qkv.data.texts_listing import list_texts
from qkv.data.texts_prepare import prepare_texts
from qkv.errors import ConfigError, DataError
from qkv.tasks.task import Position

ROWS = [("good", "a fine day"), ("bad", "a dull day"), ("good", '"quoted, and not closed'), ("bad", "tired\u00a0eyes")]


def write(path, rows=ROWS, names=("label", "text")):
    """Rows in the format that the name says."""
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in [names, *rows]]
    lines = {
        ".tsv": ["\t".join(row) for row in [names, *rows]],
        ".csv": [",".join(row) for row in quoted],
        ".jsonl": [json.dumps(dict(zip(names, row, strict=True))) for row in rows],
    }[path.suffix]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def listed(**which):
    return list_texts(TextFiles(**which), Report(unit="texts"))


@pytest.mark.parametrize("name", ["train.tsv", "train.csv", "train.jsonl", "train.tsv.gz", "train.jsonl.gz"])
def test_every_format_gives_the_same_texts(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".gz"):
        plain = write(tmp_path / name.removesuffix(".gz"))
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    else:
        write(path)
    assert find_kind(str(path)) == find_kind(str(tmp_path)) == "texts"
    found = listed(folder=str(tmp_path))["train"]
    assert [(one.label, *one.texts) for one in found] == [(label, text.replace("\u00a0", " ")) for label, text in ROWS]


def test_parquet_and_its_numbers(tmp_path):
    table = pyarrow.table({"sentence": ["one", "two"], "score": [1.5, 2.0]})
    pyarrow.parquet.write_table(table, tmp_path / "train.parquet")
    assert [one.label for one in listed(folder=str(tmp_path), labels="number")["train"]] == [1.5, 2.0]


def test_class_folders_of_texts(tmp_path):
    for name, text in (("train/good/1.txt", "fine\nand long"), ("train/bad/2.txt", "dull"), ("test/bad/3.txt", "cold")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "train" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "train" / ".ipynb_checkpoints" / "x.txt").write_text("hidden")
    assert find_kind(str(tmp_path)) == "texts"
    found = listed(folder=str(tmp_path))
    assert [(one.label, one.texts) for one in found["train"]] == [("bad", ("dull",)), ("good", ("fine and long",))]
    assert [one.label for one in found["test"]] == ["bad"]


def test_a_table_without_a_header_has_numbered_columns(tmp_path):
    (tmp_path / "all.tsv").write_text("17\tfine\tgood\n18\tdull\tbad\n")
    found = listed(folder=str(tmp_path / "all.tsv"), text="2", label="3")["train"]
    assert [(one.label, *one.texts) for one in found] == [("good", "fine"), ("bad", "dull")]


def test_a_second_column_of_texts_is_a_pair_and_a_split_column_says_the_part(tmp_path):
    names = ("premise", "hypothesis", "label", "split")
    rows = [("it rains", "it is wet", "yes", "train"), ("it rains", "it is dry", "no", "validation")]
    write(tmp_path / "all.tsv", rows, names)
    found = listed(folder=str(tmp_path / "all.tsv"))
    assert found["train"][0].texts == ("it rains", "it is wet") and found["dev"][0].label == "no"
    assert listed(folder=str(tmp_path / "all.tsv"), pair="none")["train"][0].texts == ("it rains",)


def test_what_cannot_be_used_is_named_with_its_line(tmp_path):
    lines = [b"label\ttext", b"good\tfine", b"good\t ", b"\tno label", b"bad\t\xff\xfe", b"bad"]
    lines += [b"bad\tdull", b"bad\tcold"]
    (tmp_path / "train.tsv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\n")
    report = check(TextFiles(folder=str(tmp_path)), every=True)
    told = {finding.kind: finding.examples for finding in report.findings}
    file = tmp_path / "train.tsv"
    assert told["empty texts"] == [f"{file}:3"]
    assert told["texts without a usable label"] == [f"{file}:4: label is ''"]
    assert told["texts that are not UTF-8"] == [f"{file}:5"]
    assert told["broken records"] == [f"{file}:6: 1 columns where 2 are expected"]
    assert report.kept == {"train": 3} and not report.refused


def test_a_missing_column_is_an_error_with_its_line(tmp_path):
    write(tmp_path / "train.tsv", names=("label", "words"))
    with pytest.raises(DataError, match=r"train\.tsv:1: none of the columns label, words is a text.*--data\.text"):
        listed(folder=str(tmp_path))
    with pytest.raises(DataError, match="Did you mean 'words'"):
        listed(folder=str(tmp_path), text="wrods")


def test_what_repeats_and_what_straddles(tmp_path):
    write(tmp_path / "train.tsv", [*ROWS, ROWS[0], ("bad", "a dull day "), ("bad", "a fine day"), ("good", "seen")])
    write(tmp_path / "test.tsv", [("good", "seen"), ("bad", "unseen")])
    report, examples = examine_all(TextFiles(folder=str(tmp_path)))
    assert report.count("train", "repeated texts") == 2
    assert report.count("train", "repeated texts with another label") == 1
    assert report.count("train", "texts that are also in test") == 1
    assert any("1 texts of train are also in test" in remark for remark in report.remarks)
    assert len(examples["train"]) == 5


def test_an_unknown_class_and_a_near_constant_one(tmp_path):
    write(tmp_path / "train.tsv", [("good", f"text {i}") for i in range(60)] + [("bad", "one")])
    write(tmp_path / "dev.tsv", [("god", "typo")])
    report = check(TextFiles(folder=str(tmp_path)))
    assert "98.4% of train is 'good'" in "\n".join(report.remarks)
    assert "dev has the class 'god', which train has not" in str(report.refused[0])
    assert "Did you mean 'good'?" in str(report.refused[0])


def test_one_class_alone_and_nothing_at_all_are_refused(tmp_path):
    write(tmp_path / "train.tsv", [("good", "a"), ("good", "b")])
    assert "all texts of train are of one class" in str(check(TextFiles(folder=str(tmp_path))).refused[0])
    (tmp_path / "train.tsv").write_text("label\ttext\n")
    assert "no text of train is left" in str(check(TextFiles(folder=str(tmp_path))).refused[0])
    with pytest.raises(DataError, match="no such file or folder"):
        listed(folder=str(tmp_path / "nothing.tsv"))
    with pytest.raises(ConfigError, match=r"data\.batch is 0"):
        TextFiles(batch=0)


@pytest.fixture
def prepared(tmp_path):
    rows = [("good" if i % 3 else "bad", "day " * (i % 7 + 1) + f"number {i}") for i in range(90)]
    write(tmp_path / "train.tsv", rows)
    return prepare_texts(TextFiles(folder=str(tmp_path), batch=8, max_length=16), tmp_path, seed=3)


def test_batches_depend_on_seed_epoch_and_place_alone(prepared, tmp_path):
    train = prepared.train
    again = prepare_texts(TextFiles(folder=str(tmp_path), batch=8, max_length=16), tmp_path, 3, prepared.codec).train
    seen = []
    for place in range(train.epoch_length(1)):
        one, other = train.batch(Position(1, place)), again.batch(Position(1, place))
        assert torch.equal(one.tokens, other.tokens) and torch.equal(one.labels, other.labels)
        assert one.targets == one.size == len(one.lengths) and one.tokens.shape[1] == one.lengths.max()
        seen += one.ids.tolist()
    assert sorted(seen) == list(range(len(train.lengths)))
    assert train.batch(Position(0, 0)).ids.tolist() != train.batch(Position(1, 0)).ids.tolist()
    with pytest.raises(IndexError):
        train.batch(Position(0, train.epoch_length(0)))


def test_held_out_texts_are_of_each_class_and_no_copy_straddles(prepared):
    labels = [one.label for one in prepared.dev_texts]
    assert labels.count("bad") == 3 and labels.count("good") == 6
    dev = [batch for batch in prepared.dev]
    assert sorted(i for batch in dev for i in batch.ids.tolist()) == list(range(9))
    for batch in dev:
        for row, label in zip(batch.ids.tolist(), batch.labels, strict=True):
            assert prepared.codec.targets.classes[int(label.argmax())] == labels[row]


def test_a_long_text_is_cut_and_counted(tmp_path):
    write(tmp_path / "train.tsv", [("good", "day " * 100), *[("bad", f"night {i}") for i in range(20)]])
    found = prepare_texts(TextFiles(folder=str(tmp_path), max_length=12), tmp_path, 0)
    assert found.train.lengths.max() <= 12 and max(batch.lengths.max() for batch in found.dev) <= 12
    assert any("texts of 12 pieces or more, cut there" in line for line in found.report)


def test_a_codec_that_lacks_a_class_is_an_error(prepared, tmp_path):
    write(tmp_path / "train.tsv", [("ugly", "x"), ("good", "y"), ("bad", "z"), ("bad", "w")])
    with pytest.raises(DataError, match="train has the class 'ugly', which the model has not"):
        prepare_texts(TextFiles(folder=str(tmp_path)), tmp_path, 0, prepared.codec)


def test_the_codec_comes_back_from_its_folder(prepared, tmp_path):
    prepared.codec.save(tmp_path / "codec")
    again = type(prepared.codec).load(tmp_path / "codec")
    assert again.targets == prepared.codec.targets and again.fingerprint() == prepared.codec.fingerprint()
    assert again.encode([("a fine day",)]) == prepared.codec.encode([("a fine day",)])


def test_text_that_looks_like_a_mark_is_text(prepared):
    ids, _ = prepared.codec.encode([("[SEP] </s> [MASK] [CLS]",)])[0]
    text = prepared.codec.text
    assert [ids.count(mark) for mark in (text.cls, text.sep, text.mask, text.pad)] == [1, 1, 0, 0]


def test_numbers_are_scaled_and_come_back(tmp_path):
    write(tmp_path / "train.tsv", [(str(i), f"text {i}") for i in range(40)], ("score", "text"))
    found = prepare_texts(TextFiles(folder=str(tmp_path), labels="number"), tmp_path, 0)
    batch = next(iter(found.dev))
    back = found.codec.targets.decode(batch.labels)
    assert np.allclose(back, [found.dev_texts[i].label for i in batch.ids.tolist()], atol=1e-4)
