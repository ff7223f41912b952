"""Seeing inside: a trace sets a tap on attention layers, records what they look at, and removes it again.

The answer never changes. The output still comes from the fused kernel; the tap computes softmax(QK) beside it, and only
for the layers, heads and rows asked for. A trace with an ``edit`` says that it intervenes and takes the explicit path.
"""

import fnmatch
import math
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Axis, Grid, Tokens
from qkv.errors import ConfigError
from qkv.layers.attention import Attention, KeyValue, attention_weights
from qkv.layers.mask import Mask
from qkv.layers.mixing import TokenMixing
from qkv.layers.position import Learned, LearnedGrid, RelativeBias, Sinusoidal, similarity
from qkv.layers.score import Score
from qkv.layers.window import WindowMask, Windows
from qkv.look.record import Map, Trace

__all__ = ["Edit", "ablate", "bias_maps", "no_attention", "position_maps", "trace"]

Edit = Callable[[str, Float[Tensor, "batch head query key"]], Float[Tensor, "batch head query key"]]


@contextmanager
def trace(
    module: nn.Module,
    batch=None,
    *,
    layers: str | Sequence[str] = "*",
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    edit: Edit | None = None,
    axes: Mapping[str, Sequence[Axis]] | None = None,
) -> Iterator[Trace]:
    """Record what the attention layers of ``module`` look at while the ``with`` block runs it.

    Layers that mix tokens are recorded too, with the kind ``"mixing"`` (see `TokenMixing` for what their maps say). The
    maps of windowed layers stay windowed (see `Map.where`).

    Args:
        module: any module of the package, or one that holds them; a compiled one is run uncompiled meanwhile.
        batch: what the module will be given; its ``axes`` say what each position is (bare indices without it).
        layers: names to record, ``*`` matching anything: ``"decoder.*.cross"``, or several such.
        heads, queries: only these heads, and only these rows (negative ones count from the end of each example).
        edit: ``edit(name, weights) -> weights`` changes what the layers use: head ablation (see `ablate`), patching.
            The examples of a windowed layer are its windows; a layer that mixes has nothing to edit.
        axes: what each position is, by stream name, for each example; goes before those of ``batch``.

    Yields:
        The `Trace`, filled as the layers run. A layer that runs twice is recorded once, by its last run; but where the
        axes say that there are more queries than a run has, as in a decoder that looks step by step, runs go on from
        each other until all are there.

    Raises:
        ConfigError: no layer matches, or the module is already being traced.
    """
    patterns = [layers] if isinstance(layers, str) else list(layers)
    # What is compiled goes by the names of what it was compiled from.
    tappable = (Attention,) if edit is not None else (Attention, TokenMixing)
    known = {n.replace("_orig_mod.", ""): m for n, m in module.named_modules() if isinstance(m, tappable)}
    chosen = {n: layer for n, layer in known.items() if any(fnmatch.fnmatchcase(n, p) for p in patterns)}
    if not chosen:
        raise ConfigError(f"no attention layer matches {layers!r}", remedy=f"layers here: {', '.join(known) or 'none'}")
    if axes is None:
        axes = getattr(batch, "axes", None)
    seen = Trace()
    taps = {name: _Tap(name, layer, seen, heads, queries, edit, axes) for name, layer in chosen.items()}
    with _OPENING:
        if any(layer.tap is not None for layer in chosen.values()):
            raise ConfigError(
                "this module is already being traced", remedy="close the first trace, or look at other layers"
            )
        for name, layer in chosen.items():
            layer.tap = taps[name]
    try:
        # Nothing is compiled where the compiler was never loaded; to load it only to hold it back would take seconds.
        with torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext():
            yield seen
    finally:
        for layer in chosen.values():
            layer.tap = None


def no_attention(which: Mapping[str, Any], instead: str) -> str:
    """A remark for who looks at a model without attention: what is shown ``instead``.

    Args:
        which: what was asked for, as `trace` takes it.

    Raises:
        ConfigError: heads are asked for, or rows, which such a model has not.
    """
    for key, option in (("heads", "--heads"), ("queries", "--first")):
        if which.get(key) is not None:
            raise ConfigError(f"this model has no attention, and so no {key} to choose", remedy=f"leave {option} out")
    return f"This model has no attention. {instead}"


def ablate(heads: Mapping[str, Sequence[int]]) -> Edit:
    """An edit that silences heads: ``ablate({"decoder.1.cross": [0, 3]})`` makes their weights zero."""

    def edit(name: str, weights: Tensor) -> Tensor:
        silenced = [head for pattern, chosen in heads.items() if fnmatch.fnmatchcase(name, pattern) for head in chosen]
        if silenced:
            weights = weights.clone()
            weights[:, silenced] = 0
        return weights

    return edit


