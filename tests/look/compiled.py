"""Run by `test_trace.py` in a process of its own: the compiler cannot read through the tests' shape checks."""

import torch
from torch import nn

from qkv.layers.attention import Attention
from qkv.look.trace import trace


class Two(nn.Module):
    """Two attention layers, one after the other."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Attention(8, 4), Attention(8, 4)

    def forward(self, states):
        return self.second(self.first(states))


def compiled(how: str, backend) -> nn.Module:
    if how == "in place":
        model = Two()
        model.compile(backend=backend)
        return model
    model = torch.compile(Two(), backend=backend)
    return nn.Sequential(model) if how == "inside another" else model


with torch.no_grad():
    for how in ("wrapped", "in place", "inside another"):
        graphs, states = [], torch.randn(1, 3, 8)

        def backend(graph, inputs, graphs=graphs):
            graphs.append(graph)
            return graph.forward

        model = compiled(how, backend)
        before = model(states)
        assert len(graphs) == 1, (how, len(graphs))
        with trace(model, layers="*second") as seen:
            during = model(states)
        after = model(states)
        assert len(graphs) == 1, f"{how}: compiled again"
        torch.testing.assert_close(during, before)
        torch.testing.assert_close(after, before)
        assert list(seen) == ["0.second" if how == "inside another" else "second"], how
        torch.testing.assert_close(seen.select()[0].weights.sum(-1), torch.ones(4, 3))
