"""Figures about a map: how sharp each head is, how far it looks, what it adds up to over a stack of layers.

Measures of alignment (`qkv.look.alignment`), of faithfulness (`qkv.look.faithfulness`) and of the difference of two
records (`qkv.look.diff`) have files of their own and can be had from here too.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.axis import Axis, Tokens
from qkv.errors import RunError
from qkv.look.alignment import (
    Gold,
    Link,
    Reader,
    alignment_error_rate,
    choose_reader,
    format_pharaoh,
    parse_pharaoh,
    read_pharaoh,
    word_weights,
)
from qkv.look.diff import Difference, diff
from qkv.look.faithfulness import Faithfulness, deletion_insertion
from qkv.look.record import Map, Trace

__all__ = [
    "Difference",
    "Faithfulness",
    "Gold",
    "Link",
    "Reader",
    "alignment_error_rate",
    "choose_reader",
    "deletion_insertion",
    "diff",
    "distance",
    "entropy",
    "format_pharaoh",
    "max_entropy",
    "merge_words",
    "parse_pharaoh",
    "read_pharaoh",
    "rollout",
    "rollouts",
    "word_weights",
]


# --- Single heads --------------------------------------------------------------------------------------------------


def entropy(map: Map) -> Float[Tensor, "head query"]:
    """Entropy in nats of each row: 0 where a head looks at one key only, `max_entropy` where it looks at all alike.

    Vig & Belinkov 2019, "Analyzing the Structure of Attention in a Transformer Language Model", equation 4. A row
    without any weight has entropy 0.
    """
    return torch.special.entr(map.weights.double()).sum(-1).float()


def max_entropy(map: Map) -> Float[Tensor, " query"]:
    """The most that `entropy` can be: the logarithm of the number of keys which each query may look at."""
    keys = torch.full((len(map.queries),), len(map.key))
    if map.causal:
        keys = torch.minimum(torch.tensor(map.queries) + 1, keys)
    return keys.clamp_min(1).double().log().float()


def distance(map: Map) -> Float[Tensor, "head query"]:
    """Mean attention distance of each row: how many positions away a head looks, ``sum_j w_ij |i - j|``.

    Vig & Belinkov 2019, equation 3 (there averaged over a corpus). Only for self-attention: positions of two texts
    have no distance.
    """
    if map.kind in ("cross", "gradient") or len(map.query) != len(map.key):
        raise RunError(
            f"{map.name} looks from one sequence into another",
            expected="self-attention",
            remedy="take the distance of maps of kind 'self'",
        )
    apart = (torch.tensor(map.queries)[:, None] - torch.arange(len(map.key))[None, :]).abs()
    return (map.weights.cpu().double() * apart).sum(-1).float()


# --- Words ---------------------------------------------------------------------------------------------------------


def merge_words(map: Map) -> Map:
    """The map between words instead of pieces, on each axis that is a text.

    What a piece looks at in a word is the sum over the word's pieces; where a word looks is the mean over its pieces
    (Clark et al. 2019, "What Does BERT Look At?", section 4.1), so that rows still sum to one. Pieces of a word that
    have no weight at all are left out of its mean; a word of which no row was recorded has no row.
    """
    weights, query, key, queries = map.weights.double(), map.query, map.key, map.queries
    if isinstance(key, Tokens):
        key, groups = _words(key)
        total = weights.new_zeros(len(map.key), len(groups))
        for word, positions in enumerate(groups):
            total[list(positions), word] = 1
        weights = weights @ total
    if isinstance(query, Tokens):
        query, groups = _words(query)
        row_of = {position: row for row, position in enumerate(map.queries)}
        rows = [[row_of[p] for p in positions if p in row_of] for positions in groups]
        queries = tuple(word for word, found in enumerate(rows) if found)
        merged = weights.new_zeros(len(weights), len(queries), weights.shape[-1])
        for row, word in enumerate(queries):
            block = weights[:, rows[word]]
            filled = (block.sum(-1, keepdim=True) > 0).sum(1).clamp_min(1)
            merged[:, row] = block.sum(1) / filled
        weights = merged
    return replace(map, weights=weights.float(), query=query, key=key, queries=queries)


def _words(axis: Tokens) -> tuple[Tokens, list[tuple[int, ...]]]:
    words = axis.words()
    merged = Tokens(tuple(word.text for word in words), tuple(word.span for word in words), axis.text)
    return merged, [word.positions for word in words]


# --- Stacks of layers ----------------------------------------------------------------------------------------------


def rollout(maps: Sequence[Map], residual: float = 0.5, name: str = "rollout") -> Map:
    """What each position of a stack's output draws from each position of its input, through all layers.

    Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3: each layer's weights, averaged over
    heads, are mixed with the identity for the residual connection, ``A = (1 - r) W + r I`` with ``r = 0.5``, rows made
    to sum to one, and the matrices multiplied. A position that may attend nowhere keeps itself.

    Args:
        maps: the self-attention maps of one example, first layer first, with every row.
        residual: the share of a position's own stream.
    """
    if not maps:
        raise RunError("no map to roll out", expected="the self-attention maps of a stack of layers")
    total = None
    for map in maps:
        _check_square(map, maps[0].key)
        own = torch.eye(len(map.key), dtype=torch.float64)
        mixed = (1 - residual) * map.weights.cpu().double().mean(0) + residual * own
        empty = mixed.sum(-1, keepdim=True) == 0
        mixed = torch.where(empty, own, mixed)
        mixed = mixed / mixed.sum(-1, keepdim=True)
        total = mixed if total is None else mixed @ total
    return Map(name, "self", total.float()[None], maps[0].query, maps[0].key, (0,), maps[0].queries, maps[0].causal)


def rollouts(trace: Trace) -> list[Map]:
    """The rollouts of the first example of a trace: of its encoder stack, and from its decoder to the encoder's input.

    The second is the last cross-attention layer (averaged over heads) times the encoder's rollout: for each decoder
    position, where what it took from the encoder came from. What passed on from one decoder layer or position to the
    next is left out of it on purpose: that would name earlier cross-attention reads as if they were this step's.
    A stack of which not every row was recorded, or whose maps are windowed, has none.
    """
    stacks: dict[str, list[Map]] = {}
    for map in trace.example(0).select(kind="self") if len(trace) else []:
        if not map.causal:
            stacks.setdefault(re.split(r"\.\d+(?:\.|$)", map.name)[0], []).append(map)
    found = []
    for stack, maps in stacks.items():
        if all(_is_square(map, maps[0].key) for map in maps):
            found.append(rollout(maps, name=f"{stack}.rollout"))
    for cross in [maps[0] for maps in trace.values() if maps[0].kind == "cross"][-1:]:
        for encoder in found[:]:
            if encoder.key == cross.key and cross.where is None:
                weights = cross.weights.cpu().double().mean(0, keepdim=True) @ encoder.weights.double()
                name = f"{cross.name}.rollout"
                found.append(replace(cross, name=name, weights=weights.float(), key=encoder.key, heads=(0,)))
    return found


def _is_square(map: Map, axis: Axis) -> bool:
    return map.where is None and map.query == map.key == axis and map.queries == tuple(range(len(axis)))


def _check_square(map: Map, axis: Axis) -> None:
    if not _is_square(map, axis):
        raise RunError(
            f"{map.name} cannot be rolled out",
            expected="self-attention with every row, without windows",
            remedy="trace the stack without queries=...",
        )
