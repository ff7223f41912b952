"""What each class hangs on in a picture: gradients of its logit by pixels, by features on a grid, by attention.

Every map here goes from classes to the cells of a grid. An output that is a number and no class is one class more.
"""

from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Grid, Tokens
from qkv.errors import ConfigError, nearest
from qkv.layers.aggregate import FirstToken
from qkv.layers.attention import Attention
from qkv.layers.listen import listen
from qkv.look.cells import onto_cells
from qkv.look.record import Map, Trace
from qkv.look.rollout import gradient_rollout, rollout, stacks

__all__ = ["class_rollout", "grad_cam", "picture_rollout", "pixel_gradient", "read_shares"]

MOST_WEIGHTS = 4_000_000
Image = Float[Tensor, "1 3 height width"]


def pixel_gradient(model: nn.Module, image: Image, classes: dict[str, int], grid: Grid) -> Map:
    """How much each class's logit would change with the pixels of each cell: the mean length of the gradient there.

    Simonyan, Vedaldi & Zisserman 2014, "Deep Inside Convolutional Networks", section 3, with the length over the three
    channels in place of the largest.
    """
    pixels, total = _logits(model, image, classes)
    (gradient,) = torch.autograd.grad(total, pixels)
    grid = replace(grid, prefix=())
    return _map("gradient", onto_cells(gradient.norm(dim=1).cpu(), grid), classes, grid)


def grad_cam(model: nn.Module, image: Image, classes: dict[str, int], grid: Grid, layer: str | None = None) -> Map:
    """Where the features are that speak for a class: ``relu(sum_k a_k F_k)``, ``a_k`` the mean over the cells of the
    gradient of the class's logit by channel k.

    Selvaraju et al. 2017, "Grad-CAM", equations 1 and 2.

    Args:
        grid: the cells of the features; extra tokens among them are left out.
        layer: the module that makes the features; the last one on this grid that the answer still depends on, if not
            given: the last stage of a ResNet, the last norm of a Swin or Mixer, the norm before the
            last attention of a ViT whose class token is read.

    Errors:
        ConfigError: there is no such module, or it makes no features on the grid.
    """
    modules = dict(model.named_modules())
    if layer is not None and layer not in modules:
        raise ConfigError(f"there is no module {layer!r}", remedy=nearest(layer, modules))
    name = layer if layer is not None else _feature_layer(model, image, classes, grid)
    features, gradient = (_cells(modules[name], one, grid) for one in _features(model, image, classes, modules[name]))
    if features is None:
        raise ConfigError(f"{name} makes no features on a grid of {grid.rows} x {grid.columns} cells")
    speaks = (features * gradient.mean(1, keepdim=True)).sum(-1).relu()
    return _map("grad-cam", speaks, classes, replace(grid, prefix=()))


def class_rollout(model: nn.Module, image: Image, classes: dict[str, int], seen: Trace) -> Map:
    """What each class hangs on through all layers of attention: see `qkv.look.rollout.gradient_rollout`.

    Args:
        seen: a trace of this very image, of all layers, heads and rows.
    """
    maps = list(stacks(seen).values())[-1]
    pool = _pool(seen, maps[-1])
    looking = [*maps, pool] if pool else maps
    with ExitStack() as listening:
        heard = [listening.enter_context(listen(model.get_submodule(map.name), through=True)) for map in looking]
        _, total = _logits(model, image, classes)
        found = torch.autograd.grad(total, [one.weights for one in heard], allow_unused=True)
    gradients = [
        _by_class(torch.zeros_like(one.weights) if gradient is None else gradient, map, len(classes))
        for gradient, one, map in zip(found, heard, looking, strict=True)
    ]
    rows = []
    for i in range(len(classes)):
        own = [gradient[i] for gradient in gradients]
        if pool:
            weighted = pool.weights.double() * own[-1]
            rows.append(gradient_rollout(maps, own[:-1], weighted.clamp_min(0).mean(0))[0])
        else:
            shares = read_shares(model, maps[-1].query)[None]
            alone = gradient_rollout(maps, [torch.zeros_like(gradient) for gradient in own], shares)
            rows.append((gradient_rollout(maps, own, shares) - alone)[0].clamp_min(0))
    return _map("gradient-rollout", torch.stack(rows).float(), classes, maps[0].key)


def picture_rollout(
    model: nn.Module, seen: Trace, residual: float = 0.5, fusion: str = "mean", discard: float = 0.0
) -> tuple[Map, list[Map]]:
    """What the head reads, drawn through all layers of attention; and what each cell is made of after each grid.

    Returns:
        A map of one row, from the answer to the cells of the first grid, and a map from the cells of each grid (a Swin
        has one a stage) to those of the first. A grid so large that its map would have more than 4 million weights has
        none. Arguments as for `qkv.look.rollout.rollout`.
    """
    maps = list(stacks(seen).values())[-1]
    ends = [i for i, (map, after) in enumerate(pairwise([*maps, None]), 1) if not after or after.query != map.query]
    fitting = [end for end in ends if len(maps[end - 1].query) * len(maps[0].key) <= MOST_WEIGHTS or end == ends[-1]]
    rolled = [rollout(maps[:end], residual, fusion, discard, f"{maps[end - 1].name}.rollout") for end in fitting]
    pool = _pool(seen, maps[-1])
    read = pool.weights.mean(0) if pool else read_shares(model, maps[-1].query)[None].float()
    axis = Tokens(("answer",), ((0, 0),), "")
    return Map("rollout", "cross", (read @ rolled[-1].weights[0])[None], axis, maps[0].key, (0,), (0,)), rolled


