"""Why scores are divided by sqrt(depth): the gradient that reaches a score through the softmax, with and without.

Queries and keys of independent standard normal numbers, 32 keys; printed is the mean over queries of the L2 norm of the
gradient of the weighted sum's first channel with respect to the scores.
"""

import torch

from qkv.layers.score import Dot, ScaledDot

torch.manual_seed(0)
print("depth   q·k / sqrt(depth)   q·k")
for depth in (4, 16, 64, 256, 1024):
    query, key, value = torch.randn(512, 1, 1, depth), torch.randn(512, 1, 32, depth), torch.randn(512, 1, 32, 1)
    norms = []
    for score in (ScaledDot(), Dot()):
        scores = score.scores(query, key).requires_grad_()
        (scores.softmax(-1) @ value).sum().backward()
        norms.append(scores.grad.norm(dim=-1).mean().item())
    print(f"{depth:5}   {norms[0]:17.4f}   {norms[1]:.6f}")
