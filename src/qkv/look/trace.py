"""Seeing inside: a trace sets a tap on attention layers, records what they look at, and removes it again.

The answer never changes. The output still comes from the fused kernel; the tap computes softmax(QK) beside it, and only
for the layers, heads and rows asked for. A trace with an ``edit`` says that it intervenes and takes the explicit path.
"""

import fnmatch
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Axis, Tokens
from qkv.errors import ConfigError
from qkv.layers.attention import Attention, KeyValue, attention_weights
from qkv.layers.mask import Mask
from qkv.layers.position import Learned, Sinusoidal, similarity
from qkv.layers.score import Score
from qkv.look.record import Map, Trace

__all__ = ["Edit", "ablate", "position_maps", "trace"]

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

    Args:
        module: any module of the package, or one that holds them; a compiled one is run uncompiled meanwhile.
        batch: what the module will be given; its ``axes`` say what each position is (bare indices without it).
        layers: names to record, ``*`` matching anything: ``"decoder.*.cross"``, or several such.
        heads, queries: only these heads, and only these rows (negative ones count from the end of each example).
        edit: ``edit(name, weights) -> weights`` changes what the layers use: head ablation (see `ablate`), patching.
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
    known = {n.replace("_orig_mod.", ""): m for n, m in module.named_modules() if isinstance(m, Attention)}
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
        if not isinstance(table, (Sinusoidal, Learned)) or stream not in axes:
            continue
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            with torch.no_grad():
                grids = [similarity(table(0, len(axis)))[None].cpu() for axis in axes[stream]]
            found.maps[name] = [
                Map(name, "position", grid, axis, axis, (0,), tuple(range(len(axis))))
                for grid, axis in zip(grids, axes[stream], strict=True)
            ]
    return found


_OPENING = threading.Lock()


class _Tap:
    """Sits on one layer. It listens to the thread that opened the trace only: another's request passes unrecorded."""

    def __init__(self, name: str, layer: Attention, seen: Trace, heads, queries, edit: Edit | None, axes):
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
        queries, keys = query.shape[-2], memory.key.shape[-2]
        view = _View(self, len(query), queries, keys)
        query, keep, bias = view.cut(query), view.cut(mask.dense(queries, keys, query.device)), view.cut(bias)
        scores = score.scores(query, _pick(memory.key, -3, self.heads))
        view.record(attention_weights(scores if bias is None else scores + bias, keep), mask.causal)

    def edit(self, weights: Tensor, mask: Mask) -> Tensor:
        """What the layer shall use instead of ``weights``; that is what is recorded."""
        weights = self.edit_weights(self.name, weights)
        view = _View(self, len(weights), *weights.shape[-2:])
        view.record(view.cut(weights.detach()), mask.causal)
        return weights


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
        self.rows = [[row for row in self._rows(len(axis)) if first <= row < last] for axis in self.query_axes]
        # All examples are computed at once, over every row that any of them wants.
        self.wanted = sorted({row - first for rows in self.rows for row in rows})
        self.places = [[bisect_left(self.wanted, row - first) for row in rows] for rows in self.rows]

    def cut(self, values: Tensor | None) -> Tensor | None:
        """Heads and wanted rows of something shaped, or broadcast, as ``(batch, head, query, ...)``."""
        return _pick(_pick(values, -2, self.wanted), -3, self.tap.heads)

    def record(self, weights: Float[Tensor, "batch head wanted key"], causal: bool) -> None:
        tap, weights = self.tap, weights.float().cpu()
        kind = "self" if tap.between[0] == tap.between[1] else "cross"
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

    def _rows(self, length: int) -> list[int]:
        queries = range(length) if self.tap.queries is None else self.tap.queries
        if bad := [row for row in queries if not -length <= row < length]:
            raise ConfigError(f"{self.tap.name} has no query {bad[0]} in a text of {length} positions")
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
