"""The linear layer is torch's on every path, whatever happened to its weight in between."""

import pytest
import torch

from qkv.layers.linear import Linear


@pytest.mark.parametrize("fused", [True, False])
def test_inference_after_a_step_uses_the_new_weight(fused):
    layer, x = Linear(32, 16), torch.randn(4, 32)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=fused)
    for _ in range(3):
        with torch.inference_mode():
            torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
        layer(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_inference_after_loading_uses_the_new_weight():
    layer, other, x = Linear(32, 16), Linear(32, 16), torch.randn(4, 32)
    with torch.inference_mode():
        layer(x)
    layer.load_state_dict(other.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), other(x))