def position_maps(module: nn.Module, axes: Mapping[str, Sequence[Axis]], layers: str | Sequence[str] = "*") -> Trace:
    """How alike each two positions are, for every table of positions that matches ``layers``, as maps of one head.

    A stream's embedding has the stream's name, and its table lies in it: ``source.position``.
    """
    patterns = [layers] if isinstance(layers, str) else list(layers)
    found = Trace()
    for name, table in module.named_modules():
        stream = name.split(".")[0]
        if not isinstance(table, (Sinusoidal, Learned, LearnedGrid)) or stream not in axes:
            continue
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            found.maps[name] = [_position_map(name, table, axis) for axis in axes[stream]]
    return found


@torch.no_grad()
def _position_map(name: str, table: nn.Module, axis: Axis) -> Map:
    if isinstance(table, LearnedGrid):
        axis = replace(axis, prefix=axis.prefix[: table.prefix])  # registers have no position
        rows = table(axis.rows, axis.columns)[0]
    else:
        rows = table(0, len(axis))
    return Map(name, "position", similarity(rows)[None].cpu(), axis, axis, (0,), tuple(range(len(axis))))


def bias_maps(module: nn.Module, layers: str | Sequence[str] = "*") -> Trace:
    """What each head adds for each distance, of every relative position bias that matches ``layers``.

    A map of one row, over (2M - 1) x (2M - 1) distances of the query from the key; the middle one is of a cell itself.
    """
    patterns = [layers] if isinstance(layers, str) else list(layers)
    found = Trace()
    for name, bias in module.named_modules():
        if isinstance(bias, RelativeBias) and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            side = math.isqrt(len(bias.table))
            query, key = Tokens(("bias",), ((0, 0),), ""), Grid(side, side, (side, side))
            weights = bias.table.detach().T[:, None].float().cpu()
            found.maps[name] = [Map(name, "position", weights, query, key, tuple(range(len(weights))), (0,))]
    return found


_OPENING = threading.Lock()


class _Tap:
    """Sits on one layer. It listens to the thread that opened the trace only: another's request passes unrecorded."""

    def __init__(self, name: str, layer: Attention | TokenMixing, seen: Trace, heads, queries, edit: Edit | None, axes):
        self.name, self.between, self.seen, self.edit_weights = name, layer.between, seen, edit
        self.heads = list(range(layer.heads)) if heads is None else list(heads)
        self.queries, self.axes = queries, axes or {}
        self.reached = 0  # of a layer that looks step by step: the first query of the next run
        self.thread = threading.get_ident()
        if not self.heads:
            raise ConfigError("no head is asked for", expected=f"some of 0 to {layer.heads - 1}, or None for all")
        if bad := [head for head in self.heads if not 0 <= head < layer.heads]:
            raise ConfigError(f"{name} has no head {bad[0]}", expected=f"0 to {layer.heads - 1}")

    @property
    def intervenes(self) -> bool:
        return self.edit_weights is not None and threading.get_ident() == self.thread

    @torch.no_grad()
    def see(self, query: Tensor, memory: KeyValue, score: Score, mask: Mask, bias: Tensor | None) -> None:
        """Compute and record the weights of the heads and rows asked for."""
        if threading.get_ident() != self.thread:
            return
        if isinstance(mask, WindowMask):
            view = _WindowView(self, len(query), mask.windows)
            scores = score.scores(view.cut(query), view.cut(memory.key))
            scores = scores if bias is None else scores + view.cut(bias)
            view.record(attention_weights(scores, view.cut(mask.keep)))
            return
        queries, keys = query.shape[-2], memory.key.shape[-2]
        view = _View(self, len(query), queries, keys)
        query, keep, bias = view.cut(query), view.cut(mask.dense(queries, keys, query.device)), view.cut(bias)
        scores = score.scores(query, _pick(memory.key, -3, self.heads))
        view.record(attention_weights(scores if bias is None else scores + bias, keep), mask.causal)

    def edit(self, weights: Tensor, mask: Mask) -> Tensor:
        """What the layer shall use instead of ``weights``; that is what is recorded."""
        weights = self.edit_weights(self.name, weights)
        if isinstance(mask, WindowMask):
            view = _WindowView(self, len(weights), mask.windows)
            view.record(view.cut(weights.detach()))
            return weights
        view = _View(self, len(weights), *weights.shape[-2:])
        view.record(view.cut(weights.detach()), mask.causal)
        return weights

    @torch.no_grad()
    def mixed(self, matrix: Float[Tensor, "batch token token"]) -> None:
        """Record what a layer that mixes its tokens says of it."""
        if threading.get_ident() == self.thread:
            view = _View(self, *matrix.shape)
            view.record(view.cut(matrix[:, None]), causal=False, kind="mixing")


