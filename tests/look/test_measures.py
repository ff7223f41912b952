"""Entropy, distance, words, rollout: known answers worked by hand, and laws."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from traces import ENGLISH, KOREAN, a_map, cross_maps, korean_english, self_stacks, soft, texts, tokens

from qkv.axis import Tokens
from qkv.errors import RunError
from qkv.look.measures import distance, entropy, max_entropy, merge_words, rollout, rollouts
from qkv.look.record import Trace

ABC = tokens(["a"], ["b"], ["c"])


def test_entropy_is_in_nats():
    map = a_map([[1.0, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], ABC, ABC, kind="self")
    assert entropy(map)[0].tolist() == pytest.approx([0, math.log(2), math.log(3)], abs=1e-6)
    assert max_entropy(map).tolist() == pytest.approx([math.log(3)] * 3)


def test_the_most_entropy_of_a_causal_row_is_over_the_keys_that_it_may_see():
    map = a_map(soft(1, 3, 3, causal=True), ABC, ABC, kind="self", causal=True)
    assert max_entropy(map).tolist() == pytest.approx([0, math.log(2), math.log(3)], abs=1e-6)


def test_a_row_without_weight_has_no_entropy():
    map = a_map(torch.zeros(3, 3), ABC, ABC, kind="self")
    assert entropy(map).tolist() == [[0, 0, 0]]


def test_distance_counts_positions():
    map = a_map([[0, 0, 1.0], [0, 1, 0], [0.5, 0.5, 0]], ABC, ABC, kind="self")
    assert distance(map).tolist() == [[2.0, 0.0, 1.5]]


def test_distance_of_some_rows_counts_from_their_own_place():
    map = a_map([[1.0, 0, 0]], ABC, ABC, kind="self", queries=(2,))
    assert distance(map).tolist() == [[2.0]]


def test_two_texts_have_no_distance():
    with pytest.raises(RunError, match="another"):
        distance(a_map(soft(1, 6, 5), ENGLISH, KOREAN))


@given(cross_maps())
def test_entropy_is_between_none_and_the_most(map):
    assert (entropy(map) >= 0).all()
    assert (entropy(map) <= max_entropy(map) + 1e-5).all()


# --- Words -----------------------------------------------------------------------------------------------------------


def test_pieces_of_a_key_word_add_up_and_rows_of_a_query_word_are_averaged():
    query, key = tokens(["a"], ["b", "c"], start=True), tokens(["x", "y"], ["z"], end=True)
    map = a_map([[0.25, 0.25, 0.5, 0], [0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0, 0, 0, 1]], query, key)
    merged = merge_words(map)
    assert merged.query.pieces == ("<s>", "a", "bc")
    assert merged.key.pieces == ("xy", "z", "</s>")
    assert torch.allclose(merged.weights[0], torch.tensor([[0.5, 0.5, 0], [0.3, 0.3, 0.4], [0.5, 0, 0.5]]))


def test_a_word_of_which_some_rows_were_recorded_is_the_mean_of_these():
    query, key = tokens(["a", "b"], ["c"]), tokens(["x"], ["y"])
    merged = merge_words(a_map([[1.0, 0]], query, key, queries=(1,)))
    assert merged.queries == (0,) and merged.weights.tolist() == [[[1, 0]]]


def test_an_empty_row_does_not_thin_its_word():
    query, key = tokens(["a", "b"]), tokens(["x"], ["y"])
    assert merge_words(a_map([[0.0, 0], [0.25, 0.75]], query, key)).weights.tolist() == [[[0.25, 0.75]]]


@given(cross_maps())
def test_rows_of_merged_maps_sum_to_one(map):
    merged = merge_words(map)
    assert torch.allclose(merged.weights.sum(-1), torch.ones(merged.weights.shape[:2]), atol=1e-5)
    assert merged.weights.shape[1:] == (len(merged.query), len(merged.key))


@given(cross_maps())
def test_merging_twice_is_merging_once(map):
    once = merge_words(map)
    twice = merge_words(once)
    assert twice.query == once.query and twice.key == once.key
    assert torch.allclose(twice.weights, once.weights)


@given(texts(start=True, end=True))
def test_spans_of_words_slice_back_to_the_text(axis):
    merged = merge_words(a_map(soft(1, len(axis), len(axis)), axis, axis, kind="self")).query
    words = [merged.text[start:end] for start, end in merged.spans if end > start]
    assert words == axis.text.split()


# --- Rollout ---------------------------------------------------------------------------------------------------------


def test_rollout_by_hand():
    axis = tokens(["a"], ["b"])
    first = a_map([[1.0, 0], [1, 0]], axis, axis, "encoder.blocks.0.attention", "self")
    second = a_map([[0.0, 1], [0, 1]], axis, axis, "encoder.blocks.1.attention", "self")
    # (W1 + I) / 2 = [[1, 0], [.5, .5]];  (W2 + I) / 2 = [[.5, .5], [0, 1]];  their product, the second layer first:
    assert rollout([first, second]).weights.tolist() == [[[0.75, 0.25], [0.5, 0.5]]]


@given(self_stacks())
def test_rows_of_a_rollout_sum_to_one(maps):
    rolled = rollout(maps)
    assert torch.allclose(rolled.weights.sum(-1), torch.ones(1, len(rolled.query)), atol=1e-5)


@given(self_stacks())
def test_without_attention_a_rollout_is_the_identity(maps):
    size = len(maps[0].key)
    assert torch.allclose(rollout(maps, residual=1.0).weights[0], torch.eye(size), atol=1e-6)
    blind = [a_map(torch.zeros(size, size), maps[0].key, maps[0].key, kind="self")] * 2
    assert torch.allclose(rollout(blind).weights[0], torch.eye(size))


def test_the_decoder_is_followed_through_the_encoder():
    trace = korean_english()
    encoder, decoder = rollouts(trace)
    assert encoder.name == "encoder.blocks.rollout" and decoder.key == KOREAN and decoder.query == ENGLISH
    expected = trace["decoder.blocks.1.cross"][0].weights.mean(0) @ encoder.weights[0]
    assert torch.allclose(decoder.weights[0], expected, atol=1e-6)
    assert torch.allclose(decoder.weights.sum(-1), torch.ones(1, len(ENGLISH)), atol=1e-5)


def test_a_stack_with_rows_left_out_has_no_rollout():
    some = a_map(soft(1, 1, 3), ABC, ABC, "encoder.blocks.0.attention", "self", queries=(0,))
    assert rollouts(Trace({some.name: [some]})) == []
    with pytest.raises(RunError, match="every row"):
        rollout([some])
    assert rollouts(Trace()) == []


@given(st.integers(1, 4))
def test_words_without_blanks_are_one(count):
    axis = tokens(["가"] * count)
    assert merge_words(a_map(soft(1, count, count), axis, axis, kind="self")).weights.shape == (1, 1, 1)


def test_a_text_of_marks_alone():
    axis = Tokens(("<s>", "</s>"), ((0, 0), (0, 0)), "")
    merged = merge_words(a_map([[1.0, 0], [0.5, 0.5]], axis, axis, kind="self"))
    assert merged.weights.tolist() == [[[1, 0], [0.5, 0.5]]]
