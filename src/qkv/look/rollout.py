"""What a stack of layers adds up to: what each position of its output draws from each position of its input.

Rows are followed from the top down, so that a windowed layer is multiplied window by window and never laid out whole,
and a grid whose cells were merged on the way (Liu et al. 2021, section 3.1) goes on as the larger grid below it: a
merged cell draws on its four alike.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkv.axis import Axis, Grid
from qkv.errors import ConfigError, RunError, nearest
from qkv.look.record import Map, Trace

__all__ = ["FUSIONS", "gradient_rollout", "rollout", "rollouts", "stacks"]

FUSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda heads: heads.mean(0),
    "max": lambda heads: heads.amax(0),
    "min": lambda heads: heads.amin(0),
}
# Of a layer: the share of itself that each position keeps, and what it takes of the others.
Mixing = Callable[[Map], tuple[Float[Tensor, "query 1"], Float[Tensor, "query key"]]]


def rollout(
    maps: Sequence[Map], residual: float = 0.5, fusion: str = "mean", discard: float = 0.0, name: str = "rollout"
) -> Map:
    """What each position of a stack's output draws from each position of its input, through all layers.

    Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3: each layer's weights, averaged over
    heads, are mixed with the identity for the residual connection, ``A = (1 - r) W + r I`` with ``r = 0.5``, rows made
    to sum to one, and the matrices multiplied. A position that may attend nowhere keeps itself.

    Args:
        maps: the self-attention maps of one example, first layer first, with every row.
        residual: the share of a position's own stream.
        fusion: what is made of the heads: mean, max or min of each weight.
        discard: the share of each row's keys that is left out, the smallest weights first.

    Returns:
        A map from the positions after the last layer to those before the first.
    """
    if fusion not in FUSIONS:
        raise ConfigError(f"heads cannot be fused by {fusion!r}", remedy=nearest(fusion, FUSIONS))
    for what, value in {"residual": residual, "discard": discard}.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{what} is {value}", expected="a share from 0 to 1")

    def mixing(map: Map) -> tuple[Tensor, Tensor]:
        weights = FUSIONS[fusion](map.weights.cpu().double())
        if discard:
            least = weights.argsort(-1)[:, : int(discard * weights.shape[-1])]
            weights = weights.scatter(-1, least, 0.0)
        if map.where is not None:
            weights = weights.masked_fill(map.places() < 0, 0.0)
        mixed = (1 - residual) * weights
        whole = residual + mixed.sum(-1, keepdim=True)
        empty = whole == 0
        whole = whole.masked_fill(empty, 1.0)
        return torch.where(empty, 1.0, residual / whole), mixed / whole

    if not maps:
        raise RunError("no map to roll out", expected="the self-attention maps of a stack of layers")
    if odd := _odd(maps):
        raise RunError(
            f"{odd[0].name} cannot be rolled out",
            expected="self-attention with every row, on the grid of the layer before or one of half its sides",
            remedy="trace the stack without queries=...",
        )
    first, last = maps[0], maps[-1]
    rows = _drawn(maps, mixing, torch.eye(len(last.query), dtype=torch.float64))
    return Map(name, "self", rows.float()[None], last.query, first.key, (0,), last.queries, last.causal)


def gradient_rollout(
    maps: Sequence[Map], gradients: Sequence[Float[Tensor, "head query key"]], rows: Float[Tensor, "row query"]
) -> Float[Tensor, "row key"]:
    """As `rollout`, for one answer: each weight counts by what a larger one would add to it.

    Chefer, Gur & Wolf 2021, "Generic Attention-model Explainability", equations 5 and 6: ``A = mean over heads of the
    positive part of (gradient x weight)``, and from the first layer up ``R = R + A R``, begun with the identity.

    Args:
        maps: the self-attention maps of one example, first layer first, with every row.
        gradients: the gradient of the answer by each of their weights.
        rows: shares of the positions after the last layer, in what the answer is read from.

    Returns:
        ``rows R``: relevances, which sum to nothing in particular.
    """

    def mixing(map: Map) -> tuple[Tensor, Tensor]:
        weighted = (map.weights.cpu().double() * by_name[map.name]).clamp_min(0)
        return weighted.new_ones(len(map.query), 1), weighted.mean(0)

    by_name = {map.name: gradient for map, gradient in zip(maps, gradients, strict=True)}
    return _drawn(maps, mixing, rows)


def rollouts(trace: Trace, residual: float = 0.5, fusion: str = "mean", discard: float = 0.0) -> list[Map]:
    """The rollouts of the first example of a trace: of its encoder stack, and from what looks into it to its input.

    The second is the last cross-attention layer (averaged over heads) times the encoder's rollout: for each decoder
    position, where what it took from the encoder came from. What passed on from one decoder layer or position to the
    next is left out of it on purpose: that would name earlier cross-attention reads as if they were this step's.
    A stack of which not every row was recorded has none.
    """
    found = [rollout(maps, residual, fusion, discard, f"{stack}.rollout") for stack, maps in stacks(trace).items()]
    for cross in [maps[0] for maps in trace.values() if maps[0].kind == "cross"][-1:]:
        for encoder in found[:]:
            if encoder.query == cross.key and cross.where is None:
                weights = cross.weights.cpu().double().mean(0, keepdim=True) @ encoder.weights.double()
                name = f"{cross.name}.rollout"
                found.append(replace(cross, name=name, weights=weights.float(), key=encoder.key, heads=(0,)))
    return found


def stacks(trace: Trace) -> dict[str, list[Map]]:
    """The first example's stacks of self-attention that can be rolled out, by the name before the layers' numbers."""
    found: dict[str, list[Map]] = {}
    for map in trace.example(0).select(kind="self") if len(trace) else []:
        if not map.causal:
            found.setdefault(re.split(r"\.\d+(?:\.|$)", map.name)[0], []).append(map)
    return {stack: maps for stack, maps in found.items() if not _odd(maps)}


def _drawn(maps: Sequence[Map], mixing: Mixing, rows: Float[Tensor, "row query"]) -> Float[Tensor, "row key"]:
    """Shares of the positions after the last layer, followed down to the positions before the first."""
    here = maps[-1].query
    for map in reversed(maps):
        if map.query != here:
            rows, here = rows[:, _parents(map.query, here)] / _children(map.query, here), map.query
        own, taken = mixing(map)
        rows = rows * own[:, 0] + _times(rows, taken, map.where)
    return rows


def _times(
    rows: Float[Tensor, "row query"], weights: Float[Tensor, "query key"], where: Int[Tensor, "window cell"] | None
) -> Float[Tensor, "row key"]:
    """``rows @ weights``; of a windowed layer window by window. What goes to padding is lost."""
    if where is None:
        return rows @ weights
    # Padding, at -1, falls to one more position past the last, which holds nothing and is dropped.
    rows = torch.cat([rows, rows.new_zeros(len(rows), 1)], 1)
    weights = torch.cat([weights, weights.new_zeros(1, weights.shape[1])])
    taken = torch.einsum("rwq,wqk->rwk", rows[:, where], weights[where])
    whole = torch.zeros_like(rows)
    whole[:, where.flatten()] = taken.flatten(1)
    return whole[:, :-1]


def _parents(below: Grid, above: Grid) -> Int[Tensor, " cell"]:
    """The merged cell that each cell became a part of."""
    row, column = torch.arange(below.rows)[:, None] // 2, torch.arange(below.columns) // 2
    return (row * above.columns + column).flatten()


def _children(below: Grid, above: Grid) -> Float[Tensor, " cell"]:
    """Of each cell, how many became one with it, itself among them: four, but for the padded end of an odd side."""
    parents = _parents(below, above)
    return torch.bincount(parents, minlength=len(above))[parents].double()


def _odd(maps: Sequence[Map]) -> list[Map]:
    """The layers that lack rows, or stand neither on the positions of the one before nor on a grid merged from them."""
    return [
        map
        for before, map in zip([maps[0], *maps[:-1]], maps, strict=True)
        if not (map.query == map.key and map.queries == tuple(range(len(map.query))))
        or not (map.query == before.query or _is_merged(before.query, map.query))
    ]


def _is_merged(below: Axis, above: Axis) -> bool:
    return (
        isinstance(below, Grid)
        and isinstance(above, Grid)
        and not below.prefix
        and not above.prefix
        and (above.rows, above.columns) == (-(-below.rows // 2), -(-below.columns // 2))
    )