class _View:
    """What a tap records of one run of its layer: heads, the axes of each example, and the rows wanted of each."""

    def __init__(self, tap: _Tap, examples: int, queries: int, keys: int):
        self.tap = tap
        self.query_axes, self.key_axes = (
            list(tap.axes[stream]) if stream in tap.axes else [_bare(longest)] * examples
            for stream, longest in zip(tap.between, (queries, keys), strict=True)
        )
        whole = max(map(len, self.query_axes))
        first, last = (0, whole) if queries >= whole else (tap.reached, tap.reached + queries)
        self.goes_on, tap.reached = first > 0, last % whole if whole else 0
        self.rows = [
            [row for row in _rows(tap.name, len(axis), tap.queries) if first <= row < last] for axis in self.query_axes
        ]
        # All examples are computed at once, over every row that any of them wants.
        self.wanted = sorted({row - first for rows in self.rows for row in rows})
        self.places = [[bisect_left(self.wanted, row - first) for row in rows] for rows in self.rows]

    def cut(self, values: Tensor | None) -> Tensor | None:
        """Heads and wanted rows of something shaped, or broadcast, as ``(batch, head, query, ...)``."""
        return _pick(_pick(values, -2, self.wanted), -3, self.tap.heads)

    def record(self, weights: Float[Tensor, "batch head wanted key"], causal: bool, kind: str | None = None) -> None:
        tap, weights = self.tap, weights.float().cpu()
        kind = kind or ("self" if tap.between[0] == tap.between[1] else "cross")
        maps = [
            Map(
                tap.name, kind, weights[i][:, self.places[i], : len(key_axis)],
                query_axis, key_axis, tuple(tap.heads), tuple(self.rows[i]), causal,
            )
            for i, (query_axis, key_axis) in enumerate(zip(self.query_axes, self.key_axes, strict=True))
        ]  # fmt: skip
        if self.goes_on:
            maps = [_joined(*both) for both in zip(tap.seen.maps[tap.name], maps, strict=True)]
        tap.seen.maps[tap.name] = maps


class _WindowView:
    """What a tap records of one run of a windowed layer, whose examples are windows: heads, and the windows wanted."""

    def __init__(self, tap: _Tap, examples: int, windows: Windows):
        self.tap, self.windows, self.where = tap, windows, windows.where()
        positions, cells = windows.grid[0] * windows.grid[1], self.where.shape[1]
        bare = Grid(*windows.grid, image=windows.grid)
        self.axes = list(tap.axes.get(tap.between[0], [bare] * (examples // windows.count)))
        self.rows = _rows(tap.name, positions, tap.queries)
        # Where each position lies among the places of all windows; padding, at -1, falls to the one past the last.
        places = torch.empty(positions + 1, dtype=torch.int64)
        places[self.where.flatten()] = torch.arange(self.where.numel())
        wanted = places[self.rows]
        chosen = (wanted // cells).unique()
        self.chosen, self.places = chosen.tolist(), torch.searchsorted(chosen, wanted // cells) * cells + wanted % cells

    def cut(self, values: Tensor | None) -> Tensor | None:
        """Heads and wanted windows of something shaped, or broadcast, as ``(example x window, head, ...)``."""
        values = _pick(values, -3, self.tap.heads)
        if values is None or len(values) == 1:
            return values
        return _pick(values.unflatten(0, (-1, self.windows.count)), -4, self.chosen).flatten(0, 1)

    def record(self, weights: Float[Tensor, "windows head cell cell"]) -> None:
        """Each query's row, in the order of the grid; its columns are the places of its own window."""
        by_head = weights.unflatten(0, (len(self.axes), -1)).transpose(1, 2)
        rows = by_head.flatten(2, 3).index_select(2, self.places.to(weights.device)).float().cpu()
        self.tap.seen.maps[self.tap.name] = [
            Map(self.tap.name, "self", own, axis, axis, tuple(self.tap.heads), tuple(self.rows), where=self.where)
            for own, axis in zip(rows, self.axes, strict=True)
        ]


def _rows(name: str, length: int, queries: Sequence[int] | None) -> list[int]:
    """The rows wanted of an axis; negative ones count from its end."""
    queries = range(length) if queries is None else queries
    if bad := [row for row in queries if not -length <= row < length]:
        raise ConfigError(f"{name} has no query {bad[0]} among {length} positions")
    return sorted({row % length for row in queries})


def _joined(earlier: Map, later: Map) -> Map:
    """The rows of two runs of a layer that looks step by step."""
    weights = torch.cat([earlier.weights, later.weights], 1)
    return replace(earlier, weights=weights, queries=earlier.queries + later.queries)


def _pick(values: Tensor | None, dim: int, wanted: list[int]) -> Tensor | None:
    """``values`` at ``wanted`` along ``dim``; as they are where they are broadcast over it, or all are wanted."""
    if values is None or values.dim() < -dim or values.shape[dim] == 1 or wanted == list(range(values.shape[dim])):
        return values
    return values.index_select(dim, torch.tensor(wanted, device=values.device))


def _bare(length: int) -> Tokens:
    return Tokens(tuple(str(i) for i in range(length)), ((0, 0),) * length, "")
