"""Losses are sums over examples, equal to torch's where it has them."""

import math

import pytest
import torch
from torch.nn import functional

from qkv.tasks.losses import balanced, class_loss, number_loss, several_loss


def test_cross_entropy_is_torchs():
    logits, labels = torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, 4])
    shares, weights = functional.one_hot(labels, 5).float(), torch.rand(5) + 0.5
    own = class_loss(logits, shares, 0.1)
    assert own == pytest.approx(float(functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")))
    own = class_loss(logits, shares, 0.0, weights)
    assert own == pytest.approx(float(functional.cross_entropy(logits, labels, weights, reduction="sum")))
    mixed = 0.3 * shares + 0.7 * shares.flip(0)
    assert class_loss(logits, mixed) == pytest.approx(float(functional.cross_entropy(logits, mixed, reduction="sum")))


def test_smoothing_of_uniform_logits_is_the_log_of_the_classes():
    assert class_loss(torch.zeros(2, 5), torch.eye(5)[[2, 3]], 0.1) == pytest.approx(2 * math.log(5))


def test_the_sum_over_a_batch_is_the_sum_over_its_parts():
    logits, shares, weights = torch.randn(8, 4), torch.rand(8, 4).softmax(1), torch.rand(4)
    for loss in (class_loss, several_loss):
        parts = sum(loss(logits[some], shares[some], 0.1, weights) for some in (slice(0, 2), slice(2, 8)))
        assert loss(logits, shares, 0.1, weights) == pytest.approx(float(parts), rel=1e-5)
    assert number_loss(logits[:, :1], shares[:, :1]) == pytest.approx(
        float(number_loss(logits[:3, :1], shares[:3, :1]) + number_loss(logits[3:, :1], shares[3:, :1])), rel=1e-5
    )


def test_huber_is_a_square_below_and_a_line_above():
    outputs, targets = torch.tensor([[0.5], [3.0]]), torch.zeros(2, 1)
    assert number_loss(outputs, targets) == pytest.approx(0.25 + 9)
    assert number_loss(outputs, targets, huber=1.0) == pytest.approx(0.125 + 2.5)


def test_balanced_classes_weigh_alike():
    labels = torch.eye(3)[[0, 0, 0, 1]]  # nothing is of the third class
    weights = balanced(labels)
    assert weights.tolist() == pytest.approx([4 / 6, 2, 1])
    assert (labels @ weights).mean() == pytest.approx(1)
    several = torch.tensor([[1.0, 1], [0, 1], [0, 1], [0, 1]])
    assert balanced(several, several=True).tolist() == [3, 1]
