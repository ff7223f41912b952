"""Positions on a grid: resampled by the rule of the weights' origin, and relative ones."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from qkv.errors import DataError
from qkv.layers.embed import Patches
from qkv.layers.position import RESAMPLING, LearnedGrid, RelativeBias
from samples import close

every_rule = pytest.mark.parametrize("rule", RESAMPLING)


def table(rows: int, columns: int, rule: str, prefix: int = 1) -> LearnedGrid:
    """10 * row + column, after prefixes of -1."""
    positions = LearnedGrid(1, (rows, columns), prefix, rule)
    cells = 10.0 * torch.arange(rows)[:, None] + torch.arange(columns)
    positions.table.data = torch.cat([torch.full((prefix,), -1.0), cells.flatten()])[None, :, None]
    return positions


@every_rule
def test_the_same_grid_is_the_identity(rule):
    positions = table(3, 5, rule)
    assert positions(3, 5) is positions.table


@every_rule
def test_an_image_of_976_pixels_has_61_rows_of_positions(rule):  # BL-12 a
    grid = Patches(16, 1).grid(976, 976)
    assert grid == (61, 61)
    assert table(14, 14, rule)(*grid).shape == (1, 1 + 3721, 1)


def test_a_smaller_grid_is_resampled_and_not_cut_off():  # BL-12 b
    close(table(4, 4, "bilinear")(2, 2)[0, 1:, 0].view(2, 2), torch.tensor([[5.5, 7.5], [25.5, 27.5]]))


@every_rule
def test_height_and_width_are_not_mixed_up_and_the_prefix_is_never_resampled(rule):  # BL-12 c
    positions = table(4, 4, rule, prefix=2)
    turned = table(4, 4, rule, prefix=2)
    turned.table.data[:, 2:] = positions.table.data[:, 2:].view(4, 4).T.reshape(1, 16, 1)
    wide, tall = positions(3, 6)[0, 2:, 0].view(3, 6), turned(6, 3)[0, 2:, 0].view(6, 3)
    close(wide, tall.T)
    assert not torch.allclose(wide.flatten(), tall.flatten())
    assert (positions(3, 6)[0, :2] == -1).all()


def test_the_original_rule_is_a_linear_zoom_between_the_corners():
    rows, columns = np.linspace(0, 3, 6), np.linspace(0, 4, 3)
    wanted = torch.tensor(10 * rows[:, None] + columns, dtype=torch.float32)  # linear in both, as the table is
    close(table(4, 5, "linear")(6, 3)[0, 1:, 0].view(6, 3), wanted)


@given(size=st.integers(1, 5), data=st.data())
def test_a_relative_bias_is_that_of_the_distance(size, data):
    rows, columns = data.draw(st.integers(1, size)), data.draw(st.integers(1, size))
    bias = RelativeBias(2, size)
    found = bias(rows, columns)
    assert found.shape == (1, 2, rows * columns, rows * columns)
    for query in range(rows * columns):
        for key in range(rows * columns):
            (down, along), (up, back) = divmod(query, columns), divmod(key, columns)
            distance = (down - up + size - 1) * (2 * size - 1) + along - back + size - 1
            assert torch.equal(found[0, :, query, key], bias.table[distance])


def test_an_image_that_patches_do_not_divide_is_refused_by_both_sizes_or_padded():  # BL-14
    with pytest.raises(DataError, match=r"220 x 220 pixels cannot be cut into patches of 16 x 16.* 224 x 224"):
        Patches(16, 4)(torch.zeros(1, 3, 220, 220))
    image, patches = torch.randn(1, 3, 5, 6), Patches(4, 2, pad=True)
    close(patches(image), patches(functional.pad(image, (0, 2, 0, 3))))
