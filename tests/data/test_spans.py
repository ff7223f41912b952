"""Spans and the tags that spell them: one rule for every sequence of tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.data.spans import Span, find_scheme, irregular, spans_of, spelled

LETTERS = st.sampled_from(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC"))])
BIO = st.lists(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]), max_size=12)


@pytest.mark.parametrize(
    "tags, spans",
    [
        ("O B-X I-X O", [(1, 3, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("I-X I-X O I-Y", [(0, 2, "X"), (3, 4, "Y")]),  # IOB1, and I after O
        ("B-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),  # another kind begins a span
        ("S-X S-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X E-X I-X", [(0, 2, "X"), (2, 3, "X")]),  # after an end nothing goes on
        ("B-X I-X B-Y E-Y", [(0, 2, "X"), (2, 4, "Y")]),
        ("", []),
    ],
)
def test_the_rule_of_repair(tags, spans):
    assert spans_of(tags.split()) == [Span(*span) for span in spans]


@given(st.lists(LETTERS, max_size=12))
def test_spelling_spans_gives_them_back_in_both_schemes(tags):
    spans = spans_of(tags)
    for scheme in ("bio", "iobes"):
        again = spelled(spans, len(tags), scheme)
        assert spans_of(again) == spans
        assert irregular(again, scheme) == []


def test_what_is_out_of_order_is_named():
    assert irregular(["O", "I-X", "B-X", "I-Y", "O"], "bio") == [1, 3]
    assert irregular(["B-X", "O", "S-X", "B-X", "E-X"], "iobes") == [0]
    assert irregular(["NOUN", "VERB"], "plain") == []


def test_schemes_are_told_by_their_tags():
    assert find_scheme(["O", "B-X", "I-X"]) == "bio"
    assert find_scheme(["O", "B-X", "E-X"]) == "iobes"
    assert find_scheme(["NOUN", "VERB"]) == "plain"
    assert find_scheme(["B-X", "NOUN"]) == "plain"
    assert find_scheme(["O", "O"]) == "plain"


@given(st.lists(st.tuples(BIO, st.data()), min_size=1, max_size=4))
def test_scores_are_those_of_seqeval(drawn):
    metrics = pytest.importorskip("seqeval.metrics")
    from qkv.tasks.tag_scores import span_scores

    true = [tags for tags, _ in drawn if tags]
    said = [data.draw(st.lists(LETTERS, min_size=len(t), max_size=len(t))) for t, data in drawn if t]
    if not true:
        return
    scores = span_scores(true, said)
    for name in ("f1", "precision", "recall"):
        theirs = getattr(metrics, f"{name}_score")
        assert scores[name] == pytest.approx(theirs(true, said, zero_division=0))
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(true, said))
    if any(spans_of(tags) for tags in (*true, *said)):
        assert scores["macro_f1"] == pytest.approx(metrics.f1_score(true, said, average="macro", zero_division=0))
