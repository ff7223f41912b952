"""Neighbourhoods on a grid: who is near, and the same answers tile by tile as over the whole grid."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from qkv.layers.attention import attend
from qkv.layers.mask import Mask
from qkv.layers.near import neighbours
from qkv.layers.position import NearBias
from qkv.layers.score import ScaledDot
from samples import close, memory, tensor

HEADS, DEPTH = 2, 3


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), reach=st.integers(1, 3))
def test_a_cell_sees_those_within_reach(rows, columns, reach):
    keep = neighbours(rows, columns, reach).keep[0, 0]
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    near = [[max(abs(a - c), abs(b - d)) <= reach for c, d in cells] for a, b in cells]
    assert torch.equal(keep, torch.tensor(near))


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("rows", "columns", "reach"), [(9, 9, 1), (8, 14, 1), (6, 25, 1), (13, 15, 2), (3, 60, 2)])
def test_tiles_answer_as_the_whole_grid_does_and_so_do_gradients(rows, columns, reach, biased):
    mask = neighbours(rows, columns, reach)
    assert mask.tiles is not None
    bias = NearBias(HEADS, reach)
    query, seen = tensor(0, 2, HEADS, rows * columns, DEPTH), memory(1, 2, HEADS, rows * columns, DEPTH)
    learned = [tensor.requires_grad_() for tensor in (query, seen.key, seen.value)] + [bias.table] * biased
    upstream = tensor(3, 2, HEADS, rows * columns, DEPTH)
    answers = [
        attend(query, seen, ScaledDot(), mask=each, bias=bias(rows, columns) if biased else None)
        for each in (mask, Mask(mask.keep))
    ]
    close(*answers)
    for ours, whole in zip(*(torch.autograd.grad(answer, learned, upstream) for answer in answers), strict=True):
        close(ours, whole)


def test_the_cost_is_linear_in_the_grid():
    def products(side: int) -> int:
        query, seen = tensor(0, 1, 1, side**2, DEPTH), memory(1, 1, 1, side**2, DEPTH)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # it counts no other
            attend(query, seen, ScaledDot(), mask=neighbours(side, side, 2))
        return counter.get_total_flops()

    assert products(48) == 4 * products(24) > 0


def test_a_small_grid_is_not_cut():
    assert neighbours(5, 5, 2).tiles is None
