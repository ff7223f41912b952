"""GloVe: its weights, its loss, and a kernel that makes the update of autograd and AdaGrad."""

import numpy as np
import pytest
import torch

from qkv.kernels import glove as glove_kernel
from qkv.models.glove import GloVe, GloVeConfig, squared_loss, weight

NAMES = ("input", "output", "input_bias", "output_bias")


def test_the_weights_of_the_paper():
    found = weight(torch.tensor([1.0, 10.0, 50.0, 100.0, 1e6]))
    np.testing.assert_allclose(found, [0.0316, 0.1778, 0.5946, 1, 1], atol=5e-5)


def kernel_step(model: GloVe, pairs, both: bool, rate: float):
    tables = tuple(model.get_parameter(f"{name}.weight").detach().numpy() for name in NAMES)
    sums = glove_kernel.fresh_sums(tables)
    left, right, counts = (np.array(column) for column in zip(*pairs, strict=True))
    loss, seen = glove_kernel.sweep(
        np.arange(len(pairs), dtype=np.uint32), 0, len(pairs), left.astype(np.uint32), right.astype(np.uint32),
        counts.astype(np.float32), both, tables, sums, np.float32(rate), 100.0, 0.75,
    )  # fmt: skip
    return loss, seen, sums


@pytest.mark.parametrize(("pair", "both"), [((2, 5, 3.0), False), ((2, 5, 300.0), False), ((4, 4, 7.0), True)])
def test_the_kernels_update_is_autograds_with_adagrad(pair, both):
    model, rate = GloVe(GloVeConfig(8, 6)), 0.05
    twin = GloVe(GloVeConfig(8, 6))
    twin.load_state_dict(model.state_dict())
    loss, seen, _ = kernel_step(model, [pair], both, rate)
    word, context, count = pair
    estimate = twin(torch.tensor([[word]]), torch.tensor([1]), torch.tensor([[context]]))
    expected = squared_loss(estimate, torch.full((1, 1, 1), count), 100.0, 0.75)
    expected.backward()
    # As in the published program, a step is divided by the root of the squares before it, which begin at 1.
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter -= rate * parameter.grad
    assert (seen, loss) == (1, pytest.approx(expected.item(), rel=1e-5))
    for name, parameter in twin.named_parameters():
        torch.testing.assert_close(model.get_parameter(name), parameter, atol=1e-6, rtol=1e-5)


def test_the_second_step_is_shorter_by_the_squares_of_the_first():
    model = GloVe(GloVeConfig(3, 4))
    before = model.input_bias.weight[0, 0].item()
    _, _, sums = kernel_step(model, [(0, 1, 20.0)], False, 0.05)
    moved = (before - model.input_bias.weight[0, 0].item()) / 0.05
    assert sums[2][0, 0] == pytest.approx(1 + moved**2, rel=1e-4)


def test_a_symmetric_pair_is_learned_both_ways():
    model = GloVe(GloVeConfig(5, 4))
    assert kernel_step(model, [(0, 1, 5.0), (2, 2, 5.0)], True, 0.05)[1] == 3


def test_nothing_is_ever_nan():
    model = GloVe(GloVeConfig(3, 4))
    for parameter in model.parameters():
        parameter.data *= 1e6
    for _ in range(50):
        loss = kernel_step(model, [(0, 1, 1e-3), (0, 1, 1e9), (1, 2, 5.0)], True, 5.0)[0]
    assert np.isfinite(loss) and all(parameter.isfinite().all() for parameter in model.parameters())


def test_it_learns_the_logarithms_of_counts():
    model, pairs = GloVe(GloVeConfig(4, 8)), [(0, 1, 120.0), (1, 2, 200.0), (2, 3, 150.0), (0, 3, 1000.0)]
    tables = tuple(model.get_parameter(f"{name}.weight").detach().numpy() for name in NAMES)
    sums = glove_kernel.fresh_sums(tables)
    left, right, counts = (np.array(column) for column in zip(*pairs, strict=True))
    for _ in range(400):
        glove_kernel.sweep(np.arange(4, dtype=np.uint32), 0, 4, left.astype(np.uint32), right.astype(np.uint32),
                           counts.astype(np.float32), True, tables, sums, np.float32(0.2), 100.0, 0.75)  # fmt: skip
    estimates = model(
        torch.from_numpy(left)[:, None], torch.ones(4, dtype=torch.long), torch.from_numpy(right)[:, None]
    )
    np.testing.assert_allclose(estimates.detach().flatten(), np.log(counts), atol=0.05)
