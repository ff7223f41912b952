"""Tagged sentences: columns, repairs, characters, windows, and the way back to words and characters."""

import unicodedata
from itertools import pairwise

import pytest
import regex
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.data.kind import find_kind
from qkv.data.report import Report
from qkv.data.spans import spans_of
from qkv.data.tags import TagFiles, check
from qkv.data.tags_codec import NONE, TagCodec, make_tags, words_of
from qkv.data.tags_doctor import by_characters, examine_all
from qkv.data.tags_prepare import prepare_tags
from qkv.data.tags_reading import read_words
from qkv.data.texts_prepare import learn_vocabulary
from qkv.errors import DataError
from qkv.tasks.task import Position

TEXT = "Anna\tB-PER\nLee\tI-PER\nsaw\tO\nOslo\tB-LOC\n.\tO\n\nIt\tO\nrained\tO\n\n"


def sentences(tmp_path, text, name="train.conll", **which):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return examine_all(TagFiles(folder=str(tmp_path), **which), every=True)


def test_words_and_tags_are_read_in_sentences(tmp_path):
    report, parts, scheme = sentences(tmp_path, TEXT)
    assert find_kind(str(tmp_path)) == find_kind(str(tmp_path / "train.conll")) == "tags"
    assert scheme == "bio" and not report.refused
    assert [(one.words, one.lines) for one in parts["train"]] == [
        (("Anna", "Lee", "saw", "Oslo", "."), (1, 2, 3, 4, 5)),
        (("It", "rained"), (7, 8)),
    ]


def test_columns_by_number_by_name_and_of_conllu(tmp_path):
    conllu = (
        "# sent_id = 1\n# text = Anna's here\n1-2\tAnna's\t_\t_\n1\tAnna\tAnna\tPROPN\tNNP\n2\t's\tbe\tAUX\tVBZ\n"
        "2.1\tnot\tnot\tPART\tRB\n3\t#here\there\tADV\tRB\n\n"
    )
    _, parts, scheme = sentences(tmp_path, conllu, "train.conllu")
    assert scheme == "plain"
    assert [(one.words, one.tags) for one in parts["train"]] == [(("Anna", "'s", "#here"), ("PROPN", "AUX", "ADV"))]
    (tmp_path / "train.conllu").unlink()
    _, parts, _ = sentences(tmp_path, "id\tform\tpos\n1\tAnna\tNN\n2\tran\tVB\n", word="form", tag="pos")
    assert parts["train"][0].words == ("Anna", "ran")
    _, parts, _ = sentences(tmp_path, "NN x Anna\nVB x ran\n-DOCSTART- x O\n\n", word="-1", tag="1")
    assert [(one.words, one.tags) for one in parts["train"]] == [(("Anna", "ran"), ("NN", "VB"))]


def test_a_missing_column_is_refused_with_its_line(tmp_path):
    report, _, _ = sentences(tmp_path, "Anna\tB-PER\nLee\nsaw\tO\n")
    assert str(report.refused[0]).startswith(f"{tmp_path}/train.conll:2: the line 'Lee' has 1 column; expected 2 or ")
    report, _, _ = sentences(tmp_path, "Anna\nLee\n")
    assert "train.conll:1: the line 'Anna' has 1 column, and 1 more lines are so" in str(report.refused[0])
    with pytest.raises(DataError, match="there is no column 'pos'"):
        sentences(tmp_path, TEXT, tag="pos")
    report, _, _ = sentences(tmp_path, "")
    assert "the file is empty" in str(report.refused[0])


def test_what_is_out_of_order_is_repaired_and_named(tmp_path):
    report, parts, _ = sentences(tmp_path, "a\tO\nb\tI-X\nc\tI-X\nd\tB-Y\ne\tI-X\n")
    (found,) = [f for f in report.findings if "out of the order" in f.kind]
    assert [place.split(":")[1] for place in found.examples] == ["2", "5"]
    assert found.action == "mended" and "I-X after O" in found.examples[0]
    assert parts["train"][0].tags == ("O", "B-X", "I-X", "B-Y", "B-X")


def test_a_tag_that_train_never_showed_is_refused_with_its_line(tmp_path):
    (tmp_path / "dev.conll").write_text("Oslo\tB-LOC\nx\tB-LCO\n")
    report, _, _ = sentences(tmp_path, TEXT)
    assert "dev.conll:2: dev has the tag 'LCO', which train has not. Did you mean 'LOC'?" in str(report.refused[0])
    report = check(TagFiles(train=str(tmp_path / "dev.conll").replace("dev", "train")))
    assert not report.refused and "spans (bio): LOC (1), PER (1)" in "\n".join(report.remarks)


