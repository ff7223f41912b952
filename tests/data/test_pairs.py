"""The user's files: formats, the doctor's report, and pairs made ready."""

import csv
import gzip
import json
import os
import unicodedata
from pathlib import Path

import pytest

from qkv.data.doctor import read_pairs
from qkv.data.formats import open_corpus
from qkv.data.pairs import PairFiles, check, open_part, resolve
from qkv.data.prepare import prepare_pairs
from qkv.data.store import PairStore
from qkv.errors import ConfigError, DataError

PAIRS = [("나는 학생이다.", "I am a student."), ('그는 "왔다", 했다.', 'He said, "came".'), ("고양이", "a cat")]


def parallel(folder: Path, name: str, source: bytes | list[str], target: bytes | list[str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, lines in (("ko", source), ("en", target)):
        raw = lines if isinstance(lines, bytes) else "".join(line + "\n" for line in lines).encode()
        (folder / f"{name}.{suffix}").write_bytes(raw)
    return str(folder / name)


def korean(count: int, word: str = "dog") -> tuple[list[str], list[str]]:
    return [f"개 {i} 마리" for i in range(count)], [f"{i} {word}s" for i in range(count)]


def read(where: str, source: str = "ko", target: str = "en") -> list[tuple[int, str, str, str]]:
    return [tuple(pair) for pair in read_pairs(open_corpus(where, source, target))]


def write(path: Path, form: str) -> None:
    sources, targets = zip(*PAIRS, strict=True)
    if form == "parallel":
        parallel(path.parent, path.name, list(sources), list(targets))
        return
    if form == "parquet":
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"id": [1, 2, 3], "ko": sources, "en": targets})
        pyarrow.parquet.write_table(table, f"{path}.parquet")
        return
    if form == "hub.parquet":
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"translation": [{"ko": s, "en": t} for s, t in PAIRS]})
        pyarrow.parquet.write_table(table, f"{path}.parquet")
        return
    with open(f"{path}.{form.removeprefix('hub.')}", "w", encoding="utf-8", newline="") as file:
        if form == "tsv":
            file.writelines(f"{s}\t{t}\n" for s, t in PAIRS)
        elif form == "csv":
            csv.writer(file).writerows([("id", "en", "ko"), *((i, t, s) for i, (s, t) in enumerate(PAIRS))])
        elif form == "jsonl":
            file.writelines(json.dumps({"en": t, "ko": s}) + "\n" for s, t in PAIRS)
        elif form == "hub.jsonl":
            file.writelines(json.dumps({"id": 1, "translation": {"en": t, "ko": s}}) + "\n" for s, t in PAIRS)


TEXT = ("parallel", "tsv", "csv", "jsonl", "hub.jsonl")


@pytest.mark.parametrize(
    ("form", "packed"), [*((f, p) for f in TEXT for p in (False, True)), ("parquet", False), ("hub.parquet", False)]
)
def test_every_format_gives_the_same_pairs(tmp_path, form, packed):
    write(tmp_path / "train", form)
    if packed:
        for file in list(tmp_path.iterdir()):
            Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    where = tmp_path / "train" if form == "parallel" else next(tmp_path.iterdir())
    found = read(str(where))
    assert [(source, target) for _, source, target, _ in found] == PAIRS
    first = 2 if form == "csv" else 1
    assert [line for line, *_ in found] == [first, first + 1, first + 2]
    assert open_corpus(str(where), "ko", "en").fingerprint() == open_corpus(str(where), "ko", "en").fingerprint()


def test_tsv_with_a_header_and_more_columns(tmp_path):
    (tmp_path / "a.tsv").write_text("\ufeffid\ten\tko\r\n1\ta cat\t고양이\r\n\r\n2\ta dog\r\n3\ta fox\t여우\r\n")
    found = read(str(tmp_path / "a.tsv"))
    assert found[0][:3] == (2, "고양이", "a cat") and found[3][:3] == (5, "여우", "a fox")
    assert [why for *_, why in found] == ["", "empty lines", "broken records", ""]
    with pytest.raises(DataError, match="no column 'de'"):
        open_corpus(str(tmp_path / "a.tsv"), "ko", "de")


