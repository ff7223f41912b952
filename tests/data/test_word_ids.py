"""Text for word vectors: read once, never cut, whatever it is packed in; which words are kept, and in what order."""

import gzip
import io
import lzma
import sys

import numpy as np
import pytest
import zstandard

from qkv.data import word_text
from qkv.data.cooccurrence import count_pairs, counts_of
from qkv.data.word_ids import read_text, store_sentences
from qkv.data.word_text import WordText
from qkv.data.words import Cut, Words
from qkv.errors import ConfigError, DataError

TEXT = "a b a c\n\nb a  d\na\n"


def sentences(words, text) -> list[list[str]]:
    begins = [0, *text.ends[:-1]]
    return [[words.words[i] for i in text.ids[begin:end]] for begin, end in zip(begins, text.ends, strict=True)]


def read(tmp_path, text=TEXT, name="t.txt", **how):
    data = text.encode() if isinstance(text, str) else text
    (tmp_path / name).write_bytes(data)
    return read_text(WordText(str(tmp_path / name), **{"min_count": 1, **how}), tmp_path / "ids")


@pytest.mark.parametrize(("name", "pack"), [
    ("t.txt", bytes), ("t.txt.gz", gzip.compress), ("t.xz", lzma.compress), ("t.zst", zstandard.compress),
])  # fmt: skip
def test_plain_and_packed(tmp_path, name, pack):
    words, text = read(tmp_path, pack(TEXT.encode()), name)
    assert list(words.words) == ["a", "b", "c", "d"] and words.counts.tolist() == [4, 2, 1, 1]
    assert sentences(words, text) == [["a", "b", "a", "c"], ["b", "a", "d"], ["a"]]
    assert text.summary["lines"] == 4


