"""Cleaning of text and cutting into lines."""

import gzip
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.data.lines import LONGEST_LINE, open_lines, raw_lines, read_lines, windows
from qkv.data.normalise import Normaliser, clean, faults
from qkv.errors import DataError

KOREAN = "한국어"  # BL-31: 3 composed code points, 8 decomposed
SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@given(st.text())
def test_clean_gives_one_composed_line_and_is_idempotent(text):
    line = clean(text)
    assert clean(line) == line
    assert len(line.splitlines()) <= 1
    assert unicodedata.is_normalized("NFC", line)
    assert "  " not in line and line == line.strip()
    assert not [c for c in line if unicodedata.category(c) == "Cc" or c == "\ufeff"]


@given(st.text(), st.booleans(), st.booleans())
def test_normaliser_is_idempotent(text, lowercase, strip_accents):
    normalise = Normaliser(lowercase, strip_accents)
    assert normalise(normalise(text)) == normalise(text)


@given(st.text())
def test_without_faults_only_blanks_are_mended(text):
    if not faults(text):
        assert clean(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "cleaned", "kinds"),
    [
        ("\ufeffa dog", "a dog", ("byte-order mark",)),
        ("a dog\r", "a dog", ("CRLF",)),
        ("a d\x00og", "a dog", ("control character",)),
        ("a\u2028dog\x0cruns", "a dog runs", ("line separator",)),
        (unicodedata.normalize("NFD", KOREAN), KOREAN, ("not composed",)),
        ("a\t\u00a0 dog\u3000", "a dog", ()),
        ("\ud800a", "a", ("control character",)),
        ("<pad> </s> ▁ <0x41>", "<pad> </s> ▁ <0x41>", ()),
    ],
)
def test_what_clean_does(text, cleaned, kinds):
    assert clean(text) == cleaned
    assert faults(text) == kinds


def test_accents_are_stripped_and_hangul_stays_whole():
    normalise = Normaliser(lowercase=True, strip_accents=True)
    assert len(KOREAN) == 3 and len(unicodedata.normalize("NFD", KOREAN)) == 8
    assert normalise("Café " + KOREAN) == normalise(unicodedata.normalize("NFD", "Café " + KOREAN)) == "cafe " + KOREAN
    assert normalise("が") == "が"  # a kana's voicing is no accent


@pytest.mark.parametrize("separator", SEPARATORS)
def test_lines_are_split_at_newlines_only(separator):
    raw = f"one{separator}still one\ntwo".encode()
    assert [line.text for line in read_lines(io.BytesIO(raw))] == ["one still one", "two"]


@given(st.lists(st.binary(max_size=20).filter(lambda raw: b"\n" not in raw), max_size=10))
def test_line_in_is_line_out(lines):
    raw = b"".join(line + b"\n" for line in lines)
    read = list(read_lines(io.BytesIO(raw)))
    assert len(read) == len(lines)
    assert [line.number for line in read] == list(range(1, len(lines) + 1))
    assert all(bool(line.text) == (line.unusable is None) for line in read)


def test_unusable_lines_keep_their_place():
    raw = b"one\n \n\xff\xfe bad\n" + b"x" * (LONGEST_LINE + 1) + b"\n\x00\nlast"
    read = list(read_lines(io.BytesIO(raw)))
    assert [line.unusable for line in read] == [None, "blank", "undecodable", "over-long", "blank", None]
    assert read[-1].text == "last"


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.txt: is no text; it looks like a PNG picture"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "looks like a PDF"),
        (bytes(range(256)), "looks binary"),
        ("학생".encode("utf-16"), "is UTF-16; expected lines of text in UTF-8"),
    ],
)
def test_what_is_no_text_is_said_to_be_what_it_looks_like(tmp_path, head, what):
    (tmp_path / "a.txt").write_bytes(head)
    with open_lines(tmp_path / "a.txt") as stream, pytest.raises(DataError, match=what):
        list(read_lines(stream))
    with gzip.open(tmp_path / "a.txt.gz", "wb") as packed:
        packed.write(head)
    with open_lines(tmp_path / "a.txt.gz") as stream, pytest.raises(DataError, match=r"a\.txt\.gz.*" + what[-20:]):
        list(read_lines(stream))


@pytest.mark.parametrize(
    "text", ["BZh and %PDF and RIFF", "RIFF", "\x1b[31mred\x1b[0m\ta", "학생" * 999, "a\0b" * 3, ""]
)
def test_odd_text_is_text(tmp_path, text):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with open_lines(tmp_path / "a.txt") as stream:
        assert len(list(read_lines(stream))) == (1 if text else 0)


def test_an_endless_line_is_skipped_in_pieces():
    raw = io.BytesIO(b"x" * 1000 + b"\nnext\n" + b"y" * 1000)
    assert list(raw_lines(raw, longest=10)) == [None, b"next", None]
    assert list(raw_lines(io.BytesIO(b"0123456789\n"), longest=10)) == [b"0123456789"]


def test_windows():
    assert list(windows(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(windows([], 2)) == []