def test_sentences_that_straddle_are_dropped_from_train(tmp_path):
    (tmp_path / "test.conll").write_text("It\tO\nrained\tO\n")
    report, parts, _ = sentences(tmp_path, TEXT)
    assert report.count("train", "sentences that are also in test") == 1 and len(parts["train"]) == 1


def characters(words: str, tags: str) -> str:
    return "".join(f"{c}\t{t}\n" for c, t in zip(words, tags.split(), strict=True)) + "\n"


KOREAN = characters("이상득이 왔다", "B-PS I-PS I-PS O O O O") + characters("새 누리당", "B-OG I-OG I-OG I-OG I-OG")


def test_a_file_of_characters_is_known_by_its_blanks(tmp_path):
    _, parts, scheme = sentences(tmp_path, KOREAN)
    assert by_characters(parts["train"]) and scheme == "bio"
    assert parts["train"][1].words == ("새", " ", "누", "리", "당")
    assert not by_characters(sentences(tmp_path, "a\tX\nb\tY\n")[1]["train"])


TAGS = ("O", "B-PS", "I-PS", "B-OG", "I-OG")


def codec(texts, characters=False, longest=32, kind="wordpiece"):
    class Settings:
        lowercase = strip_accents = False
        words, vocabulary = 400, kind

    return TagCodec(learn_vocabulary(iter(texts), 10, Settings, Report()), TAGS, "bio", characters, longest)


def test_characters_become_pieces_and_come_back(tmp_path):
    _, parts, _ = sentences(tmp_path, KOREAN)
    made = codec(["이상득이 왔다", "새 누리당"] * 9, characters=True)
    for one in parts["train"]:
        text, places = made.layout(one.words)
        assert text == "".join(one.words)
        windows = made.windows(text, places)
        carried = [unit for window in windows for unit in window.units if unit != NONE]
        assert carried == sorted(set(carried))
        said = made.said(windows, made.labels(windows, one.tags), [word == " " for word in one.words])
        if len(windows[0].encoded) - 2 == len(text.replace(" ", "")):
            assert tuple(said) == one.tags
    # A piece of several characters speaks for all of them, and a blank lies in a span that goes on.
    text, places = made.layout("새 누리당")
    windows = made.windows(text, places)
    pieces = [i for i, unit in enumerate(windows[0].units) if unit != NONE]
    answers = [[0] * len(windows[0].units)]
    for i, piece in enumerate(pieces):
        answers[0][piece] = 3 if i == 0 else 4
    assert made.said(windows, answers, [c == " " for c in text]) == ["B-OG", "I-OG", "I-OG", "I-OG", "I-OG"]


def test_a_span_that_begins_inside_a_piece_is_learned_from_the_next_piece():
    made = codec(["ab cd"] * 20, characters=True, kind="word")
    text, places = made.layout("ab cd")
    windows = made.windows(text, places)
    # Pieces are whole words: the units that carry a tag are a and c.
    tags = ["O", "B-PS", "I-PS", "I-PS", "I-PS"]
    labels = made.labels(windows, tags)
    assert [made.tags[i] for i in labels[0] if i != NONE] == ["O", "B-PS"]
    assert made.said(windows, labels, [c == " " for c in text]) == ["O", "O", "O", "B-PS", "I-PS"]


def test_a_word_carries_its_tag_on_its_first_piece():
    made = codec(["unseen"] * 9)
    words = ["Unheard-of", "names", "🦤", "here"]
    text, places = made.layout(words)
    assert [text[start:end] for start, end in places] == words
    (window,) = made.windows(text, places)
    assert [unit for unit in window.units if unit != NONE] == [0, 1, 2, 3]
    for token, unit in enumerate(window.units):
        if unit != NONE:
            assert window.encoded.spans[token][0] == places[unit][0]
    tags = ["B-PS", "I-PS", "O", "B-OG"]
    assert made.said([window], made.labels([window], tags), [False] * 4) == tags


@pytest.mark.parametrize("longest", [8, 11, 40])
def test_a_long_sentence_is_read_in_windows_that_answer_each_word_once(longest):
    made = codec(["one two three four five"] * 9, longest=longest)
    words = ["one", "two", "three", "four", "five"] * 6
    text, places = made.layout(words)
    windows = made.windows(text, places)
    assert all(len(window.encoded) <= longest for window in windows)
    assert sorted(unit for window in windows for unit in window.units if unit != NONE) == list(range(30))
    tags = [made.tags[i % 5] for i in range(30)]
    said = made.said(windows, made.labels(windows, tags), [False] * 30)
    assert spans_of(said) == spans_of(tags)


