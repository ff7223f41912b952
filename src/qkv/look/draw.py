"""Pictures of a trace for papers and slides: one map as a grid with its words, or all heads of all layers at once.

The file's suffix says the format. In ``.svg`` text stays text (it can be searched, and edited); ``.png`` is 200 dpi.
"""

import functools
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from qkv.axis import Axis, Frames, Grid, Tokens
from qkv.errors import ConfigError, RunError, nearest
from qkv.look.alignment import Reading, as_predicted, word_places
from qkv.look.measures import merge_words
from qkv.look.record import Map, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FAINT", "INK", "draw", "draw_heads", "grid_figure", "heads_figure", "labels", "save_figure"]

# Families that hold Hangul (and Han, kana), the plainest first; one is enough.
CJK_FAMILIES = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans KR",
    "Source Han Sans K",
    "Pretendard",
    "NanumGothic",
    "NanumBarunGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "Noto Serif CJK KR",
    "Noto Serif CJK JP",
    "UnDotum",
    "Baekmuk Gulim",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
)
INK, FAINT, RING = "#1d2433", "#8a92a3", "#c2571a"
MOST_LABELS = 80  # beyond it words would be smaller than they can be read


def labels(axis: Axis) -> list[str]:
    """What each position of an axis is called in a picture: the characters themselves, where it has any (a vocabulary's
    own spelling of a piece, such as ``▁cat``, is no text to show).
    """
    match axis:
        case Tokens():
            shown = (axis.text[start:end].strip() for start, end in axis.spans)
            return [text or piece for text, piece in zip(shown, axis.pieces, strict=True)]
        case Grid():
            return [*axis.prefix, *(f"{row},{column}" for row in range(axis.rows) for column in range(axis.columns))]
        case Frames():
            return [*axis.prefix, *(f"{time:g} s" for time in axis.times)]


def draw(
    trace: Trace,
    path: str | Path,
    layer: str | None = None,
    head: int | None = None,
    *,
    kind: str | None = None,
    words: bool = True,
    reading: Reading | None = None,
) -> None:
    """Write the map of one layer of a trace's first example as a grid, rows the queries and columns the keys.

    Where the trace's notes hold an alignment, the map it was read off is the one drawn by default, its links ringed.

    Args:
        path: ``.svg`` or ``.png``.
        layer: a name in the trace; else the alignment's layer, else the last cross-attention layer, else the last.
        head: one of the layer's heads; if not given the mean of all, or of those that the alignment was read off.
        kind: take the last layer of this kind instead.
        words: merge pieces into words.
        reading: whether a row of cross-attention is named by the word that its step takes in (``"shifted"``) or by the
            one that it predicts; as the alignment was read if not given.
    """
    note = trace.notes.get("alignment") or {}
    if layer is None and kind is None and note.get("layer") in trace:
        layer = note["layer"]
    map = _choose(trace, layer, kind)
    aligned = note.get("layer") == map.name
    if head is not None and head not in map.heads:
        raise ConfigError(f"no head {head} in {map.name}", expected=f"one of {list(map.heads)}")
    wanted = [head] if head is not None else note.get("heads") if aligned else None
    if wanted:
        rows = [index for index, known in enumerate(map.heads) if known in wanted]
        map = replace(map, weights=map.weights[rows], heads=tuple(map.heads[row] for row in rows))
    if map.kind in ("cross", "gradient") and (reading or note.get("reading")) == "unshifted":
        map = as_predicted(map)
    save_figure(grid_figure(map, words=words, links=note.get("links", ()) if aligned and words else ()), path)


def draw_heads(trace: Trace, path: str | Path, kind: str | None = None) -> None:
    """Write all heads of all layers of one kind (cross-attention where there is any), a row for each layer."""
    last = _choose(trace, None, kind)
    maps = [maps[0] for maps in trace.values() if maps and maps[0].kind == last.kind and maps[0].causal == last.causal]
    save_figure(heads_figure(maps), path)


def grid_figure(map: Map, *, words: bool = True, links: Sequence[Sequence[int]] = ()) -> "Figure":
    """One map, averaged over its heads, as a grid; ``links`` are (source word, target word) places to ring."""
    from matplotlib.figure import Figure

    _check_drawable(map)
    shown = merge_words(map) if words else map
    weights = shown.weights.float().mean(0).cpu()
    rows, columns = [labels(shown.query)[query] for query in shown.queries], labels(shown.key)
    with _style([*rows, *columns]):
        cell = 0.34 if max(len(rows), len(columns)) <= 40 else 0.16
        wide = min(max(len(columns) * cell, 1.2), 14)
        high = min(max(len(rows) * cell, 1.2), 14)
        left, top = _room(rows), _room(columns)
        figure = Figure(figsize=(max(wide + left + 0.9, 3.4), high + top + 0.95), layout="constrained")
        axes = figure.add_subplot()
        image = _paint(axes, weights, map.kind)
        _label(axes, rows, columns)
        if links:
            _ring(axes, shown, links)
        heads = f"head {map.heads[0]}" if len(map.heads) == 1 else f"mean of {len(map.heads)} heads"
        _text(axes.set_title(f"{map.name} · {heads}{_step(map)}", fontsize=8.5, color=FAINT, loc="left", pad=8))
        bar = figure.colorbar(image, ax=axes, shrink=min(1.0, 1.6 / high), aspect=12, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, length=0, colors=FAINT)
    return figure


