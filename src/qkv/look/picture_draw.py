"""A picture of a look into a picture, for papers and slides: the image, and what the answer was drawn from over it."""

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from torch import Tensor

from qkv.axis import Grid
from qkv.errors import ConfigError, RunError, nearest
from qkv.look.cells import reading
from qkv.look.draw import FAINT, INK, save_figure
from qkv.look.record import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_picture", "picture_figure"]

COLOURS = "inferno"
OPACITY = 0.62


def draw_picture(trace: Trace, path: str | Path, layer: str | None = None, head: int | None = None) -> None:
    """Write `picture_figure` as ``.svg`` or ``.png``."""
    save_figure(picture_figure(trace, layer, head), path)


def picture_figure(trace: Trace, layer: str | None = None, head: int | None = None) -> "Figure":
    """The image, what the last layer looked at (or ``layer``, all heads or ``head``), the rollout, and what speaks for
    the class that was explained; below, where the trace's notes hold them, the curves of its faithfulness.

    Errors:
        RunError: the trace holds no picture.
        ConfigError: it holds no such layer or head.
    """
    from matplotlib.figure import Figure

    notes = trace.notes
    if "png" not in notes.get("picture", {}):
        raise RunError("the trace holds no picture", remedy="look with qkv.look.pictures.look_at")
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(notes["picture"]["png"]))))
    panels = _panels(trace, layer, head)
    faithful = notes.get("faithfulness")
    height, width = notes["picture"]["size"]
    side = 1.9
    high = side * height / width
    size = (side * (len(panels) + 1), high + 0.75 + (1.75 if faithful else 0))
    figure = Figure(figsize=size, layout="constrained")
    rows = figure.subfigures(2, 1, height_ratios=[high + 0.75, 1.75]) if faithful else [figure.subfigures(1, 1)]
    axes = rows[0].subplots(1, len(panels) + 1)
    for place, (title, cells) in zip(np.atleast_1d(axes), [(_title(notes), None), *panels], strict=True):
        place.imshow(image, extent=(0, width, height, 0), interpolation="nearest")
        if cells is not None:
            _lay_over(place, *cells)
        place.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
        for spine in place.spines.values():
            spine.set_visible(False)
        place.set_title(title, fontsize=7.5, color=INK, loc="left", pad=4).set_parse_math(False)
    if faithful:
        _curves(rows[1], faithful)
    return figure


def _panels(trace: Trace, layer: str | None, head: int | None) -> list[tuple[str, tuple[Tensor, Grid]]]:
    """A title and cells of a grid for each."""
    maps = [map for map in trace.select() if isinstance(map.key, Grid)]
    looking = [m for m in maps if m.kind in ("self", "cross", "mixing") and "rollout" not in m.name.split(".")]
    if layer is not None:
        looking = [map for map in looking if map.name == layer]
        if not looking:
            raise ConfigError(f"no layer {layer!r} in this trace", remedy=nearest(layer, trace))
    panels = []
    if looking:
        shown = looking[-1]
        if head is not None and head not in shown.heads:
            raise ConfigError(f"no head {head} in {shown.name}", expected=f"one of {list(shown.heads)}")
        row = reading(shown)
        row = row.mean(0) if head is None else row[shown.heads.index(head)]
        which = f", head {head}" if head is not None else ""
        panels.append((f"{shown.name}{which}", (row, shown.key)))
    for map in maps:
        if map.name == "rollout":
            panels.append((map.name, (map.weights[0, 0], map.key)))
        elif map.kind == "gradient":
            panels.append((f"{map.name}: {map.query.pieces[0]}", (map.weights[0, 0], map.key)))
    return panels


def _title(notes: dict) -> str:
    answer = notes.get("answer") or {}
    if top := answer.get("top"):
        return f"{top[0]['name']}, {top[0]['probability']:.2f}"
    return str(round(answer["value"], 4)) if "value" in answer else notes["picture"]["name"]


def _lay_over(place, row: Tensor, grid: Grid) -> None:
    """Cells over the image, each where it lies; what stands beyond the image, in a padded grid, is cut off by it."""
    tall, wide = grid.sides
    cells = row[len(grid.prefix) :].unflatten(0, (grid.rows, grid.columns)).float().numpy()
    top = float(np.abs(cells).max()) or 1.0
    place.imshow(
        cells,
        cmap="RdBu_r" if cells.min() < 0 else COLOURS,
        vmin=-top if cells.min() < 0 else 0,
        vmax=top,
        alpha=OPACITY,
        extent=(0, grid.columns * wide, grid.rows * tall, 0),
        interpolation="nearest",
    )


def _curves(figure, found: dict) -> None:
    """Deletion and insertion of each fill: the map that is judged, random orders, and the others fainter."""
    axes = figure.subplots(1, 2 * len(found["fills"]), sharey=True)
    pairs = [(fill, which) for fill in found["fills"] for which in ("deletion", "insertion")]
    for place, (fill, which) in zip(axes, pairs, strict=True):
        curves, shares = found["fills"][fill]["curves"], found["fills"][fill]["shares"]
        for name, curve in curves.items():
            style = dict(color="#1f6fb2", lw=1.6, zorder=3) if name == found["by"] else dict(lw=0.8, alpha=0.75)
            dashed = dict(color=FAINT, ls="--", lw=1.0) if name == "random" else style
            place.plot(shares, curve[which], label=name, **dashed)
        place.set_title(f"{which}, {fill}", fontsize=7.5, color=FAINT, loc="left", pad=3)
        place.tick_params(labelsize=6, length=2, colors=FAINT)
        for spine in ("top", "right"):
            place.spines[spine].set_visible(False)
    axes[-1].legend(fontsize=5.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
