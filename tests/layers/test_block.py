"""Blocks are the formulas of their papers, and a past gives what one pass gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from qkv.errors import ConfigError
from qkv.layers import block
from qkv.layers.attention import Attention
from qkv.layers.block import ACTIVATIONS, DecoderBlock, EncoderBlock, FeedForward, Past, Residual
from qkv.layers.mask import CAUSAL, Mask, padding
from qkv.layers.norm import NORMS
from samples import close, tensor

DIM = 8
ORDERS = pytest.mark.parametrize("order", ["pre", "post"])
EVERY_NORM = pytest.mark.parametrize("norm", sorted(NORMS))


def decoder_block(order: str = "post", norm: str = "layer") -> DecoderBlock:
    return DecoderBlock(
        Attention(DIM, 2), Attention(DIM, 2), FeedForward(DIM, 16), lambda: Residual(DIM, order, norm)
    ).eval()  # fmt: skip


@pytest.mark.parametrize(
    ("activation", "function"), {"relu": torch.relu, "gelu": nn.functional.gelu, "swish": nn.functional.silu}.items()
)
def test_feed_forward_is_two_linear_layers_with_an_activation_between(activation, function):
    layer, states = FeedForward(DIM, 16, activation), tensor(0, 2, 3, DIM)
    hidden = function(states @ layer.expand.weight.T + layer.expand.bias)
    close(layer(states), hidden @ layer.reduce.weight.T + layer.reduce.bias)
    assert activation in ACTIVATIONS


def test_post_norms_the_sum_and_pre_norms_what_goes_in():
    states = tensor(0, 2, 3, DIM)
    for order, formula in {
        "post": lambda norm: norm(states + torch.sin(states)),
        "pre": lambda norm: states + torch.sin(norm(states)),
    }.items():
        residual = Residual(DIM, order)
        close(residual(states, torch.sin), formula(residual.norm))


def test_an_unknown_order_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"order 'pots' of the norm is unknown. Did you mean 'post'"):
        Residual(DIM, "pots")


def test_dropout_drops_the_layers_output_and_never_what_goes_past_it():
    residual, states = Residual(DIM, "pre", dropout=0.99), tensor(0, 50, 4, DIM)
    kept = residual(states, torch.ones_like) - states
    assert (kept.abs() < 1e-5).float().mean() > 0.9
    assert not torch.equal(residual(states, torch.ones_like), residual(states, torch.ones_like))
    close(residual.eval()(states, torch.ones_like), states + 1)


@ORDERS
@EVERY_NORM
def test_an_encoder_block_is_figure_one_left(order, norm):
    block = EncoderBlock(Attention(DIM, 2), FeedForward(DIM, 16), lambda: Residual(DIM, order, norm)).eval()
    states, mask = tensor(0, 2, 5, DIM), padding(torch.tensor([5, 3]), 5)
    first, second = block.attention_residual.norm, block.feed_forward_residual.norm
    assert first is not second
    if order == "post":
        half = first(states + block.attention(states, mask=mask))
        whole = second(half + block.feed_forward(half))
    else:
        half = states + block.attention(first(states), mask=mask)
        whole = half + block.feed_forward(second(half))
    close(block(states, mask), whole)


@ORDERS
@EVERY_NORM
@settings(max_examples=8)
@given(seed=st.integers(0, 999), tokens=st.integers(1, 6))
def test_a_decoder_block_token_by_token_gives_what_one_pass_gives(order, norm, seed, tokens):
    block, states, memory = decoder_block(order, norm), tensor(seed, 2, tokens, DIM), tensor(seed + 1, 2, 4, DIM)
    mask, past = padding(torch.tensor([4, 2]), 4), Past()
    with torch.no_grad():
        remembered = block.cross.remember(memory)
        steps = [block(states[:, i : i + 1], remembered, mask, past=past) for i in range(tokens)]
        close(torch.cat(steps, 1), block(states, memory, mask))
    assert past.tokens.key.shape[-2] == tokens


@given(seed=st.integers(0, 999))
def test_two_ways_on_from_one_past_do_not_see_each_other(seed):
    block, memory = decoder_block(), tensor(seed, 1, 4, DIM)
    common, ways = tensor(seed + 1, 1, 2, DIM), tensor(seed + 2, 1, 2, DIM)
    past = Past(block.attention.remember(common))
    own = Mask(torch.tensor([[[[1, 1, 1, 0], [1, 1, 0, 1]]]]).bool())
    with torch.no_grad():
        together = block(ways, memory, mask=own, past=past)
        for i in range(2):
            alone = block(ways[:, i : i + 1], memory, past=Past(block.attention.remember(common)), mask=CAUSAL)
            close(together[:, i : i + 1], alone)


@pytest.mark.parametrize("activation", block.ACTIVATIONS)
def test_what_no_gradient_needs_is_overwritten_and_parted_and_the_answer_is_the_same(activation, monkeypatch):
    feed_forward, states = FeedForward(6, 10, activation), tensor(0, 3, 7, 6)
    before, wanted = states.clone(), feed_forward(states).detach()
    with torch.no_grad():
        close(feed_forward(states), wanted)
        monkeypatch.setattr(block, "WIDE", 40)
        close(feed_forward(states), wanted)
    assert torch.equal(states, before)
