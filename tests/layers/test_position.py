"""Positions: known values, both layouts, and the two aims of the sinusoids."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from qkv.errors import DataError
from qkv.layers.embed import TokenEmbedding
from qkv.layers.position import Learned, Sinusoidal, sinusoids
from samples import close

LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "halves"])
widths = st.sampled_from([4, 6, 16, 64, 512])


def test_the_papers_layout_alternates_sine_and_cosine():
    known = [[0, 1, 0, 1], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]]
    close(sinusoids(2, 4), torch.tensor(known), 1e-7)


def test_marians_layout_puts_all_sines_first():
    known = [[0, 0, 1, 1], [math.sin(1), math.sin(0.01), math.cos(1), math.cos(0.01)]]
    close(sinusoids(2, 4, "halves"), torch.tensor(known), 1e-7)


@pytest.mark.parametrize("dim", [1, 5])
@LAYOUTS
def test_an_odd_width_has_one_sine_more(dim, layout):
    at_the_start = sinusoids(1, dim, layout)[0]
    assert (at_the_start == 0).sum() == dim // 2 + 1
    assert (at_the_start == 1).sum() == dim // 2


@LAYOUTS
@pytest.mark.parametrize("dim", [4, 16, 64, 512])
def test_no_two_positions_are_alike(layout, dim):
    table = sinusoids(512, dim, layout).double()
    assert (torch.cdist(table, table) + 9 * torch.eye(512)).min() > 0.01


@LAYOUTS
@pytest.mark.parametrize("dim", [16, 64, 512])
def test_neighbours_are_more_alike_than_far_ones_and_only_the_distance_counts(layout, dim):
    table = nn.functional.normalize(sinusoids(512, dim, layout).double())
    alike = table @ table.T
    at_distance = alike[0]  # of positions 0 and d
    for position in (1, 7, 100, 511):
        distance = (torch.arange(512) - position).abs()
        close(alike[position], at_distance[distance], 1e-6)
    assert 1 > at_distance[1] > at_distance[2] > at_distance[3]
    assert at_distance[1] > at_distance[2:].max()
    assert at_distance[:4].mean() > at_distance[16:].max()


@given(dim=widths)
def test_the_period_grows_with_the_channel_from_two_pi_to_ten_thousand_times_that(dim):
    sines = sinusoids(4, dim)[:, 0::2].double()  # at position 1 a slow sine is its own frequency, nearly
    periods = 2 * math.pi / sines[1].asin()
    assert (periods.diff() > 0).all()
    assert periods[0] == pytest.approx(2 * math.pi, rel=1e-6)
    assert periods[-1] == pytest.approx(2 * math.pi * 10000 ** (1 - 2 / dim), rel=1e-4)


@LAYOUTS
@given(first=st.integers(0, 700), count=st.integers(0, 300))
def test_any_length_comes_out_of_one_endless_table(layout, first, count):
    rows = Sinusoidal(8, layout)(first, count)
    close(rows, sinusoids(1000, 8, layout)[first : first + count], 1e-7)


def test_a_table_that_grew_during_a_search_can_be_trained_with():
    embedding = TokenEmbedding(nn.Embedding(5, 8), Sinusoidal(8), join="concatenated")
    long = torch.zeros(1, 300, dtype=torch.long)
    with torch.inference_mode():
        embedding(long)
    embedding(long).sum().backward()
    assert embedding.words.weight.grad.isfinite().all()


def test_the_table_is_no_weight():
    assert not Sinusoidal(8).state_dict()


def test_learned_positions_refuse_a_longer_text_and_say_what_to_do():
    positions = Learned(8, longest=10)
    assert positions(4, 6).shape == (6, 8)
    with pytest.raises(DataError, match=r"a text of 11 tokens is longer than the 10 learned positions. Shorten it"):
        positions(4, 7)


@given(first=st.integers(0, 9), count=st.integers(1, 9))
def test_tokens_one_by_one_get_the_vectors_that_they_get_together(first, count):
    for join in ("added", "concatenated"):
        embedding = TokenEmbedding(nn.Embedding(5, 8), Sinusoidal(8), join=join)
        tokens = torch.arange(2 * count).reshape(2, count) % 5
        together = embedding(tokens, first)
        close(together[:, -1:], embedding(tokens[:, -1:], first + count - 1))
        abreast = embedding(tokens, first, abreast=True)  # the hypotheses of a search: all at one position
        for i in range(count):
            close(abreast[:, i : i + 1], embedding(tokens[:, i : i + 1], first))


def test_token_vectors_are_scaled_by_the_root_of_the_width_before_positions_are_added():
    embedding = TokenEmbedding(nn.Embedding(5, 16), Sinusoidal(16))
    tokens = torch.tensor([[3, 1]])
    close(embedding(tokens)[0], embedding.words.weight[[3, 1]] * 4 + sinusoids(2, 16))
    assert not torch.equal(embedding(tokens), TokenEmbedding(embedding.words, None)(tokens))
