"""Word alignment: the two readings, the choice of layer and heads, AER and Pharaoh lines."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from traces import a_map, a_trace, cross_maps, soft, tokens

from qkv.axis import Grid
from qkv.errors import DataError, RunError
from qkv.look.alignment import (
    Gold,
    Reader,
    alignment_error_rate,
    as_predicted,
    choose_reader,
    format_pharaoh,
    parse_pharaoh,
    read_pharaoh,
    word_weights,
)
from qkv.look.record import Map, Trace

SOURCE = tokens(["x", "y"], ["z"], end=True)
TARGET = tokens(["a"], ["b", "c"], start=True)


def test_a_word_is_read_where_it_comes_in_or_where_it_is_predicted():
    # rows <s> a b c; columns x y z </s>
    map = a_map([[0.1, 0.2, 0.7, 0], [0.6, 0.3, 0, 0.1], [0, 0, 1, 0], [0, 0.5, 0.5, 0]], TARGET, SOURCE)
    assert word_weights(map, "shifted")[0] == pytest.approx(np.array([[0.9, 0], [0.25, 0.75]]))
    assert word_weights(map, "unshifted")[0] == pytest.approx(np.array([[0.3, 0.7], [0.45, 0.5]]))
    trace = Trace({map.name: [map]})
    assert Reader(map.name, (0,), "shifted").links(trace) == [(0, 0), (1, 1)]
    assert Reader(map.name, (0,), "unshifted").links(trace) == [(1, 0), (1, 1)]


@given(cross_maps())
def test_naming_rows_by_their_prediction_is_the_unshifted_reading(map):
    assert np.array_equal(word_weights(map, "unshifted"), word_weights(as_predicted(map), "shifted"))


def test_weak_links_and_marks_are_dropped():
    map = a_map([[0, 0, 0, 1.0], [0.1, 0, 0, 0.9], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]], TARGET, SOURCE)
    trace = Trace({map.name: [map]})
    assert Reader(map.name, (0,)).links(trace) == [(0, 0), (1, 1)]
    assert Reader(map.name, (0,), threshold=0.2).links(trace) == [(1, 1)]
    assert Reader(map.name, (0,), "unshifted").links(trace) == [(1, 1)]  # "a" is predicted from </s> alone


def test_a_word_without_pieces_or_rows_has_no_link_and_keeps_the_count():
    cut = tokens(["a"], ["b"], start=True)
    cut = type(cut)(cut.pieces, cut.spans, cut.text + " never cut into pieces")
    map = a_map(soft(1, 1, 4), cut, SOURCE, queries=(2,))
    weights = word_weights(map)
    assert weights.shape == (1, 6, 2)
    assert Reader(map.name, (0,)).links(Trace({map.name: [map]}))[0][1] == 1
    assert len(Reader(map.name, (0,)).links(Trace({map.name: [map]}))) == 1


def test_a_reader_says_what_it_misses():
    map = a_map(soft(2, 4, 4), TARGET, SOURCE)
    trace = Trace({map.name: [map]})
    with pytest.raises(RunError, match=r"no layer 'decoder.blocks.0.cros'.*Did you mean"):
        Reader("decoder.blocks.0.cros", (0,)).links(trace)
    with pytest.raises(RunError, match="heads"):
        Reader(map.name, (2,)).links(trace)
    image = Map("x", "cross", soft(1, 4, 4), TARGET, Grid(2, 2, (8, 8)), (0,), (0, 1, 2, 3))
    with pytest.raises(RunError, match="Grid"):
        Reader("x", (0,)).links(Trace({"x": [image]}))


def test_a_reader_survives_json():
    reader = Reader("decoder.blocks.1.cross", (0, 2), "unshifted", agreement=0.5)
    assert Reader.from_json(reader.to_json()) == reader


# --- Choosing ----------------------------------------------------------------------------------------------------


def dev_set(sentences: int = 60, seed: int = 0) -> tuple[list[Trace], list[Gold]]:
    """A language of 20 words and its word-for-word translation in reverse order. Layer 1, head 2 looks at the word
    that came in, layer 0 everywhere, layer 2 at the word to come: just as sharp, just as much in agreement with itself.
    """
    draw = random.Random(seed)
    traces, gold = [], []
    for i in range(sentences):
        words = draw.sample(range(20), draw.randint(3, 6))
        source = tokens(*([f"k{w}"] for w in words), end=True)
        target = tokens(*([f"e{w}"] for w in reversed(words)), start=True)
        trace = a_trace(source, target, layers=3, heads=3, seed=i)
        n = len(words)
        true, ahead = torch.zeros(n + 1, n + 1), torch.zeros(n + 1, n + 1)
        for row in range(n + 1):
            true[row, n - row] = 1.0
            ahead[row, n - 1 - row if row < n else n] = 1.0
        trace.maps["decoder.blocks.1.cross"][0].weights[2] = 0.8 * true + 0.2 / (n + 1)
        trace.maps["decoder.blocks.2.cross"][0].weights[:] = 0.9 * ahead + 0.1 / (n + 1)
        traces.append(trace)
        gold.append(Gold(frozenset((n - 1 - t, t) for t in range(n)), frozenset()))
    return traces, gold


def test_agreement_finds_the_head_that_gold_would_choose():
    traces, gold = dev_set()
    for reader in (choose_reader(traces, reading="shifted"), choose_reader(traces, gold, reading="shifted")):
        assert reader.layer == "decoder.blocks.1.cross" and 2 in reader.heads
        links = [reader.links(trace) for trace in traces]
        assert alignment_error_rate(links, [g.sure for g in gold], [g.possible for g in gold]) == 0


def test_the_reading_is_chosen_too_where_it_is_not_given():
    traces, gold = dev_set()
    ahead = [
        Trace({name: maps for name, maps in trace.items() if name != "decoder.blocks.1.cross"}, trace.notes)
        for trace in traces
    ]
    for reader in (choose_reader(ahead), choose_reader(ahead, gold)):
        assert reader.layer == "decoder.blocks.2.cross" and reader.reading == "unshifted"


def test_choosing_needs_something_to_choose_from():
    with pytest.raises(DataError):
        choose_reader([])
    axis = tokens(["a"])
    alone = a_map([[1.0]], axis, axis, "encoder.blocks.0.attention", "self")
    with pytest.raises(RunError, match="cross"):
        choose_reader([Trace({alone.name: [alone]})])
    with pytest.raises(DataError, match="2 gold"):
        choose_reader(dev_set(1)[0], [Gold(frozenset(), frozenset())] * 2)


# --- AER ---------------------------------------------------------------------------------------------------------


def test_aer_by_hand():
    # A = {00, 11, 22}, S = {00, 11}, P = S + {12}: |A & S| = 2, |A & P| = 2, 1 - 4 / (3 + 2) = 0.2
    assert alignment_error_rate([{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (1, 1)}], [{(1, 2)}]) == pytest.approx(0.2)
    # a possible link is no error, and a sure one is missed: 1 - (0 + 1) / (1 + 1)
    assert alignment_error_rate([{(0, 1)}], [{(0, 0)}], [{(0, 1)}]) == pytest.approx(0.5)
    # counted over the corpus, not averaged: 1 - (2 + 0) / (1 + 1 + 1 + 3)
    a, s = [{(0, 0)}, {(0, 0)}], [{(0, 0)}, {(1, 1), (2, 2), (3, 3)}]
    assert alignment_error_rate(a, s, [set(), set()]) == pytest.approx(1 - 2 / 6)
    assert alignment_error_rate([], [], []) == 0


links = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)))


@given(st.lists(st.tuples(links, links, links), max_size=4))
def test_aer_lies_between_0_and_1(corpus):
    a, s, p = ([sentence[i] for sentence in corpus] for i in range(3))
    assert 0 <= alignment_error_rate(a, s, p) <= 1
    assert alignment_error_rate(s, s, p) == 0


def test_aer_wants_gold_for_every_sentence():
    with pytest.raises(DataError, match="1 sentences against gold of 2"):
        alignment_error_rate([set()], [set()] * 2, [set()] * 2)


# --- Pharaoh -----------------------------------------------------------------------------------------------------


def test_a_pharaoh_line():
    assert parse_pharaoh("0-0 1p2\n") == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
    assert parse_pharaoh("") == Gold(frozenset(), frozenset())
    assert format_pharaoh([(1, 0), (0, 0)], [(1, 2), (0, 0)]) == "0-0 1-0 1p2"


@given(links, links)
def test_a_pharaoh_line_is_read_as_written(sure, possible):
    assert parse_pharaoh(format_pharaoh(sure, possible)) == Gold(frozenset(sure), frozenset(sure | possible))


def test_a_bad_link_is_named_with_its_place(tmp_path):
    path = tmp_path / "dev.align"
    path.write_text("0-0\n\n1-1 2~2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev.align:3: no alignment link: '2~2'"):
        read_pharaoh(path)
    path.write_bytes(b"\xef\xbb\xbf0-0\r\n\r\n")
    assert [len(gold.sure) for gold in read_pharaoh(path)] == [1, 0]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="UTF-8"):
        read_pharaoh(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_pharaoh(tmp_path / "missing")
