"""Windows: cut and joined again, shifted borders that never leak, and the layer that looks through them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.layers.attention import Attention, attention_weights
from qkv.layers.position import RelativeBias
from qkv.layers.window import Window
from samples import close, tensor

sides, sizes = st.integers(1, 11), st.integers(1, 5)


def group(place: int, size: int, shift: int) -> int:
    """The window that a place of one side belongs to, were there no wrapping around."""
    return (place - shift) // size


@given(rows=sides, columns=sides, size=sizes, data=st.data())
def test_cut_and_joined_again_is_the_grid(rows, columns, size, data):
    windows = Window(size, data.draw(st.integers(0, size - 1))).over(rows, columns)
    states = tensor(0, 2, rows, columns, 3)
    cut = windows.split(states)
    assert cut.shape == (2 * windows.count, windows.size[0] * windows.size[1], 3)
    assert torch.equal(windows.join(cut), states)
    where = windows.where()
    assert sorted(where[where >= 0].tolist()) == list(range(rows * columns))
    flat = states.flatten(1, 2)[:, where.flatten()].view(cut.shape)
    assert torch.equal(torch.where((where >= 0).repeat(2, 1)[..., None], flat, 0), cut)


@given(rows=sides, columns=sides, size=sizes, data=st.data())
def test_cells_see_each_other_where_no_border_of_an_endless_plane_is_between_them(rows, columns, size, data):
    windows = Window(size, data.draw(st.integers(0, size - 1))).over(rows, columns)
    keep = windows.mask(1).keep
    for window, cells in enumerate(windows.where().tolist()):
        for i, one in enumerate(cells):
            for j, other in enumerate(cells):
                if one >= 0 and other >= 0:
                    together = all(
                        group(a, size, shift) == group(b, size, shift)
                        for a, b, size, shift in zip(
                            divmod(one, columns), divmod(other, columns), windows.size, windows.shift, strict=True
                        )
                    )
                    assert together == (keep is None or bool(keep[window, 0, i, j]))


@pytest.mark.parametrize(("side", "groups"), [(5, [{2, 3, 4}, {0, 1}]), (7, [{2, 3, 4, 5}, {6}, {0, 1}])])
def test_padding_comes_before_the_shift(side, groups):  # BL-15
    windows = Window(4, shift=2).over(side, side)
    assert windows.padded == (8, 8)
    keep, where = windows.mask(1).keep[:, 0], windows.where()
    for row in range(side):
        window, place = (where == row * side).nonzero()[0].tolist()
        seen = {cell // side for cell in where[window, keep[window, place]].tolist() if cell >= 0}
        assert seen == next(group for group in groups if row in group)


def test_a_window_as_long_as_the_grid_is_clipped_to_it_and_not_shifted():  # BL-14
    windows = Window(7, shift=3).over(4, 9)
    assert windows.size == (4, 7) and windows.shift == (0, 3) and windows.padded == (4, 14)
    assert Window(7, shift=3).over(7, 7).mask(1).keep is None


@given(rows=sides, columns=sides, size=sizes, data=st.data())
def test_a_windowed_layer_is_a_layer_that_looks_everywhere_under_a_mask(rows, columns, size, data):
    shift = data.draw(st.integers(0, size - 1))
    torch.manual_seed(0)
    layer = Attention(8, 2, bias=RelativeBias(2, size), window=Window(size, shift))
    layer.bias.table.data = tensor(5, *layer.bias.table.shape)
    windows, states = layer.window.over(rows, columns), tensor(1, 2, rows, columns, 8)
    height, width = windows.padded
    grid = torch.zeros(2, height, width, 8)
    grid[:, :rows, :columns] = states
    places = [(row, column) for row in range(height) for column in range(width)]

    def bias(one, other) -> torch.Tensor:
        """Of one place from another; minus infinity where a border is between them."""
        for a, b, size, shift in zip(one, other, windows.size, windows.shift, strict=True):
            # A shift wraps around what is left of the first border together with what is padded.
            if group(a, size, shift) != group(b, size, shift):
                return torch.full((2,), float("-inf"))
        down, along = (a - b + layer.window.size - 1 for a, b in zip(one, other, strict=True))
        return layer.bias.table[down * (2 * layer.window.size - 1) + along]

    biases = torch.stack([torch.stack([bias(one, other) for other in places]) for one in places]).permute(2, 0, 1)
    query, memory = layer._split(layer.query(grid.flatten(1, 2))), layer.remember(grid.flatten(1, 2))
    weights = attention_weights(layer.score.scores(query, memory.key) + biases)
    wanted = layer.output((weights @ memory.value).transpose(1, 2).flatten(2)).view(grid.shape)
    close(layer(states), wanted[:, :rows, :columns], 2e-5)


def test_a_windowed_layer_takes_no_memory():
    with pytest.raises(ValueError, match="takes no memory"):
        Attention(8, 2, window=Window(2))(tensor(0, 1, 4, 4, 8), tensor(1, 1, 3, 8))
