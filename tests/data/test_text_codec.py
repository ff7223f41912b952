"""Texts and pairs to what an encoder reads, and back to the raw characters."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.data.normalise import Normaliser, clean, raw_spans
from qkv.data.subwords import Subwords
from qkv.data.text_codec import TextCodec
from qkv.errors import DataError, RunError

LINES = ["서울은 한국의 수도이다.", "나는 학생이다", "the dogs sleep soundly", "a café, naïve"] * 9
KINDS = ("wordpiece", "bpe", "unigram")
HARD = ["</s>", "[MASK]", "[SEP]", "힣", "e\u0301", "한", "\r", "\u3000", "İ", "ß", "Ａ", "don't", "👨\u200d👩"]
TEXT = st.one_of(st.text(max_size=12), st.lists(st.sampled_from([*HARD, " ", *LINES[:4]]), max_size=6).map("".join))


@pytest.fixture(scope="module", params=KINDS)
def codec(request) -> TextCodec:
    return TextCodec(Subwords.learn(LINES, 420, request.param, Normaliser(True, True)))


@settings(max_examples=150)
@given(text=TEXT)
def test_spans_follow_the_raw_text(codec, text):
    encoded = codec.encode(text)
    assert len(encoded.ids) == len(encoded.segments) == len(encoded.spans)
    assert encoded.spans[0] == encoded.spans[-1] == (0, 0)
    spans = encoded.spans[1:-1]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert list(spans) == sorted(spans)
    assert codec.decode(encoded.ids) == codec.normalise(text)
    covered = {i for start, end in spans for i in range(start, end)}
    letters = {i for i, c in enumerate(text) if c.isalnum()}
    assert letters <= covered


@settings(max_examples=150)
@given(text=TEXT)
def test_what_is_encoded_holds_no_mark_of_the_text(codec, text):
    """BL-33: whatever is typed, there is one [CLS] and one [SEP], where they belong."""
    ids = codec.encode(text).ids
    assert ids[0] == codec.cls and ids[-1] == codec.sep
    assert not {codec.pad, codec.cls, codec.sep, codec.mask} & set(ids[1:-1])


@settings(max_examples=150)
@given(text=TEXT, normalise=st.sampled_from([clean, Normaliser(True), Normaliser(True, True)]))
def test_each_normalised_character_stands_somewhere(text, normalise):
    spans, whole = raw_spans(normalise, text), normalise(text)
    assert len(spans) == len(whole)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


def test_hangul_is_whole_under_lower_case_and_without_accents(codec):
    """BL-31: composed or not, the same ids; the text comes back composed; a Latin accent is still taken off."""
    composed, apart = (unicodedata.normalize(form, "한국어 Café") for form in ("NFC", "NFD"))
    one, other = codec.encode(composed), codec.encode(apart)
    assert one.ids == other.ids
    assert codec.decode(other.ids) == "한국어 cafe"
    for encoded, raw in ((one, composed), (other, apart)):
        shown = [unicodedata.normalize("NFC", raw[start:end]) for start, end in encoded.spans[1:-1]]
        assert set("한국어é") <= set("".join(shown)) and shown[-1][-1] == "é"


def test_pairs_have_segments_and_share_what_room_there_is(codec):
    whole = codec.encode("the dogs sleep", "나는 학생이다")
    split = whole.ids.index(codec.sep)
    assert whole.ids.count(codec.sep) == 2 and whole.ids[-1] == codec.sep
    assert whole.segments == (0,) * (split + 1) + (1,) * (len(whole) - split - 1)
    assert codec.encode("the dogs sleep").segments == (0,) * len(codec.encode("the dogs sleep"))
    for longest in range(5, len(whole) + 3):
        cut = codec.encode("the dogs sleep", "나는 학생이다", longest)
        assert len(cut) == min(longest, len(whole)) and cut.ids.count(codec.sep) == 2


@pytest.mark.parametrize("longest", [3, 4, 7, 12, 40])
@pytest.mark.parametrize("overlap", [None, 0, 2])
def test_windows_lose_nothing(codec, longest, overlap):
    text = " ".join(LINES[:4])
    whole = codec.encode(text)
    windows = codec.windows(text, longest, overlap)
    seen = {}
    for window in windows:
        assert len(window) <= longest and window.ids[0] == codec.cls and window.ids[-1] == codec.sep
        for i, (piece, span) in enumerate(zip(window.ids[1:-1], window.spans[1:-1], strict=True)):
            assert seen.setdefault(window.first + i, (piece, span)) == (piece, span)
    assert [seen[i] for i in range(len(seen))] == list(zip(whole.ids[1:-1], whole.spans[1:-1], strict=True))
    assert len(codec.windows("", longest)) == 1
    with pytest.raises(DataError, match="window of 2 tokens"):
        codec.windows(text, 2)


def test_holes_are_marks_and_what_stands_beside_them_is_as_it_was(codec):
    text = "서울은 한국의 [MASK]이다."
    encoded = codec.encode_holes(text)
    hole = encoded.ids.index(codec.mask)
    assert encoded.ids.count(codec.mask) == 1 and text[slice(*encoded.spans[hole])] == "[MASK]"
    assert codec.decode(encoded.ids[:hole]) == "서울은 한국의" and codec.decode(encoded.ids[hole:]) == "이다."
    first = encoded.ids[hole + 1]
    assert not codec.opens[first]  # no blank comes between the hole and what it is joined to
    beside = codec.encode_holes("[MASK] 서울은 [MASK]")
    assert beside.ids[1] == beside.ids[-2] == codec.mask
    assert beside.ids[2:-2] == codec.encode("서울은").ids[1:-1]


def test_words_open_where_a_blank_is(codec):
    ids = codec.encode("soundly dogs, xyz").ids
    opening = [codec.decode([i]) for i in ids[1:-1] if codec.opens[i]]
    assert len(opening) == 3
    assert codec.opens[codec.cls] and codec.opens[codec.mask]


def test_saved_and_loaded_it_is_the_same(codec, tmp_path):
    codec.save(tmp_path / "codec")
    loaded = TextCodec.load(tmp_path / "codec")
    assert loaded.fingerprint() == codec.fingerprint() and loaded.size == codec.size
    for line in [*LINES[:4], *HARD]:
        assert loaded.encode(line) == codec.encode(line)
    (tmp_path / "codec" / "codec.json").write_text('{"version": 1, "start": 1, "sides": {}}')
    with pytest.raises(RunError, match="not one of texts"):
        TextCodec.load(tmp_path / "codec")


def test_a_long_word_is_no_trouble():
    """A WordPiece tries every end of a piece: a word of 100,000 letters must not take their square."""
    codec = TextCodec(Subwords.learn(LINES, 420, "wordpiece"))
    text = "서울" * 50_000
    assert codec.decode(codec.pieces_of([text])[0]) == text
