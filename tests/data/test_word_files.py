"""Files of word vectors: all formats, what is wrong with them, and gensim on the other side."""

import gzip

import numpy as np
import pytest

from qkv.data.word_files import FORMATS, read_vectors, write_vectors
from qkv.errors import DataError

WORDS = ["the", "왕", "</s>", "3.14", "a-b"]
ROWS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_what_is_written_is_read_to_the_bit(tmp_path, form, packed):
    write_vectors(tmp_path / "v", WORDS, ROWS, form)
    path = tmp_path / f"v{packed}"
    if packed:
        path.write_bytes(gzip.compress((tmp_path / "v").read_bytes()))
    words, rows, said = read_vectors(path)
    assert words == WORDS and np.array_equal(rows, ROWS) and not said
    assert read_vectors(path, limit=2)[0] == WORDS[:2]


def test_blanks_inside_of_a_word(tmp_path):
    """GloVe's 840B has such lines: ``. . . 0.1 ...`` and an address with a blank."""
    words = ["plain", ". . .", "at name@domain.com", "1 2"]
    write_vectors(tmp_path / "g", words, ROWS[:4], "glove")
    found, rows, _ = read_vectors(tmp_path / "g")
    assert found == words and np.array_equal(rows, ROWS[:4])
    with pytest.raises(DataError, match="has a blank"):
        write_vectors(tmp_path / "w", words, ROWS[:4], "word2vec")


@pytest.mark.parametrize("form", ["word2vec", "word2vec-binary"])
def test_a_cut_off_file_is_named(tmp_path, form):
    write_vectors(tmp_path / "v", WORDS, ROWS, form)
    whole = (tmp_path / "v").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: -len(whole) // 3])
    with pytest.raises(DataError, match=r"cut"):
        read_vectors(tmp_path / "cut")


@pytest.mark.parametrize(("text", "message"), [
    ("", "holds no vectors"),
    ("hello\n", "no word with numbers"),
    ("a 1 2 3\nb 1 2\n", ":2: the line has no word and 3 numbers"),
    ("a 1 2 3\nb 1 nan 2\n", "not finite"),
])  # fmt: skip
def test_what_is_no_such_file(tmp_path, text, message):
    (tmp_path / "v").write_text(text)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "v")


def test_a_word_that_stands_twice(tmp_path):
    (tmp_path / "v").write_text("a 1 2\na 3 4\nb 5 6\n")
    words, rows, said = read_vectors(tmp_path / "v")
    assert words == ["a", "b"] and rows[0].tolist() == [1, 2] and "1 words stand twice" in said[0]


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_ours_and_we_read_gensims(tmp_path, binary):
    gensim = pytest.importorskip("gensim.models")
    write_vectors(tmp_path / "ours", WORDS, ROWS, "word2vec-binary" if binary else "word2vec")
    theirs = gensim.KeyedVectors.load_word2vec_format(tmp_path / "ours", binary=binary)
    assert theirs.index_to_key == WORDS and np.array_equal(theirs.vectors, ROWS)
    theirs.save_word2vec_format(tmp_path / "theirs", binary=binary)
    words, rows, _ = read_vectors(tmp_path / "theirs")
    assert words == WORDS
    np.testing.assert_allclose(rows, ROWS, rtol=1e-6)
    write_vectors(tmp_path / "glove", WORDS, ROWS, "glove")
    bare = gensim.KeyedVectors.load_word2vec_format(tmp_path / "glove", no_header=True)
    assert bare.index_to_key == WORDS
