"""Figures about a map: how sharp each head is, how far it looks, what it says between words.

What a stack of layers adds up to (`qkv.look.rollout`) and measures of alignment (`qkv.look.alignment`), of faithfulness
(`qkv.look.faithfulness`) and of the difference of two records (`qkv.look.diff`) have files of their own and can be had
from here too.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.axis import Grid, Tokens
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
from qkv.look.record import Map
from qkv.look.rollout import rollout, rollouts

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
    "first_rows",
    "format_pharaoh",
    "max_entropy",
    "merge_words",
    "parse_pharaoh",
    "pixel_distance",
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


def pixel_distance(map: Map) -> Float[Tensor, "head query"]:
    """Mean attention distance of each row in pixels: ``sum_j w_ij d_ij``, d between the middles of the two cells.

    Dosovitskiy et al. 2021, figure 7 and appendix D.7 (there averaged over many images and all queries). Extra tokens
    have no place: their rows are NaN, and what a row gave to them, or to padding, is left out and the rest made to sum
    to one. A row that gave all its weight away is NaN.
    """
    if not (isinstance(map.query, Grid) and isinstance(map.key, Grid)):
        raise RunError(f"{map.name} does not look from cell to cell", expected="a map over the grid of an image")
    starts, ends = (torch.tensor(_middles(axis), dtype=torch.float64) for axis in (map.query, map.key))
    cells = torch.arange(len(map.key)).expand(len(map.queries), -1) if map.where is None else map.places()
    ends = torch.cat([ends, ends.new_full((1, 2), torch.nan)])[cells]  # padding, at -1, has no place either
    apart = (starts[list(map.queries)][:, None] - ends).norm(dim=-1)
    weights = map.weights.cpu().double() * ~ends.isnan().any(-1)
    far = (weights * apart.nan_to_num()).sum(-1) / weights.sum(-1)
    return far.masked_fill(starts[list(map.queries)].isnan().any(-1), torch.nan).float()


def _middles(axis: Grid) -> list[tuple[float, float]]:
    """The middle of each position's whole cell in pixels; NaN for extra tokens."""
    tall, wide = axis.sides
    cells = [((row + 0.5) * tall, (column + 0.5) * wide) for row in range(axis.rows) for column in range(axis.columns)]
    return [(math.nan, math.nan)] * len(axis.prefix) + cells


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


def first_rows(maps: Sequence[Map]) -> Map | None:
    """What the first token looked at in each layer, a row a layer: of [CLS], off which an answer is read.

    None where the first row of some layer was not recorded, or layers differ in their heads or in what they look at.
    """
    if not maps or any((map.key, map.heads) != (maps[0].key, maps[0].heads) or map.where is not None for map in maps):
        return None
    if any(0 not in map.queries for map in maps):
        return None
    weights = torch.stack([map.row(0) for map in maps], 1)
    names = tuple(f"layer {number}" for number in range(1, len(maps) + 1))
    ends = [sum(len(name) + 1 for name in names[:i]) for i in range(len(names))]
    spans = tuple((end, end + len(name)) for end, name in zip(ends, names, strict=True))
    layers = Tokens(names, spans, " ".join(names))
    return replace(maps[0], name="[CLS]", weights=weights, query=layers, queries=tuple(range(len(maps))))
