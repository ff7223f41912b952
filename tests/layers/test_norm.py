"""Norms: each token by itself, or each channel over the real tokens only."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from qkv.layers.norm import NORMS, LayerNorm, TokenBatchNorm
from samples import close, tensor

seeds = st.integers(0, 999)
lengths = st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(lambda lengths: sum(lengths) > 1)
EVERY_NORM = pytest.mark.parametrize("name", sorted(NORMS))


def real(lengths: list[int]) -> torch.Tensor:
    return torch.arange(5) < torch.tensor(lengths)[:, None]


@given(seed=seeds, lengths=lengths)
def test_batch_norm_is_that_of_torch_on_the_real_tokens(seed, lengths):
    ours, theirs, mask = TokenBatchNorm(6), nn.BatchNorm1d(6), real(lengths)
    for step in range(3):
        states = tensor(seed + step, len(lengths), 5, 6) * 3 + 1
        close(ours(states, mask)[mask], theirs(states[mask]))
    close(ours.mean, theirs.running_mean)
    close(ours.variance, theirs.running_var)
    close(ours.eval()(states, mask)[mask], theirs.eval()(states[mask]))


@given(seed=seeds, lengths=lengths)
def test_batch_norm_has_the_gradients_of_torch(seed, lengths):
    ours, theirs, mask = TokenBatchNorm(6), nn.BatchNorm1d(6), real(lengths)
    states, pull = tensor(seed, len(lengths), 5, 6).requires_grad_(), tensor(seed + 1, sum(lengths), 6)
    mine = torch.autograd.grad((ours(states, mask)[mask] * pull).sum(), [states, *ours.parameters()])
    yours = torch.autograd.grad((theirs(states[mask]) * pull).sum(), [states, *theirs.parameters()])
    for one, other in zip(mine, yours, strict=True):
        close(one, other, 1e-4)


@given(seed=seeds, lengths=lengths)
def test_padding_never_enters_the_statistics(seed, lengths):
    one, other, mask = TokenBatchNorm(6), TokenBatchNorm(6), real(lengths)
    states = tensor(seed, len(lengths), 5, 6)
    nonsense = states.masked_fill(~mask[..., None], 1e6)
    close(one(states, mask)[mask], other(nonsense, mask)[mask])
    assert torch.equal(one.mean, other.mean)
    assert torch.equal(one.variance, other.variance)


@EVERY_NORM
@given(seed=seeds)
def test_in_evaluation_neighbours_and_later_tokens_change_nothing(name, seed):
    norm = NORMS[name](6)
    norm(tensor(seed, 3, 5, 6) * 2 + 1)  # batch norm has learned something
    norm.eval()
    states = tensor(seed + 1, 3, 5, 6)
    close(norm(states)[1:2, :2], norm(states[1:2, :2]))


def test_in_training_batch_norm_leaks_later_tokens_as_its_page_says():
    norm, states = TokenBatchNorm(6), tensor(0, 1, 5, 6)
    changed = states.clone()
    changed[:, -1] += 1
    assert not torch.allclose(norm(states)[:, 0], norm(changed)[:, 0])


def test_layer_norm_does_not_care_which_tokens_are_real():
    norm, states = LayerNorm(6), tensor(0, 2, 5, 6)
    assert torch.equal(norm(states), norm(states, real([1, 4])))


@EVERY_NORM
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("training", [True, False])
def test_every_precision_comes_out_as_it_came_in(name, dtype, training):
    single = NORMS[name](6).train(training)
    other = NORMS[name](6).train(training).to(dtype)
    states = tensor(0, 2, 5, 6)
    normed = other(states.to(dtype))
    assert normed.dtype == dtype
    torch.testing.assert_close(normed.float(), single(states), atol=2e-2, rtol=2e-2)