def heads_figure(maps: Sequence[Map]) -> "Figure":
    """All heads of some layers as small grids: rows are layers, columns are heads, each on its own scale."""
    from matplotlib.figure import Figure

    if not maps:
        raise RunError("no map to draw", expected="the maps of one or more layers")
    for map in maps:
        _check_drawable(map)
    across = max(len(map.heads) for map in maps)
    with _style([]):
        figure = Figure(figsize=(0.95 * across + 0.8, 0.95 * len(maps) + 0.5), layout="constrained")
        grid = figure.subplots(len(maps), across, squeeze=False)
        for row, map in enumerate(maps):
            for column, axes in enumerate(grid[row]):
                axes.set_xticks([])
                axes.set_yticks([])
                if column >= len(map.heads):
                    axes.set_axis_off()
                    continue
                _paint(axes, map.weights[column].float().cpu(), map.kind)
                axes.set_aspect("auto")
                if row == 0:
                    axes.set_title(f"head {map.heads[column]}", fontsize=7.5, color=FAINT)
            _text(grid[row][0].set_ylabel(f"layer {row}", fontsize=7.5, color=FAINT))
        _text(figure.suptitle(_stack_name(maps), fontsize=8.5, color=INK, x=0.01, ha="left"))
    return figure


def _choose(trace: Trace, layer: str | None, kind: str | None) -> Map:
    if layer is not None:
        if layer not in trace:
            raise ConfigError(f"no layer {layer!r} in this trace", remedy=nearest(layer, trace))
        return trace[layer][0]
    kinds = [maps[0].kind for maps in trace.values() if maps]
    if not kinds:
        raise RunError("the trace holds no map", remedy="trace a forward pass")
    return trace.last(kind or next((known for known in ("cross", "gradient", "self") if known in kinds), kinds[-1]))


def _check_drawable(map: Map) -> None:
    if map.where is not None:
        raise RunError(f"{map.name} is windowed", expected="a map over whole sequences")


def _paint(axes, weights: Float[Tensor, "query key"], kind: str):
    """The grid itself; similarities of positions may be negative and get a scale with white at zero."""
    signed = kind == "position" and bool((weights < 0).any())
    top = float(weights.abs().max()) if weights.numel() else 0.0
    image = axes.imshow(
        weights.numpy(),
        cmap="RdBu_r" if signed else "Blues",
        interpolation="nearest",
        aspect="equal",
        vmin=-top if signed else 0.0,
        vmax=top or 1.0,
    )
    for spine in axes.spines.values():
        spine.set_color("#d5d9e0")
        spine.set_linewidth(0.6)
    return image


def _label(axes, rows: list[str], columns: list[str]) -> None:
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=INK)
    for names, axis in ((columns, "x"), (rows, "y")):
        step = 1 if len(names) <= MOST_LABELS else 1 + len(names) // 16
        shown = names if step == 1 else [str(place) for place in range(0, len(names), step)]
        size = 8 if len(names) <= 40 else 5.5
        ticks = getattr(axes, f"set_{axis}ticks")(range(0, len(names), step), shown, fontsize=size)
        for text in [tick.label1 for tick in ticks] + [tick.label2 for tick in ticks]:
            _text(text)
            if axis == "x" and step == 1:
                text.set(rotation=45, ha="left", va="bottom", rotation_mode="anchor")


def _text(text):
    """A user's text: a dollar sign in it is no formula."""
    text.set_parse_math(False)
    return text


def _step(map: Map) -> str:
    """Which step a row of a decoder's map is: told by the mark that stands first (input) or last (prediction)."""
    if map.kind not in ("cross", "gradient") or not isinstance(map.query, Tokens) or not len(map.query):
        return ""
    first, last = map.query.spans[0], map.query.spans[-1]
    if first[0] == first[1]:
        return "\nrow: the word that comes in"
    return "\nrow: the word that is predicted" if last[0] == last[1] else ""


def _ring(axes, shown: Map, links: Sequence[Sequence[int]]) -> None:
    from matplotlib.patches import Rectangle

    column_of = {place: column for column, place in enumerate(word_places(shown.key))}
    target = word_places(shown.query)
    row_of = {target[query]: row for row, query in enumerate(shown.queries)}
    for source_word, target_word in links:
        if source_word in column_of and target_word in row_of:
            corner = column_of[source_word] - 0.42, row_of[target_word] - 0.42
            axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=RING, linewidth=1.3))


def _room(names: list[str]) -> float:
    """Inches that labels want beside the grid; Hangul and Han are twice as wide as Latin."""
    width = max((sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in name) for name in names), default=0)
    return 0.065 * min(width, 40)


def _stack_name(maps: Sequence[Map]) -> str:
    first, last = maps[0].name, maps[-1].name
    return first if len(maps) == 1 else f"{first} … {last}"


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure as ``.svg`` or ``.png``; the same figure always gives the same file."""
    import matplotlib

    path = Path(path)
    if path.suffix not in (".svg", ".png"):
        raise ConfigError(
            f"cannot draw a {path.suffix or 'file without a suffix'!r}", expected=".svg or .png", file=path
        )
    # text as text; no date and no random ids, so that the same look gives the same file
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "qkv"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # said once, by _style
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else None)


def _style(texts: list[str]):
    """Fonts for these texts: the sans serif of matplotlib, then an installed one that holds Hangul, Han and kana."""
    import matplotlib

    wide = any(unicodedata.east_asian_width(character) in "WF" for text in texts for character in text)
    families = [family for family in [_cjk_family() if wide else None, "DejaVu Sans"] if family]
    return matplotlib.rc_context({"font.family": families, "axes.unicode_minus": False})


@functools.cache
def _cjk_family() -> str | None:
    import matplotlib
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    for family in CJK_FAMILIES:
        if family in installed:
            return family
    warnings.warn(
        "no font for Korean, Chinese or Japanese was found, so those words are drawn as boxes; install one "
        "(Debian, Ubuntu: fonts-noto-cjk or fonts-nanum) and remove matplotlib's font cache "
        f"({matplotlib.get_cachedir()})",
        stacklevel=2,
    )
    return None