def test_csv_fields_may_hold_newlines_and_bad_bytes(tmp_path):
    raw = 'ko,en\n"고양\n이","a\r\ncat"\n'.encode() + b'"\xff","b"\n' + "여우,a fox\n".encode()
    (tmp_path / "a.csv").write_bytes(raw)
    found = read(str(tmp_path / "a.csv"))
    assert found == [(2, "고양 이", "a cat", ""), (5, "", "", "lines that are not UTF-8"), (6, "여우", "a fox", "")]


def test_jsonl_records_that_are_none(tmp_path):
    lines = [
        '{"ko": "가", "en": "a"}',
        '{"ko": "가"',
        '{"ko": 1, "en": "a"}',
        '["가", "a"]',
        "",
        '{"ko": "나", "en": "b"}',
    ]
    (tmp_path / "a.jsonl").write_bytes("\n".join(lines).encode() + b'\n{"ko": "\xff", "en": "c"}\n')
    kinds = ["", *["broken records"] * 3, "empty lines", "", "lines that are not UTF-8"]
    assert [why for *_, why in read(str(tmp_path / "a.jsonl"))] == kinds


def test_a_dataset_by_name(tmp_path, monkeypatch):
    import datasets

    rows = datasets.Dataset.from_list([{"translation": {"ko": s, "en": t}} for s, t in PAIRS])
    asked = []

    def load_dataset(name, config=None):
        asked.append((name, config))
        return datasets.DatasetDict({"train": rows, "validation": rows})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.chdir(tmp_path)
    corpus = open_corpus("books:ko-en", "ko", "en", "dev")
    assert asked == [("books", "ko-en")]
    assert [(p.source, p.target) for p in read_pairs(corpus)] == PAIRS
    assert len(corpus.fingerprint()) == 32
    with pytest.raises(DataError, match="no part 'test'"):
        open_corpus("books:ko-en", "ko", "en", "test")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("data/trian", "Did you mean 'train.ko'"),
        ("data/half", "half.ko has no other side; expected .*half.en"),
        ("data/notes.txt", "format of 'notes.txt' is not known"),
        ("data", "is a folder"),
        ("nowhere/ko/train", "no folder nowhere/ko"),
        ("data/wide.tsv", "UTF-16"),
        ("data/cut.tsv.gz", "cannot be read"),
        ("data/broken.parquet", "cannot be read"),
    ],
)
def test_what_cannot_be_opened_is_named(tmp_path, monkeypatch, where, message):
    monkeypatch.chdir(tmp_path)
    parallel(Path("data"), "train", ["가"], ["a"])
    Path("data/half.ko").write_text("가\n")
    Path("data/notes.txt").write_text("a\n")
    Path("data/wide.tsv").write_bytes("가\ta\n".encode("utf-16"))
    Path("data/cut.tsv.gz").write_bytes(gzip.compress("가\ta\n".encode() * 999)[:-20])
    Path("data/broken.parquet").write_bytes(b"PAR1 no")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=message):
        list(open_corpus(where, "ko", "en"))


def test_parts_and_languages_are_found_by_name(tmp_path):
    folder = tmp_path / "ko_en_docs"
    for name in ("train", "val", "test2016"):
        parallel(folder, name, *korean(3))
    (folder / "README.md").write_text("a")
    (folder / "train.source").write_text("a\na\na\n")  # a third file beside the two
    found = resolve(PairFiles(folder=str(folder)))
    assert (found.train, found.dev, found.test) == tuple(str(folder / n) for n in ("train", "val", "test2016"))
    assert (found.source, found.target) == ("ko", "en")
    assert resolve(PairFiles(folder=str(folder), source="en", target="ko")).source == "en"
    parallel(folder, "test2017", *korean(3))
    with pytest.raises(DataError, match="test2016 and test2017 could both be test"):
        resolve(PairFiles(folder=str(folder)))
    assert resolve(PairFiles(train=str(folder / "val"), target="ko")).source == "en"

    plain = tmp_path / "plain"
    parallel(plain, "train", *korean(3))
    with pytest.raises(ConfigError, match=r"en, ko.*--data.source and --data.target"):
        resolve(PairFiles(folder=str(plain)))
    (plain / "x.tsv").write_text("가\ta\n")
    assert resolve(PairFiles(train=str(plain / "x.tsv"))).source == "source"
    for settings in ({}, {"folder": str(tmp_path / "no")}, {"folder": str(tmp_path)}):
        with pytest.raises((ConfigError, DataError)):
            resolve(PairFiles(**settings))