def test_standard_input_and_folders(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_text("x y\n")
    (tmp_path / "in" / "a.txt.gz").write_bytes(gzip.compress(b"z\n"))
    (tmp_path / "in" / ".hidden.txt").write_text("no\n")
    words, text = read_text(WordText(str(tmp_path / "in"), min_count=1), tmp_path / "one")
    assert sentences(words, text) == [["z"], ["x", "y"]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    words, text = read_text(WordText("-", min_count=1), tmp_path / "two")
    assert len(text.ids) == 8
    again, _ = read_text(WordText("-", min_count=1), tmp_path / "two")  # it cannot be read again: it is kept
    assert list(again.words) == list(words.words)


def test_tables_have_a_column(tmp_path):
    words, _ = read(tmp_path, "label\ttext\n1\tgood film\n0\tbad film\n", "t.tsv")
    assert list(words.words) == ["film", "bad", "good"]


@pytest.mark.parametrize("piece", [64, 1 << 20])
def test_a_line_of_25000_tokens_is_one_sentence_of_25000(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(word_text, "PIECE", piece)
    words, text = read(tmp_path, " ".join(f"w{i % 50}" for i in range(25_000)) + "\nlast line")
    assert len(text.ids) == 25_002 and text.ends.tolist() == [25_000, 25_002]
    assert words.counts.sum() == 25_002


def test_a_word_longer_than_a_piece_stays_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(word_text, "PIECE", 16)
    words, _ = read(tmp_path, "x" * 100 + " y\n")
    assert sorted(words.words, key=len) == ["y", "x" * 100]


def test_hangul_is_composed_and_marks_go(tmp_path):
    """BL-29 and BL-31 of words: one word, however it was typed."""
    words, text = read(tmp_path, "\ufeff왕\r\n\u110b\u116a\u11bc\r\nwo\0rd word\r\n")
    assert list(words.words) == ["word", "왕"] and text.ids.tolist() == [1, 1, 0, 0]


def test_patterns_and_small_letters(tmp_path):
    words, _ = read(tmp_path, "It's A dog. A DOG!\n", pattern=r"[\w']+", lowercase=True)
    assert list(words.words) == ["a", "dog", "it's"]
    with pytest.raises(ConfigError, match="no regular expression"):
        Cut("(")


def test_text_that_looks_like_a_mark_is_a_word(tmp_path):
    """``<unk>`` is what it is in the text; no id stands for unknown words."""
    words, text = read(tmp_path, "<unk> a <unk> </s>\n")
    assert words.find("<unk>") == 0 and words.counts[0] == 2 and words.find("nothing") is None
    assert len(text.ids) == 4


def test_caps_go_by_count_then_by_code_point(tmp_path):
    words, text = read(tmp_path, "d d b b c c a e e e\n", most_words=3, min_count=2)
    assert list(words.words) == ["e", "b", "c"]
    assert "the 3 most frequent" in text.summary["rule"]
    assert len(text.ids) == 7


def test_no_word_left_is_said_with_the_most_frequent(tmp_path):
    with pytest.raises(DataError, match=r"none of 4 occurs 5 times, the most frequent, 'a', 4 times. Lower"):
        read(tmp_path, min_count=5)
    with pytest.raises(DataError, match="not one word"):
        read(tmp_path, "\n \n", "e.txt")


def test_damage_is_an_error(tmp_path):
    whole = gzip.compress(TEXT.encode() * 100)
    with pytest.raises(DataError, match=r"t\.gz: cannot be read"):
        read(tmp_path, whole[:-20], "t.gz")
    with pytest.raises(DataError, match="UTF-16"):
        read(tmp_path, "a b".encode("utf-16"))
    with pytest.raises(DataError, match="there is no file"):
        read_text(WordText(str(tmp_path / "no.txt")), tmp_path / "ids")
    _, text = read(tmp_path, b"a b\n\xff\xfe\xff\nb\n", "u.txt")
    assert text.summary["dropped"] == {"undecodable lines dropped": 1}


def test_sentences_from_python(tmp_path):
    """BL-53: a generator is gone through once and kept; a string is no list of sentences."""
    words, text = store_sentences((line for line in ["a b", ["a", "two words"], ""]), tmp_path / "g", min_count=1)
    assert sentences(words, text) == [["a", "b"], ["a", "two words"]]
    with pytest.raises(DataError, match="one string was given"):
        store_sentences("a b c", tmp_path / "s")
    with pytest.raises(DataError, match="sentence 2 is 7"):
        store_sentences(["a", 7], tmp_path / "n")


def test_known_words_stay_in_their_rows(tmp_path):
    known = Words(["x", "b"], np.array([3, 4]))
    (tmp_path / "t.txt").write_text("a a b z\n")
    words, text = read_text(WordText(str(tmp_path / "t.txt"), min_count=2), tmp_path / "ids", known)
    assert list(words.words) == ["x", "b", "a"] and words.counts.tolist() == [3, 5, 2]
    assert text.ids.tolist() == [2, 2, 1]


def test_words_are_kept_and_read_back(tmp_path):
    words = Words(["a", "왕", "two words", "<unk>"], np.array([4, 3, 2, 1]), Cut(r"\w+", True))
    words.save(tmp_path / "codec")
    again = Words.load(tmp_path / "codec")
    assert list(again.words) == list(words.words) and again.counts.tolist() == [4, 3, 2, 1] and again.cut == words.cut


@pytest.mark.parametrize(("memory", "threads"), [(1 << 16, 1), (1 << 24, 1), (1 << 24, 3)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_counts_are_one_over_the_distance_however_little_memory(tmp_path, memory, threads, symmetric):
    draw = np.random.default_rng(0)
    ids, ends = draw.integers(0, 90, 4000).astype(np.uint32), np.array([1, 700, 703, 4000])
    found = count_pairs(ids, ends, 4, symmetric, tmp_path / "c", memory, threads=threads)
    counted = np.zeros((90, 90))
    for bucket in range(len(found.buckets)):
        for pair in found.bucket(bucket):
            counted[pair["word"], pair["context"]] += pair["count"]
            if symmetric and pair["word"] != pair["context"]:
                counted[pair["context"], pair["word"]] += pair["count"]
    expected, begin = np.zeros((90, 90)), 0
    for end in ends:
        for p in range(begin, end):
            for q in range(max(begin, p - 4), p):
                expected[ids[p], ids[q]] += 1 / (p - q)
                if symmetric:
                    expected[ids[q], ids[p]] += 1 / (p - q)
        begin = end
    np.testing.assert_allclose(counted, expected, rtol=1e-5, atol=1e-5)
    assert (found.pairs > 0) and (memory > 1 << 20 or len(found.buckets) > 1)
    if symmetric:
        np.testing.assert_allclose(counts_of(ids, ends, np.array([3, 8]), 4, 90), expected[[3, 8]], rtol=1e-9)


def test_a_text_is_read_again_only_if_something_is_asked_otherwise(tmp_path):
    (tmp_path / "t.txt").write_text(TEXT)
    data = WordText(str(tmp_path / "t.txt"), min_count=1)
    words, text = read_text(data, tmp_path / "ids")
    hashed = text.summary["files_hash"]
    again, text = read_text(data, tmp_path / "ids", words)  # a run that goes on brings its own words
    assert again.counts.tolist() == words.counts.tolist() and text.summary["files_hash"] == hashed
    assert len(read_text(WordText(str(tmp_path / "t.txt"), min_count=2), tmp_path / "ids")[0]) == 2
    read_text(data, tmp_path / "ids")
    (tmp_path / "t.txt").write_text(TEXT + "e\n")
    assert read_text(data, tmp_path / "ids")[1].summary["files_hash"] != hashed  # for the run to refuse
