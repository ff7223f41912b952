"""Vocabularies and codecs: laws of encoding, known answers, saved and loaded, the same in every process."""

import json
import os
import random
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.data.bpe_dropout import segment
from qkv.data.codec import VOCABULARIES, Codec, Vocabulary
from qkv.data.normalise import Normaliser
from qkv.data.subwords import BYTE, END, PAD, START, Subwords, default_words
from qkv.errors import ConfigError, DataError, RunError

KINDS = ("bpe", "unigram", "word", "character", "wordpiece")
WORDS = (
    *("the", "dog", "cat", "runs", "sleeps", "eats", "an", "apple", "red", "green", "café", "naïve"),
    *("나는", "너는", "학생이다", "선생님이다", "고양이를", "보았다", "사과를", "먹었다"),
)
HARD = (
    *("</s>", "<s>", "<pad>", "[MASK]", "[SEP]", "[CLS]", "<unk>", "<0x41>", "<0xEA>", "▁", "▁▁the", "Ġthe", "##ing"),
    *("@@ the", "\U0010ff41\U0010ffea", chr(BYTE), "\ue000", "\ufffd", "힣뷁", "👨\u200d👩\u200d👧 family", "e\u0301"),
    *("don't", "’s", "'", "12.5%"),
)
TEXT = st.one_of(st.text(), st.sampled_from(HARD), st.lists(st.sampled_from([*WORDS, *HARD]), max_size=6).map(" ".join))


def corpus(lines=300):
    chance = random.Random(1)
    return [" ".join(chance.choices(WORDS, k=6)) + chance.choice(".?!") for _ in range(lines)]