@pytest.mark.parametrize("wrong", [{"words": -1}, {"bpe_dropout": 1.0}, {"max_ratio": 0.5}, {"batch_tokens": 0}])
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        PairFiles(train="x", **wrong)


def test_unequal_line_counts_are_refused_with_both(tmp_path):
    """BL-27, first."""
    train = parallel(tmp_path, "train", ["가", "나", "다"], ["a", "b", "c", "d"])
    data = PairFiles(train=train, source="ko", target="en")
    report = check(data)
    assert len(report.refused) == 1
    with pytest.raises(DataError, match=r"train.ko has 3 lines and .*train.en has 4"):
        report.raise_if_refused()
    with pytest.raises(DataError, match=r"train.ko has 3 lines and .*train.en has 4"):
        prepare_pairs(data, tmp_path / "run", seed=1)


def test_an_empty_line_drops_its_pair_on_both_sides(tmp_path):
    """BL-27, second: [A, empty, B] with [1, 2, 3] gives (A, 1), (B, 3), and the drop is counted."""
    train = parallel(tmp_path, "train", ["A", "", "B"], ["1", "2", "3"])
    data = PairFiles(train=train, dev=train, source="ko", target="en")
    report = check(PairFiles(train=train, source="ko", target="en"))
    assert report.count("train", "empty lines") == 1 and report.kept["train"] == 2
    assert f"{train}.ko:2" in "\n".join(report.lines())
    kept = [(p.source, p.target) for p in read_pairs(open_part(data, "train")) if not p.why]
    assert kept == [("A", "1"), ("B", "3")]


def test_the_doctor_finds_every_fault_by_file_and_line(tmp_path):
    composed = "한국어"
    source = [
        "\ufeff첫 줄\r",  # 1: BOM, CRLF
        "나\x00는 간다",  # 2: NUL
        "두\u2028줄",  # 3: separator
        unicodedata.normalize("NFD", composed),  # 4: not composed
        "",  # 5: empty
        "같다",  # 6
        "같다",  # 7: repeats 6
        "같다",  # 8: another translation
        "긴 " * 2000,  # 9: over-long
        "alike",  # 10: both sides alike
        "시험 문장",  # 11: in test
        "개발 문장",  # 12: in dev, translated otherwise
        "짧다",  # 13: unlike length
        *(f"보통 문장 {i}" for i in range(30)),
    ]
    target = [f"line {i}" for i in range(1, len(source) + 1)]
    target[6] = target[5]
    target[9] = "alike"
    target[10] = "a test sentence"
    target[12] = "very long " * 20
    raw = "\n".join(source).encode()
    raw = raw + b"\n\xed\xa0\x80 bad\n"
    train = parallel(tmp_path, "train", raw, [*target, "line of the bad one"])
    parallel(tmp_path, "dev", ["개발 문장"], ["a dev sentence"])
    parallel(tmp_path, "test", ["시험 문장"], ["a test sentence"])
    report = check(PairFiles(folder=str(tmp_path), source="ko", target="en"))
    text = "\n".join(report.lines())
    expected = {
        "byte-order marks": ("mended", "train.ko:1"),
        "CRLF line ends": ("mended", "train.ko:1"),
        "lines with control characters (NUL, CR and the like)": ("mended", "train.ko:2"),
        "lines with another line separator inside": ("mended", "train.ko:3"),
        "lines not in composed form (NFC)": ("mended", "train.ko:4"),
        "empty lines": ("dropped", "train.ko:5"),
        "repeated pairs": ("dropped", f"train.ko:7 like {train}.ko:6"),
        "sources with several translations": ("noted", ""),
        "over-long lines": ("dropped", "train.ko:9: 3,999 characters"),
        "pairs with both sides alike": ("noted", "train.ko:10"),
        "pairs that are also in test": ("dropped", f"train.ko:11 like {tmp_path}/test.ko:1"),
        "pairs whose source is also in dev, with another translation": ("noted", "train.ko:12"),
        "pairs of unlike length": ("noted", "train.ko:13"),
        "lines that are not UTF-8": ("dropped", f"train.ko:{len(source) + 1}: byte 0xED at 1"),
    }
    found = {finding.kind: finding for finding in report.findings if finding.part == "train"}
    assert set(found) == set(expected)
    for kind, (action, where) in expected.items():
        assert (found[kind].count, found[kind].action) == (1, action), kind
        assert where in "".join(found[kind].examples), kind
        assert f"train: 1 {kind}" in text
    assert report.read == {"train": len(source) + 1, "dev": 1, "test": 1}
    assert report.kept["train"] == len(source) + 1 - 5
    assert any("WARNING: 1 pairs of train are also in test" in line for line in report.lines())
    dropped = check(PairFiles(folder=str(tmp_path), source="ko", target="en", max_ratio=3, keep_duplicates=True))
    assert dropped.find("train", "pairs of unlike length").action == "dropped"
    assert dropped.find("train", "repeated pairs").action == "noted"


