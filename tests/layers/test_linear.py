"""The linear layer is torch's on every path, whatever happened to its weight in between."""

import pytest
import torch

from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.layers.linear import _AVAILABLE, LARGE, MANY, Linear, side_by_side
from samples import close, tensor

SIDE = round(LARGE**0.5)  # of the smallest weight that is kept in blocks


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("through", ["the layer", "a loss of its weight"])
def test_inference_after_a_step_uses_the_new_weight(fused, through):
    layer, x = Linear(SIDE, SIDE), torch.randn(4, SIDE)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=fused)
    for _ in range(3):
        layer.eval()
        with torch.inference_mode():
            torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
        assert (layer._blocked is not None) == _AVAILABLE  # else nothing is shown here
        layer.train()
        if through == "the layer":
            layer(x).sum().backward()
        else:
            linear_cross_entropy(x, layer.weight, layer.bias, torch.arange(4))[0].backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_pass_to_learn_from_forgets_the_blocks_without_a_change_of_mode():
    layer, x = Linear(SIDE, SIDE), torch.randn(4, SIDE)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    for _ in range(2):
        with torch.inference_mode():
            torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
        layer(x).sum().backward()
        optimizer.step()


def test_inference_after_loading_uses_the_new_weight():
    layer, other, x = Linear(SIDE, SIDE), Linear(SIDE, SIDE), torch.randn(4, SIDE)
    with torch.inference_mode():
        layer(x)
    layer.load_state_dict(other.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), other(x))


def test_several_layers_of_one_input_by_one_product_say_what_each_says():
    layers, x = [Linear(4, 6), Linear(4, 5), Linear(4, 6)], tensor(0, 3, MANY, 4)
    for made, layer in zip(side_by_side(layers, x), layers, strict=True):
        close(made, layer(x))
    sum(made.square().sum() for made in side_by_side(layers, x)).backward()
    found = [parameter.grad.clone() for layer in layers for parameter in layer.parameters()]
    for layer in layers:
        layer.zero_grad()
    sum(layer(x).square().sum() for layer in layers).backward()
    for one, other in zip(found, (p.grad for layer in layers for p in layer.parameters()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-2)
    assert all(made is x for made in side_by_side([torch.nn.Identity()] * 2, x))