@pytest.fixture(scope="module")
def vocabularies():
    return {kind: Subwords.learn(corpus(), 400, kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(text=TEXT)
def test_decoding_what_was_encoded_is_the_normalised_text(vocabularies, kind, text):
    vocabulary = vocabularies[kind]
    (ids,) = vocabulary.encode([text])
    assert vocabulary.decode(ids) == vocabulary.normalise(text)
    assert not set(ids) & {PAD, START, END}
    assert all(3 <= i < vocabulary.size for i in ids)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(text=TEXT)
def test_spans_slice_back_to_the_text(vocabularies, kind, text):
    vocabulary = vocabularies[kind]
    (ids,) = vocabulary.encode([text])
    tokens = vocabulary.tokens([START, *ids, END])
    assert tokens.text == vocabulary.normalise(text)
    assert tokens.spans[0] == (0, 0) and tokens.spans[-1] == (len(tokens.text),) * 2
    spans = tokens.spans[1:-1]
    assert all(0 <= begin < end <= len(tokens.text) for begin, end in spans)
    assert list(spans) == sorted(spans)
    covered = {place for begin, end in spans for place in range(begin, end)}
    assert covered == {place for place, character in enumerate(tokens.text) if character != " "}
    for piece, (begin, end) in zip(tokens.pieces[1:-1], spans, strict=True):
        if "<0x" not in piece and piece != "▁":
            assert tokens.text[begin:end] in (piece, piece[1:])
    assert sum(len(word.positions) for word in tokens.words()) == len(tokens)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_ids_have_text_and_spans(vocabularies, seed):
    """A model may put bytes together that are no character, blanks after blanks, marks in the middle."""
    vocabulary = vocabularies["bpe"]
    chance = random.Random(seed)
    nasty = [PAD, START, END, *range(3, 3 + 230)]
    ids = chance.choices(nasty, k=chance.randrange(12))
    tokens = vocabulary.tokens(ids)
    assert tokens.text == vocabulary.decode(ids)
    assert len(tokens.text.splitlines()) <= 1 and tokens.text == " ".join(tokens.text.split())
    assert len(tokens.pieces) == len(tokens.spans) == len(ids)
    assert all(0 <= begin <= end <= len(tokens.text) for begin, end in tokens.spans)
    assert [begin for begin, _ in tokens.spans] == sorted(begin for begin, _ in tokens.spans)
    assert sum(len(word.positions) for word in tokens.words()) == len(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_text_like_marks_stays_text(vocabularies, kind):
    """BL-33: the literal strings of end, mask, pad and separator."""
    vocabulary = vocabularies[kind]
    codec = Codec(vocabulary, vocabulary, START)
    text = "the </s> dog <pad> [MASK] [SEP] <s> <0x41>"
    (source,), (target,) = codec.encode_source([text]), codec.encode_target([text])
    assert source.count(END) == 1 and source[-1] == END and PAD not in source and START not in source
    assert target.count(END) == 1 and target[-1] == END and target.count(START) == 1 and target[0] == START
    assert codec.decode(target) == text


@pytest.mark.parametrize("kind", KINDS)
def test_composed_and_decomposed_hangul_have_the_same_ids(kind):
    """BL-31, with lower-casing and accent stripping on."""
    composed = "한국어"
    vocabulary = Subwords.learn(["한국어 공부 café"] * 5, 400, kind, Normaliser(lowercase=True, strip_accents=True))
    both = vocabulary.encode([composed + " Café", unicodedata.normalize("NFD", composed + " Café")])
    assert both[0] == both[1]
    assert vocabulary.decode(both[0]) == composed + " cafe"
    assert not any(piece.startswith("<0x") for piece in vocabulary.pieces(both[0]))


def test_marks_of_files_never_reach_a_piece(tmp_path):
    """BL-29: BOM, CRLF and NUL; the first word has the id that it has elsewhere; saved and loaded alike."""
    lines = ["\ufeffthe dog runs\r", "a d\x00og and the dog\r", "the cat\r"] * 4
    vocabulary = Subwords.learn(lines, 400)
    assert vocabulary.encode(["\ufeffdog\r"]) == vocabulary.encode(["dog"])
    assert vocabulary.encode(["\ufeffdog the"])[0][:1] == vocabulary.encode(["the dog"])[0][-1:]
    assert not [p for p in vocabulary.pieces(range(vocabulary.size)) if set(p) & set("\r\n\x00\ufeff")]
    Codec(vocabulary, vocabulary, START).save(tmp_path / "codec")
    loaded = Codec.load(tmp_path / "codec").source
    assert loaded.size == vocabulary.size
    assert loaded.pieces(range(loaded.size)) == vocabulary.pieces(range(loaded.size))


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_codecs_are_the_same(tmp_path, vocabularies, kind):
    one, other = vocabularies[kind], vocabularies["character"]
    for codec in (Codec(one, one, START), Codec(one, other, PAD)):
        codec.save(tmp_path / "codec")
        loaded = Codec.load(tmp_path / "codec")
        texts = [*corpus(20), *HARD]
        assert loaded.joint == codec.joint and (loaded.start, loaded.pad, loaded.end) == (codec.start, PAD, END)
        assert (loaded.source.size, loaded.target.size) == (codec.source.size, codec.target.size)
        assert loaded.encode_source(texts) == codec.encode_source(texts)
        assert loaded.encode_target(texts) == codec.encode_target(texts)
        assert loaded.fingerprint() == codec.fingerprint()
        assert isinstance(loaded.source, Vocabulary)


def test_a_codec_that_is_not_whole_is_refused(tmp_path, vocabularies):
    with pytest.raises(RunError, match="codec"):
        Codec.load(tmp_path / "nowhere")
    codec = Codec(vocabularies["bpe"], vocabularies["bpe"], START)
    for file, content in (
        ("codec.json", "{"),
        ("codec.json", json.dumps({"version": 9, "start": 1, "sides": {}})),
        ("codec.json", json.dumps({"version": 1, "start": 1, "sides": {"joint": "os:system"}})),
        ("joint/tokenizer.json", "{}"),
    ):
        codec.save(tmp_path / "codec")
        (tmp_path / "codec" / file).write_text(content)
        with pytest.raises(RunError):
            Codec.load(tmp_path / "codec")
    assert all(name.startswith("qkv.") for name in VOCABULARIES.values())


LEARN = "import sys; sys.path.insert(0, {here!r}); import test_vocabulary; print(test_vocabulary.learned())"


def learned() -> list[list[str]]:
    return [(v := Subwords.learn(corpus(), 350, kind)).pieces(range(v.size)) for kind in KINDS]


def test_every_process_learns_the_same():
    code = LEARN.format(here=os.path.dirname(__file__))
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == f"{learned()}\n"


def test_bpe_dropout_is_a_pure_function_of_the_seed(vocabularies):
    vocabulary, texts = vocabularies["bpe"], [*corpus(30), *HARD]
    plain = vocabulary.encode(texts)
    once = vocabulary.encode(texts, dropout=0.3, seed=(1, 2, 3))
    assert once == vocabulary.encode(texts, dropout=0.3, seed=(1, 2, 3))
    assert once != vocabulary.encode(texts, dropout=0.3, seed=(1, 2, 4))
    assert once != plain
    assert [vocabulary.decode(ids) for ids in once] == [vocabulary.normalise(text) for text in texts]
    mapped = [vocabulary._map(vocabulary.normalise(text)) for text in texts]
    assert vocabulary._drop(mapped, 0.0, random.Random(0)) == plain  # which is the library's own BPE
    with pytest.raises(ConfigError, match="bpe"):
        vocabularies["word"].encode(["the dog"], dropout=0.1)


def test_bpe_dropout_known_answers():
    merges = {(1, 2): (0, 4), (4, 3): (1, 5), (2, 3): (2, 6)}
    assert segment([1, 2, 3], merges, 0.0, random.Random(0)) == [5]
    assert segment([1, 2, 3], merges, 1.0, random.Random(0)) == [1, 2, 3]
    counts = {}
    chance = random.Random(0)
    for _ in range(20_000):
        cut = tuple(segment([1, 2, 3], merges, 0.5, chance))
        counts[cut] = counts.get(cut, 0) + 1
    # First step: (1,2) survives 1/2; else (2,3) survives 1/4; else none 1/4. After (1,2): (4,3) survives 1/2.
    share = {(5,): 0.25, (4, 3): 0.25, (1, 6): 0.25, (1, 2, 3): 0.25}
    assert {cut: pytest.approx(count / 20_000, abs=0.015) for cut, count in counts.items()} == share


def test_known_pieces():
    vocabulary = Subwords.learn(["the dog runs."] * 50 + ["나는 학생이다."] * 50, 400)
    (ids,) = vocabulary.encode(["the dogs 나는 뷁"])
    assert vocabulary.pieces([START, *ids, END]) == [
        "<s>", "▁the", "▁dog", "s", "▁나는", "▁", "<0xEB>", "<0xB7>", "<0x81>", "</s>",
    ]  # fmt: skip
    tokens = vocabulary.tokens(ids)
    assert tokens.spans == ((0, 3), (4, 7), (7, 8), (9, 11), (12, 13), (12, 13), (12, 13), (12, 13))
    assert [word.text for word in tokens.words()] == ["the", "dogs", "나는", "뷁"]


def test_word_vocabulary_spells_unknown_words():
    vocabulary = Subwords.learn(["the dog runs"] * 5, 400, "word")
    known, unknown = vocabulary.encode(["the dog", "the god"])
    assert vocabulary.pieces(known) == ["▁the", "▁dog"]
    assert vocabulary.pieces(unknown) == ["▁the", "▁", "g", "o", "d"]


def test_sizes():
    assert [default_words(pairs) for pairs in (10, 5000, 20_001, 2_000_000)] == [1000, 2000, 8000, 16_000]
    assert all(Subwords.learn(corpus(), 300, kind).size <= 300 for kind in KINDS)
    with pytest.raises(ConfigError, match="too small"):
        Subwords.learn(corpus(), 100)
    with pytest.raises(DataError, match="no text"):
        Subwords.learn(["", " \x00"], 400)
    assert Subwords.learn(iter(corpus()), 400).size == Subwords.learn(corpus(), 400).size