def test_a_pair_is_dropped_once_and_all_of_an_overlap_goes(tmp_path):
    train = parallel(tmp_path, "train", ["가", "나", "가", "가", "다"], ["a", "b", "a", "a", "c"])
    parallel(tmp_path, "test", ["가", "가"], ["a", "a"])
    for keep, repeated, overlap in ((False, "dropped", 1), (True, "noted", 3)):
        report = check(PairFiles(folder=str(tmp_path), source="ko", target="en", keep_duplicates=keep))
        assert (report.find("train", "repeated pairs").action, report.count("train", "repeated pairs")) == (repeated, 2)
        assert report.count("train", "pairs that are also in test") == overlap
        assert report.kept == {"train": 2, "test": 2}
    assert train


def test_a_file_in_an_older_encoding_is_said_to_be_one(tmp_path):
    source = "".join(f"고양이 {i}\n" for i in range(20)).encode("cp949")
    parallel(tmp_path, "train", source, [f"cat {i}" for i in range(20)])
    report = check(PairFiles(folder=str(tmp_path), source="ko", target="en"))
    assert report.count("train", "lines that are not UTF-8") == 20 and report.kept["train"] == 0
    assert "iconv -f CP949" in "\n".join(report.lines())


def test_nothing_left_or_nothing_there_is_refused(tmp_path):
    parallel(tmp_path / "a", "train", [" ", "\x00"], ["a", "b"])
    parallel(tmp_path / "b", "train", [], [])
    for folder, message in (("a", "no pair is left"), ("b", "is empty|file is empty")):
        data = PairFiles(folder=str(tmp_path / folder), source="ko", target="en")
        with pytest.raises(DataError, match=message):
            check(data).raise_if_refused()


@pytest.fixture
def data(tmp_path) -> PairFiles:
    for name, count, word in (("train", 200, "dog"), ("dev", 12, "cat"), ("test", 5, "fox")):
        parallel(tmp_path / "ko_en", name, *korean(count, word))
    return PairFiles(folder=str(tmp_path / "ko_en"), words=300, batch_tokens=64)


def rows(store: PairStore) -> list:
    return [(store.source[i].tolist(), store.target[i].tolist(), int(store.lines[i])) for i in range(len(store))]


def test_prepared_pairs_are_the_files(tmp_path, data):
    prepared = prepare_pairs(data, tmp_path / "run", seed=1)
    store, codec = prepared.train.store, prepared.codec
    assert len(store) == 200 and codec.joint and codec.source.size <= 300
    for source, target, line in rows(store):
        assert codec.source.decode(source) == f"개 {line - 1} 마리"
        assert codec.target.decode(target) == f"{line - 1} dogs"
    assert prepared.dev_texts == {i + 1: (f"개 {i} 마리", f"{i} cats") for i in range(12)}
    ids = [i for batch in prepared.dev for i in batch.ids.tolist()]
    assert sorted(ids) == list(range(1, 13))
    for batch in prepared.dev:
        assert [codec.decode(row[:n]) for row, n in zip(batch.target.tolist(), batch.target_lengths, strict=True)] == [
            prepared.dev_texts[i][1] for i in batch.ids.tolist()
        ]
    assert prepared.summary["pairs"] == 200 and json.loads(json.dumps(prepared.summary)) == prepared.summary
    assert any("vocabulary" in line for line in prepared.report)


