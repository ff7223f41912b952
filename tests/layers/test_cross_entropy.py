"""The output layer and loss in one are `torch.nn.functional.cross_entropy` on the logits, in value and gradient."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from qkv.layers.cross_entropy import linear_cross_entropy
from samples import close, tensor

seeds = st.integers(0, 999)
chunks = st.sampled_from([1, 2, 3, 7, 512])
smoothings = st.sampled_from([0.0, 0.1, 0.5, 1.0])


def sample(seed: int, targets: int, words: int, bias: bool, dtype=torch.float32):
    """States, weight and bias that learn, and targets."""
    leaves = [tensor(seed, targets, 4, dtype=dtype), tensor(seed + 1, words, 4, dtype=dtype)]
    leaves += [tensor(seed + 2, words, dtype=dtype)] if bias else []
    leaves = [leaf.requires_grad_() for leaf in leaves]
    target = torch.randint(words, (targets,), generator=torch.Generator().manual_seed(seed))
    return leaves, target


def by_torch(leaves, target, smoothing):
    logits = functional.linear(*leaves)
    return functional.cross_entropy(logits.float(), target, reduction="sum", label_smoothing=smoothing)


def ours(leaves, target, smoothing, chunk=512):
    states, weight, bias = (*leaves, None)[:3]
    return linear_cross_entropy(states, weight, bias, target, smoothing, chunk)


@given(
    seed=seeds, targets=st.integers(0, 9), words=st.integers(1, 8), bias=st.booleans(),
    smoothing=smoothings, chunk=chunks,
)  # fmt: skip
def test_loss_and_gradients_are_those_of_torch_for_any_chunk(seed, targets, words, bias, smoothing, chunk):
    leaves, target = sample(seed, targets, words, bias)
    loss, nll, correct = ours(leaves, target, smoothing, chunk)
    expected = by_torch(leaves, target, smoothing)
    close(loss, expected)
    close(nll, by_torch(leaves, target, 0.0))
    assert correct == (functional.linear(*leaves).argmax(-1) == target).sum()
    gradients = (torch.autograd.grad(value * 3, leaves) for value in (loss, expected))
    for mine, yours in zip(*gradients, strict=True):
        close(mine, yours)


@settings(max_examples=10)
@given(seed=seeds, bias=st.booleans(), smoothing=smoothings, chunk=chunks)
def test_the_gradient_is_the_slope_in_double_precision(seed, bias, smoothing, chunk):
    leaves, target = sample(seed, 3, 5, bias, torch.float64)
    torch.autograd.gradcheck(lambda *leaves: ours(leaves, target, smoothing, chunk)[0], leaves)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("how", ["stored so", "autocast"])
@pytest.mark.parametrize("bias", [True, False])
def test_half_precision_is_single_precision_within_two_hundredths(dtype, how, bias):
    leaves, target = sample(0, 20, 8, bias)
    expected = by_torch(leaves, target, 0.1)
    expected_gradients = torch.autograd.grad(expected, leaves)
    if how == "stored so":
        leaves = [leaf.detach().to(dtype).requires_grad_() for leaf in leaves]
    with torch.autocast("cpu", dtype, enabled=how == "autocast"):
        loss, nll, _ = ours(leaves, target, 0.1, chunk=7)
    assert loss.dtype == nll.dtype == torch.float32
    torch.testing.assert_close(loss, expected, atol=0, rtol=2e-2)
    for leaf, mine, yours in zip(leaves, torch.autograd.grad(loss, leaves), expected_gradients, strict=True):
        assert mine.dtype == leaf.dtype
        torch.testing.assert_close(mine.float(), yours, atol=5e-2, rtol=2e-2)


@pytest.mark.parametrize("padded", [[2, 3, 0, 0], [2, 3]], ids=["with pads", "without"])
def test_pads_are_neither_counted_nor_divided_by(padded):  # BL-40
    target = torch.tensor(padded)
    real = target != 0
    states = tensor(0, len(padded), 4)
    loss, nll, _ = linear_cross_entropy(states[real], torch.zeros(5, 4), None, target[real], smoothing=0.1)
    for mean in (loss / real.sum(), nll / real.sum()):
        assert mean.item() == pytest.approx(math.log(5), abs=1e-6)  # 0.8047 if pads were in the divisor


def test_the_smoothed_target_sums_to_one_and_every_word_gets_its_share_the_pad_too():  # BL-40
    bias = torch.zeros(5, requires_grad=True)
    loss, _, _ = linear_cross_entropy(torch.zeros(1, 4), torch.zeros(5, 4), bias, torch.tensor([2]), smoothing=0.1)
    (slope,) = torch.autograd.grad(loss, bias)  # chance less what the target asks for
    close(0.2 - slope, torch.tensor([0.02, 0.02, 0.92, 0.02, 0.02]), 1e-6)


def test_an_impossible_target_has_a_large_loss_and_a_finite_gradient():
    states = torch.tensor([[1000.0]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    loss, nll, correct = linear_cross_entropy(states, weight, None, torch.tensor([1]), smoothing=0.1)
    assert (nll.item(), correct.item()) == (2000, 0)
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(loss, [states, weight]))


def test_only_the_loss_has_a_gradient_and_only_what_learns_gets_one():
    leaves, target = sample(0, 4, 5, bias=True)
    leaves[1].requires_grad_(False)
    loss, nll, correct = ours(leaves, target, 0.1)
    assert loss.requires_grad
    assert not nll.requires_grad
    assert not correct.requires_grad
    loss.backward()
    assert leaves[1].grad is None
    assert leaves[0].grad is not None


def test_without_gradients_none_are_computed(monkeypatch):
    leaves, target = sample(0, 4, 5, bias=True)
    monkeypatch.setattr(torch, "addmm", lambda *_, **__: pytest.fail("a gradient was computed for nobody"))
    with torch.no_grad():
        close(ours(leaves, target, 0.1)[0], by_torch(leaves, target, 0.1))


def test_a_second_derivative_is_refused_and_not_wrong():
    leaves, target = sample(0, 4, 5, bias=True)
    (slope,) = torch.autograd.grad(ours(leaves, target, 0.1)[0].square(), leaves[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
