"""Dropout: the right share of zeros, the rest scaled up, the same for the same seed."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.layers.dropout import Dropout
from samples import close, tensor

shapes = st.lists(st.integers(0, 7), max_size=3).map(tuple)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_the_share_of_zeros_is_p_and_the_mean_stays(p):
    count = 100_000
    dropped = Dropout(p)(torch.ones(count))
    assert abs((dropped == 0).float().mean() - p) < 5 * math.sqrt(p * (1 - p) / count)
    close(dropped[dropped > 0], torch.full_like(dropped[dropped > 0], 1 / (1 - p)), 1e-3)


def test_numbers_that_share_a_draw_are_dropped_independently():
    kept = (Dropout(0.3)(torch.ones(400_000)) > 0).float().reshape(-1, 4)
    together = kept.T.cov()
    close(together, torch.eye(4) * 0.21, 5e-3)


@given(shape=shapes, p=st.sampled_from([0.0, 0.25, 0.99, 0.999999]), seed=st.integers(0, 999))
def test_any_shape_keeps_its_shape_and_each_number_is_zero_or_scaled(shape, p, seed):
    values = tensor(seed, *shape) + 5
    dropped = Dropout(p)(values)
    assert dropped.shape == values.shape
    scaled = dropped / values
    assert (scaled[scaled != 0] == scaled.max()).all() if scaled.any() else True
    assert torch.equal(Dropout(p).eval()(values), values)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_precision_stays(dtype):
    assert Dropout(0.5)(torch.ones(8, dtype=dtype)).dtype == dtype


def test_the_gradient_is_dropped_where_the_number_was():
    values = torch.ones(1000, requires_grad=True)
    dropped = Dropout(0.4)(values)
    dropped.sum().backward()
    assert torch.equal(values.grad, dropped.detach())


def test_the_seed_settles_what_is_dropped_whatever_the_layout():
    def once(values):
        torch.manual_seed(3)
        return Dropout(0.5)(values)

    values = tensor(0, 6, 7)
    assert torch.equal(once(values), once(values.T.contiguous().T))
    torch.manual_seed(4)
    assert not torch.equal(once(values), Dropout(0.5)(values))