def test_what_is_kept_is_used_again_unless_anything_changed(tmp_path, data):
    run = tmp_path / "run"
    first = prepare_pairs(data, run, seed=1)
    first.codec.save(run / "codec")
    (kept,) = (run / "data").iterdir()
    stamp = (kept / "train" / "lines").stat().st_mtime_ns
    again = prepare_pairs(data, run, seed=1, codec=type(first.codec).load(run / "codec"))
    assert (kept / "train" / "lines").stat().st_mtime_ns == stamp
    assert rows(again.train.store) == rows(first.train.store)
    assert again.report == first.report and again.summary == first.summary

    right = rows(first.train.store)
    (kept / "train" / "target.pieces").write_bytes(b"\x00" * 100)  # damaged: made again
    assert rows(prepare_pairs(data, run, 1, first.codec).train.store) == right

    orphan = run / "data" / f".partial-{os.uname().nodename}-999999999-x"
    orphan.mkdir()
    with open(Path(data.folder) / "train.ko", "a") as ko, open(Path(data.folder) / "train.en", "a") as en:
        ko.write("개 더\n")
        en.write("more dogs\n")
    changed = prepare_pairs(data, run, 1, first.codec)
    assert len(changed.train.store) == 201
    assert [p.name for p in (run / "data").iterdir()] != [kept.name] and len(list((run / "data").iterdir())) == 1


def test_a_full_disk_is_said_and_nothing_half_made_stays(tmp_path, data, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("qkv.data.store.StoreWriter.add", full)
    with pytest.raises(DataError, match=r"cannot be written .*No space left.*MB are free"):
        prepare_pairs(data, tmp_path / "run", seed=1)
    assert not list((tmp_path / "run" / "data").iterdir())
    monkeypatch.undo()
    assert len(prepare_pairs(data, tmp_path / "run", seed=1).train.store) == 200


def test_a_damaged_store_is_found(tmp_path, data):
    prepared = prepare_pairs(data, tmp_path / "run", seed=1)
    (kept,) = (tmp_path / "run" / "data").iterdir()
    raw = bytearray((kept / "train" / "source.pieces").read_bytes())
    raw[7] ^= 1
    (kept / "train" / "source.pieces").write_bytes(raw)
    with pytest.raises(DataError, match=r"source\.pieces has changed"):
        PairStore(kept / "train")
    assert len(prepared.dev)


def test_without_dev_some_of_train_is_held_out(tmp_path, data):
    (Path(data.folder) / "dev.ko").unlink()
    (Path(data.folder) / "dev.en").unlink()
    prepared = prepare_pairs(data, tmp_path / "run", seed=1)
    lines = set(prepared.train.store.lines.tolist())
    assert len(prepared.dev_texts) == 10 and len(lines) == 190
    assert lines | set(prepared.dev_texts) == set(range(1, 201)) and not lines & set(prepared.dev_texts)
    assert any("held out" in line for line in prepared.report)
    parallel(tmp_path / "tiny", "train", *korean(3))
    with pytest.raises(DataError, match="too few"):
        prepare_pairs(PairFiles(train=str(tmp_path / "tiny" / "train"), source="ko", target="en"), tmp_path / "r", 1)


def test_over_long_pairs_are_dropped_by_pieces(tmp_path, data):
    from dataclasses import replace

    with open(Path(data.folder) / "train.ko", "a") as ko, open(Path(data.folder) / "train.en", "a") as en:
        ko.write("개\n")
        en.write("dogs " * 30 + "\n")
    prepared = prepare_pairs(replace(data, max_length=20), tmp_path / "run", seed=1)
    assert len(prepared.train.store) == 200
    assert any("1 pairs of more than 20 pieces, dropped" in line and "train.ko:201" in line for line in prepared.report)


def test_separate_vocabularies_and_a_sample(tmp_path, data):
    from dataclasses import replace

    prepared = prepare_pairs(replace(data, joint=False, learn_from=50, words=5000), tmp_path / "run", seed=1)
    codec = prepared.codec
    assert not codec.joint and codec.source.size != codec.target.size
    lines = "\n".join(prepared.report)
    assert "for ko (5,000 were asked for; the text gives no more), learned from 50 of 200 pairs" in lines
    with pytest.raises(ConfigError, match="too small"):
        prepare_pairs(replace(data, words=40), tmp_path / "other", seed=1)