def test_windows_judge_a_piece_where_most_is_seen_around_it():
    made = codec(["a b c d e f g h"] * 9, longest=8)
    text, places = made.layout(list("abcdefghabcdefgh"))
    windows = made.windows(text, places)
    for one, other in pairwise(windows):
        last = max(i for i, unit in enumerate(one.units) if unit != NONE)
        first = min(i for i, unit in enumerate(other.units) if unit != NONE)
        assert len(one.encoded) - 1 - last >= 1 and first >= 1
        assert abs((len(one.encoded) - 1 - last) - first) <= 1


def test_words_of_raw_text_and_words_of_a_file(tmp_path):
    text = "Lee's  3.5 wins!"
    assert [text[a:b] for a, b in words_of(text)] == ["Lee", "'", "s", "3", ".", "5", "wins", "!"]
    (tmp_path / "words.conll").write_text("Anna\tX\nran\n\nOslo\n")
    assert list(read_words(tmp_path / "words.conll")) == [("Anna", "ran"), ("Oslo",)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("गया था।", ["गया", "था", "।"]),
        ("cafe\u0301, e\u0301te\u0301", ["cafe\u0301", ",", "e\u0301te\u0301"]),
        ("🇰🇷🇯🇵 🇰x", ["🇰🇷", "🇯🇵", "🇰", "x"]),
        ("👩\u200d🔬!👍🏽😀😀", ["👩\u200d🔬", "!", "👍🏽", "😀", "😀"]),
        ("می\u200cخواهم.", ["می\u200cخواهم", "."]),
        ("❤\ufe0fa 1\ufe0f\u20e3", ["❤\ufe0f", "a", "1\ufe0f\u20e3"]),
        (" \u0301a", ["\u0301", "a"]),
        ("한글 \u1112\u1161\u11ab", ["한글", "\u1112\u1161\u11ab"]),
    ],
)
def test_what_hangs_on_a_letter_stays_with_it(text, words):
    assert [text[a:b] for a, b in words_of(text)] == words


PIECES = [
    "a", "e", "é", "ग", "य", "ा", "्", "\u0301", "\u20dd", "\ufe0f", "\u200d", "\u200c", "🇰", "🇷", "👩", "🔬", "🏽", "1",
    ".", "-", "한", "\u1112", "\u1161", "_", " ", "\t",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_each_grapheme_is_in_one_word_and_no_word_begins_with_a_mark(text):
    words = words_of(text)
    for cluster in regex.finditer(r"\X", text):
        begin = cluster.start() + len(cluster[0]) - len(cluster[0].lstrip())  # a mark may hang on a blank
        holders = [(a, b) for a, b in words if a < cluster.end() and b > begin]
        assert len(holders) == (begin < cluster.end())
        assert all(a <= begin and cluster.end() <= b for a, b in holders)
    for begin, _ in words:
        assert not unicodedata.category(text[begin]).startswith("M") or begin == 0 or text[begin - 1] in " \t"


def test_tags_that_can_be_said():
    assert make_tags([["O", "B-X"], ["B-A", "I-A"]], "bio") == ("O", "B-A", "I-A", "B-X", "I-X")
    assert make_tags([["NN", "VB", "NN"]], "plain") == ("NN", "VB")


@pytest.fixture
def prepared(tmp_path):
    text = "".join(f"Anna\tS-PER\nmet\tO\nnumber\tB-NUM\n{i}\tE-NUM\n\n" for i in range(40))
    (tmp_path / "train.conll").write_text(text)
    return prepare_tags(TagFiles(folder=str(tmp_path), batch=4), tmp_path, seed=1)


def test_sentences_are_prepared(prepared, tmp_path):
    assert prepared.codec.scheme == "iobes" and len(prepared.dev_sentences) == 4
    batch = prepared.train.batch(Position())
    assert batch.targets == 16 and batch.labels.shape == batch.tokens.shape
    again = prepare_tags(TagFiles(folder=str(tmp_path), batch=4), tmp_path, 1, prepared.codec)
    assert torch.equal(again.train.batch(Position(2, 3)).tokens, prepared.train.batch(Position(2, 3)).tokens)
    prepared.codec.save(tmp_path / "codec")
    assert TagCodec.load(tmp_path / "codec").fingerprint() == prepared.codec.fingerprint()


def test_spans_that_pieces_cut_are_counted(tmp_path):
    more = "".join(characters(f"이상득이 {i}", "B-PS I-PS I-PS O O O") for i in range(9))
    (tmp_path / "train.conll").write_text(KOREAN + more)
    found = prepare_tags(TagFiles(folder=str(tmp_path), vocabulary="word", keep_duplicates=True), tmp_path, 0)
    assert any("spans whose borders lie inside a piece" in line for line in found.report)
    found = prepare_tags(TagFiles(folder=str(tmp_path)), tmp_path, 0)
    assert any("(character)" in line for line in found.report)
    assert not any("inside a piece" in line for line in found.report)
