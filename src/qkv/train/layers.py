"""What treats the layers of a model differently: slower first ones, frozen ones, and those computed twice.

A model tells its layers by a method ``layers()``: its blocks, in the order in which they run.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from qkv.errors import ConfigError, nearest

__all__ = ["depths", "freeze", "recompute"]


def depths(model: nn.Module) -> dict[str, int]:
    """How far each parameter is from the input: 0 before the first layer (embeddings), i in layer i, and one more than
    there are layers behind the last; what stands between two layers counts to the one before it.

    Raises:
        ConfigError: the model does not tell its layers.
    """
    layers = _layers(model, "optimize.layer_decay")
    place = {id(parameter): i for i, layer in enumerate(layers, start=1) for parameter in layer.parameters()}
    found, reached = {}, 0
    for name, parameter in model.named_parameters():
        own = place.get(id(parameter))
        reached = own or reached
        found[name] = own or (reached if reached < len(layers) else reached + 1)
    return found


def freeze(model: nn.Module, names: str) -> None:
    """Let modules stay as they are: no gradient, no dropout, and batch norms keep their statistics.

    Args:
        names: of modules, with commas between; ``*`` stands for anything: ``patches,blocks.*``.

    Raises:
        ConfigError: no module has such a name, or nothing is left to learn.
    """
    modules = dict(model.named_modules())
    for pattern in filter(None, map(str.strip, names.split(","))):
        chosen = [module for name, module in modules.items() if name and fnmatchcase(name, pattern)]
        if not chosen:
            raise ConfigError(
                f"optimize.freeze: no module is called {pattern!r}",
                remedy=nearest(pattern, [name for name in modules if name and name.count(".") < 2]),
            )
        for module in chosen:
            module.requires_grad_(False)
            # The loop sets the mode once, and scoring puts back the one that each module had.
            module.eval()
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"optimize.freeze is {names!r}, and nothing is left to learn", remedy="leave out the head")


def recompute(model: nn.Module) -> None:
    """Keep of each layer only what goes into it, and compute the rest again on the way back (Chen et al. 2016).

    Raises:
        ConfigError: the model does not tell its layers.
    """
    for layer in _layers(model, "loop.recompute"):
        layer.forward = _twice(layer, layer.forward)


def _layers(model: nn.Module, key: str) -> list[nn.Module]:
    if not hasattr(model, "layers"):
        raise ConfigError(f"{key}: a {type(model).__name__} does not tell its layers", remedy=f"leave {key} out")
    return model.layers()


def _twice(layer: nn.Module, forward):
    def run(*args, **kwargs):
        if not (layer.training and torch.is_grad_enabled()):
            return forward(*args, **kwargs)
        contexts = lambda: (nullcontext(), _statistics_kept(layer))  # noqa: E731
        return checkpoint(forward, *args, use_reentrant=False, context_fn=contexts, **kwargs)

    return run


@contextmanager
def _statistics_kept(layer: nn.Module) -> Iterator[None]:
    """A batch norm has counted this batch already, when the layer runs for the second time."""
    norms = [module for module in layer.modules() if isinstance(module, _BatchNorm) and module.track_running_stats]
    before = [(norm, norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm, _, counted in before:
        norm.momentum, norm.num_batches_tracked = 0.0, counted.clone()
    try:
        yield
    finally:
        for norm, momentum, counted in before:
            norm.momentum, norm.num_batches_tracked = momentum, counted
