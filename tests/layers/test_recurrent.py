"""Recurrent parts: what torch's cells say of each text alone, whatever lies beside it in the batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from qkv.layers.attention import Attention
from qkv.layers.mask import padding
from qkv.layers.recurrent import CELLS, Carried, RecurrentDecoder, RecurrentEncoder, reverse
from qkv.layers.score import Additive, Bilinear, Dot
from samples import close, tensor

DIM = 6
seeds = st.integers(0, 999)
texts = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(lengths=texts, seed=seeds)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("both_ways", [False, True])
def test_the_encoder_says_of_each_text_what_the_cell_says_of_it_alone(cell, both_ways, lengths, seed):
    encoder = RecurrentEncoder(DIM, 2, cell, both_ways, False, 0.0)
    theirs = CELLS[cell](DIM, DIM // (1 + both_ways), 2, batch_first=True, bidirectional=both_ways)
    theirs.load_state_dict(encoder.cells.state_dict())
    vectors = tensor(seed, len(lengths), max(lengths), DIM)
    states, ended = encoder(vectors, torch.tensor(lengths))
    for i, length in enumerate(lengths):
        alone, last = theirs(vectors[i : i + 1, :length])
        close(states[i, :length], alone[0])
        for ours, other in zip(ended, last if isinstance(last, tuple) else (last,), strict=True):
            whole = other[:, 0] if not both_ways else torch.cat([other[0::2, 0], other[1::2, 0]], -1)
            close(ours[:, i], whole)


@given(lengths=texts, seed=seeds)
def test_reading_backward_is_reading_the_reversed_text_and_states_stay_with_their_words(lengths, seed):
    forward, backward = (RecurrentEncoder(DIM, 1, "lstm", False, way, 0.0) for way in (False, True))
    backward.load_state_dict(forward.state_dict())
    vectors, sizes = tensor(seed, len(lengths), max(lengths), DIM), torch.tensor(lengths)
    states, ended = backward(vectors, sizes)
    for i, length in enumerate(lengths):
        alone, last = forward(vectors[i : i + 1, :length].flip(1), torch.tensor([length]))
        close(states[i, :length], alone[0].flip(0))
        close(ended[1][:, i], last[1][:, 0])


@given(lengths=st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_reversing_leaves_padding_on_the_right_and_twice_is_nothing(lengths):
    values = torch.arange(len(lengths) * 5).view(-1, 5)
    sizes = torch.tensor(lengths)
    turned = reverse(values, sizes)
    for row, back, length in zip(values.tolist(), turned.tolist(), lengths, strict=True):
        assert back == row[:length][::-1] + row[length:]
    assert torch.equal(reverse(turned, sizes), values)


@pytest.mark.parametrize("score", [Dot, lambda: Bilinear(DIM), lambda: Additive(DIM)], ids=["dot", "bilinear", "mlp"])
def test_all_steps_at_once_are_the_steps_one_after_another(score):
    layer = Attention(DIM, score=score(), project=False, between=("target", "source"))
    decoder = RecurrentDecoder(DIM, 2, "lstm", layer, "luong", "none", 0.0)
    memory, mask = layer.remember(tensor(0, 3, 4, DIM)), padding(torch.tensor([4, 1, 2]), 4)
    carried = Carried.begin((tensor(2, 2, 3, DIM), tensor(3, 2, 3, DIM)))
    vectors = tensor(4, 3, 5, DIM)
    whole = decoder(vectors, memory, mask, carried)
    for place in range(5):
        carried = decoder.step(vectors[:, place : place + 1], memory, mask, carried)
        close(carried.said[:, 0], whole[:, place])


def test_the_state_is_joined_with_what_it_saw_and_projected_back():
    layer = Attention(DIM, score=Dot(), project=False)
    decoder = RecurrentDecoder(DIM, 1, "gru", layer, "luong", "none", 0.0)
    read, vectors = tensor(0, 1, 4, DIM), tensor(1, 1, 3, DIM)
    carried = Carried.begin((tensor(2, 1, 1, DIM),))
    states, _ = decoder.cells(vectors, carried.cells[0][:, :, 0])
    weights = (states[0] @ read[0].T).softmax(-1)
    by_hand = torch.tanh(decoder.join(torch.cat([weights @ read[0], states[0]], -1)))
    close(decoder(vectors, layer.remember(read), padding(torch.tensor([4]), 4), carried)[0], by_hand)


def test_in_bahdanaus_order_the_last_state_looks_and_the_cell_reads_what_it_saw():
    layer = Attention(DIM, score=Additive(DIM), project=False)
    decoder = RecurrentDecoder(DIM, 1, "gru", layer, "bahdanau", "none", 0.0)
    read, vectors = tensor(0, 1, 4, DIM), tensor(1, 1, 1, DIM)
    start = tensor(2, 1, 1, DIM)
    seen = layer(start, layer.remember(read))
    states, _ = decoder.cells(torch.cat([vectors, seen], -1), start)
    by_hand = torch.tanh(decoder.join(torch.cat([seen, states], -1)))
    found = decoder(vectors, layer.remember(read), padding(torch.tensor([4]), 4), Carried.begin((start,)))
    close(found, by_hand)


def test_an_untouched_text_of_no_tokens_leaves_a_zero_vector():
    encoder = RecurrentEncoder(DIM, 1, "lstm", True, False, 0.0)
    _, ended = encoder(tensor(0, 2, 3, DIM), torch.tensor([3, 0]))
    assert all((each[:, 1] == 0).all() and (each[:, 0] != 0).any() for each in ended)


def test_each_cell_is_torchs_own():
    assert CELLS == {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
