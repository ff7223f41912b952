"""Layers that are skipped now and then: exact in evaluation and at 0, right on average in training."""

import pytest
import torch

from qkv.layers.block import Residual
from qkv.layers.stochastic_depth import StochasticDepth, skip_rates


def test_nothing_changes_in_evaluation_and_at_zero():
    added = torch.randn(4, 3, 2)
    assert StochasticDepth(0.9).eval()(added) is added
    assert StochasticDepth(0.0).train()(added) is added


def test_an_example_is_left_out_whole_or_scaled_up():
    added = torch.rand(2000, 3, 2) + 1
    out = StochasticDepth(0.25).train()(added)
    kept = out.ne(0).flatten(1)
    assert (kept.all(1) | ~kept.any(1)).all()
    assert kept[:, 0].float().mean() == pytest.approx(0.75, abs=0.04)
    torch.testing.assert_close(out[kept[:, 0]], added[kept[:, 0]] / 0.75)


@pytest.mark.parametrize("order", ["pre", "post"])
def test_a_residual_that_always_skips_is_its_input(order):
    residual = Residual(4, order, skip=0.999999).train()
    states = torch.randn(3, 2, 4)
    out = residual(states, lambda x: x + 100)
    torch.testing.assert_close(out, states if order == "pre" else residual.norm(states))


def test_rates_grow_in_a_line():
    assert skip_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert skip_rates(0.3, 1) == [0]
