"""The optimiser and its learning rate, which is a pure function of the step: there is no schedule state to save."""

import math

from torch import nn, optim

from qkv.train.layers import depths
from qkv.train.run import Optimize

__all__ = ["factor", "optimizer_for", "set_rate"]


def optimizer_for(model: nn.Module, how: Optimize) -> optim.Optimizer:
    """Adam or AdamW over a model's weights; only matrices decay, since pulling a bias or a norm to 0 helps nobody.

    The model must be on its device already. One fused kernel updates all weights where there is one. With a layer decay
    each layer has groups of its own, the last ones first; ``scale`` is their part of the learning rate.
    """
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]  # a tied weight comes once
    groups = []
    for scale, own in _by_scale(model, how.layer_decay, learned).items():
        groups += [
            {"params": [p for p in own if p.ndim >= 2], "weight_decay": how.weight_decay, "scale": scale},
            {"params": [p for p in own if p.ndim < 2], "weight_decay": 0.0, "scale": scale},
        ]
    cls = {"adamw": optim.AdamW, "adam": optim.Adam}[how.name]
    fused = all(p.device.type in ("cpu", "cuda", "xpu") and p.is_floating_point() for p in learned)
    groups = [group for group in groups if group["params"]]
    return cls(groups, lr=how.lr, betas=tuple(how.betas), eps=how.eps, fused=fused)


def factor(how: Optimize, step: int, total: int | None = None) -> float:
    """The learning rate of a step (from 1), as a part of its peak.

    Args:
        total: the last step; cosine must know it.

    With w warm-up steps, t the step and T the last one:
        warm-up       t / w
        inverse-sqrt  sqrt(w / t): with the peak 1/sqrt(dim * w) this is Vaswani et al. 2017, eq. 3
        cosine        (1 + cos(pi * (t - w) / (T - w))) / 2: Loshchilov and Hutter 2017, eq. 5, without restarts
        constant      1
    """
    warmup = how.warmup
    if step < warmup:
        return step / warmup
    if how.schedule == "inverse-sqrt":
        return math.sqrt(max(warmup, 1) / step)
    if how.schedule == "cosine":
        done = (step - warmup) / max(total - warmup, 1)
        return (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return 1.0


def set_rate(optimizer: optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group["scale"]


def _by_scale(model: nn.Module, decay: float, learned: list[nn.Parameter]) -> dict[float, list[nn.Parameter]]:
    """Parameters by their part of the learning rate: ``decay`` to the number of layers after them (Clark et al. 2020,
    ELECTRA, appendix A; Bao et al. 2022, BEiT)."""
    if decay == 1:
        return {1.0: learned}
    found = depths(model)
    depth = {id(parameter): found[name] for name, parameter in model.named_parameters()}
    last = max(found.values())
    scales: dict[float, list[nn.Parameter]] = {}
    for parameter in sorted(learned, key=lambda parameter: -depth[id(parameter)]):
        scales.setdefault(decay ** (last - depth[id(parameter)]), []).append(parameter)
    return scales