def read_shares(model: nn.Module, axis: Grid) -> Float[Tensor, " position"]:
    """What share each position has in what the head reads: the class token (and distillation's), or all cells alike."""
    first = any(isinstance(module, FirstToken) for module in model.modules())
    read = [name in ("[CLS]", "[DIST]") for name in axis.prefix] if first else [False] * len(axis.prefix)
    shares = torch.tensor(read + [not first] * (axis.rows * axis.columns), dtype=torch.float64)
    return shares / shares.sum()


def _logits(model: nn.Module, image: Image, classes: dict[str, int]) -> tuple[Tensor, Tensor]:
    """The pixels of a copy of the image for each class, and the sum of each class's logit on its own copy."""
    with torch.enable_grad():
        pixels = image.detach().repeat(len(classes), 1, 1, 1).requires_grad_()
        logits = model(pixels)
        return pixels, logits[torch.arange(len(classes)), list(classes.values())].float().sum()


def _features(model: nn.Module, image: Image, classes: dict[str, int], module: nn.Module) -> tuple[Tensor, Tensor]:
    """What a module made of each class's copy of the image, and the gradient of the class's logit by it."""
    made: list[Tensor] = []
    handle = module.register_forward_hook(lambda module, given, out: made.append(out))
    try:
        _, total = _logits(model, image, classes)
    finally:
        handle.remove()
    (gradient,) = torch.autograd.grad(total, made[-1], allow_unused=True)
    return made[-1].detach(), torch.zeros_like(made[-1]) if gradient is None else gradient


def _map(name: str, weights: Float[Tensor, "class key"], classes: dict[str, int], grid: Grid) -> Map:
    axis = Tokens(tuple(classes), ((0, 0),) * len(classes), "")
    return Map(name, "gradient", weights[None].detach().float().cpu(), axis, grid, (0,), tuple(range(len(classes))))


def _pool(seen: Trace, last: Map) -> Map | None:
    """The map of a pool that looks at what the last layer made, if there is one."""
    return next((own[0] for own in seen.values() if own[0].kind == "cross" and own[0].key == last.query), None)


def _by_class(gradient: Tensor, map: Map, classes: int) -> Float[Tensor, "class head query key"]:
    """The gradient by a layer's weights as its map has them."""
    if map.where is not None:
        places = torch.empty(len(map.key) + 1, dtype=torch.int64)
        places[map.where.flatten()] = torch.arange(map.where.numel())
        by_head = gradient.unflatten(0, (classes, -1)).transpose(1, 2)
        gradient = by_head.flatten(2, 3)[:, :, places[:-1].to(gradient.device)]
    return gradient.double().cpu()


def _feature_layer(model: nn.Module, image: Image, classes: dict[str, int], grid: Grid) -> str:
    """The last module that makes features on the grid, not inside of attention, which the answer depends on."""
    inside = [name for name, module in model.named_modules() if isinstance(module, Attention)]
    ran: list[tuple[str, Tensor]] = []

    def note(name: str):
        def hear(module: nn.Module, given, made) -> None:
            if isinstance(made, Tensor) and _cells(module, made, grid) is not None:
                ran.append((name, made))

        return hear

    handles = [
        module.register_forward_hook(note(name))
        for name, module in model.named_modules()
        if not any(name == layer or name.startswith(layer + ".") for layer in inside)
    ]
    try:
        _, total = _logits(model, image, dict([next(iter(classes.items()))]))
    finally:
        for handle in handles:
            handle.remove()
    gradients = torch.autograd.grad(total, [made for _, made in ran], allow_unused=True) if ran else ()
    for (name, _), gradient in list(zip(ran, gradients, strict=True))[::-1]:
        if gradient is not None and _cells(model.get_submodule(name), gradient, grid).any():
            return name
    raise ConfigError(f"no module makes features on a grid of {grid.rows} x {grid.columns} cells")


def _cells(module: nn.Module, made: Tensor, grid: Grid) -> Float[Tensor, "batch cell channel"] | None:
    """Features as a list of cells, without extra tokens; None if they do not lie on the grid."""
    sides = (grid.rows, grid.columns)
    if made.dim() == 3 and made.shape[1] == len(grid):
        return made[:, len(grid.prefix) :]
    if made.dim() != 4:
        return None
    first, last = tuple(made.shape[2:]) == sides, tuple(made.shape[1:3]) == sides
    if first and (not last or any(isinstance(part, nn.Conv2d) for part in module.modules())):
        return made.flatten(2).transpose(1, 2)
    return made.flatten(1, 2) if last else None
