"""Parts of image models: patches, merging, aggregation, mixing and residual blocks, each against its definition."""

import pytest
import torch
from torch import nn

from qkv.layers.aggregate import AttentionPool, EachToken, FirstToken, Head, MeanToken
from qkv.layers.attention import Attention
from qkv.layers.convolution import BLOCKS, SHORTCUTS, STEMS
from qkv.layers.embed import Patches, PatchMerging
from qkv.layers.mixing import TokenMixing
from samples import close, tensor


def test_a_strided_convolution_is_a_linear_layer_over_flattened_patches():
    patches, image = Patches(4, 6), tensor(0, 2, 3, 8, 12)
    flattened = image.view(2, 3, 2, 4, 3, 4).permute(0, 2, 4, 1, 3, 5).flatten(3)
    weight, bias = patches.projection.weight.flatten(1), patches.projection.bias
    close(patches(image), flattened @ weight.T + bias)


def test_merging_puts_each_two_by_two_cells_into_one_column_by_column():
    merging = PatchMerging(1)
    seen = []
    merging.norm.register_forward_hook(lambda module, given, made: seen.append(given[0]))
    merging(torch.arange(9.0).view(1, 3, 3, 1))
    assert seen[0].tolist() == [[[[0, 3, 1, 4], [2, 5, 0, 0]], [[6, 0, 7, 0], [8, 0, 0, 0]]]]
    assert merging(tensor(0, 1, 3, 5, 1)).shape == (1, 2, 3, 2)


def test_the_mean_is_of_real_tokens():  # BL-08
    states = torch.tensor([[[2.0, 4], [4, 8], [9, 9], [9, 9], [9, 9]]]).repeat(2, 1, 1)
    real = torch.tensor([[True, True, False, False, False], [False] * 5])
    assert MeanToken()(states, real).tolist() == [[3, 6], [0, 0]]
    assert MeanToken(skip=1)(states, real).tolist() == [[4, 8], [0, 0]]
    close(MeanToken()(states)[0], torch.tensor([6.6, 7.8]))


def test_a_pool_looks_at_real_tokens_only():
    pool = AttentionPool(Attention(8, 2), 8)
    states, real = tensor(0, 2, 5, 8), torch.tensor([[True] * 5, [True, True, False, False, False]])
    found = pool(states, real)
    close(found[0], pool(states[:1])[0])
    close(found[1], pool(states[1:, :2])[0])


def test_each_token_and_the_first():
    states = tensor(0, 2, 5, 8)
    assert torch.equal(FirstToken()(states), states[:, 0])
    assert torch.equal(EachToken(skip=2)(states), states[:, 2:])
    assert Head(8, 3)(EachToken(skip=2)(states)).shape == (2, 3, 3)


def test_a_head_with_a_hidden_layer_has_one_tanh():
    head, states = Head(8, 3, hidden=5), tensor(0, 2, 8)
    close(head(states), head.output(torch.tanh(head.hidden(states))))


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_a_mixing_matrix_is_the_mean_derivative_over_channels(mode):
    mixing = TokenMixing(5, 7)
    states = tensor(0, 2, 5, 3)
    with mode():
        found = mixing.matrix(states + 0)
    derivative = torch.autograd.functional.jacobian(mixing, states)  # example, token, channel, and the same again
    for example in range(2):
        own = derivative[example, :, :, example]
        wanted = torch.stack([own[:, channel, :, channel] for channel in range(3)]).mean(0)
        close(found[example], wanted)
        assert own[:, 0, :, 1].abs().max() == 0  # channels do not mix


def test_a_mixing_matrix_is_the_product_of_both_layers_if_nothing_bends_between_them():
    mixing = TokenMixing(5, 7)
    mixing.mlp.activation = nn.Identity()
    product = mixing.mlp.reduce.weight @ mixing.mlp.expand.weight
    close(mixing.matrix(tensor(0, 2, 5, 3)), product.expand(2, -1, -1))


@pytest.mark.parametrize("shortcut", SHORTCUTS)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_residual_block_that_adds_nothing_is_its_shortcut(block, shortcut):
    make = BLOCKS[block]
    outside = 4 * make.expansion
    residual = make(4, 4, 2, SHORTCUTS[shortcut](4, outside, 2)).eval()
    last = residual.second if block == "basic" else residual.third
    nn.init.zeros_(last.norm.weight)
    maps = tensor(0, 2, 4, 7, 6)
    found = residual(maps)
    assert found.shape == (2, outside, 4, 3)
    close(found, residual.shortcut(maps).relu())


def test_a_padded_shortcut_keeps_every_second_cell_between_new_channels_of_zeros():
    found = SHORTCUTS["padded"](2, 6, 2)(maps := tensor(0, 1, 2, 5, 5))
    assert torch.equal(found[:, 2:4], maps[:, :, ::2, ::2])
    assert found[:, :2].abs().max() == found[:, 4:].abs().max() == 0


def test_a_stem_for_small_images_keeps_every_pixel():
    assert STEMS["large"](4)(tensor(0, 1, 3, 33, 40)).shape == (1, 4, 9, 10)
    assert STEMS["small"](4)(tensor(0, 1, 3, 33, 40)).shape == (1, 4, 33, 40)
