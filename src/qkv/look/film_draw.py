"""A film strip as a picture: frames in a row, the weight of each beneath, and below that every layer and head."""

import base64
import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from qkv.look.clips import Film, film
from qkv.look.draw import FAINT, INK, RING, save_figure
from qkv.look.record import Trace

__all__ = ["draw_film", "film_figure"]

LOOK, LINE = "#1f6fb2", "#d5d9e0"
ACROSS = 16  # frames in a row
FRAME, GAP, BAR, LANE, SIDE = 0.66, 0.06, 0.34, 0.11, 0.62  # inches


def draw_film(trace: Trace, path: str | Path, layer: str = "", head: int | None = None) -> None:
    """Write `film_figure` as ``.svg`` or ``.png``."""
    save_figure(film_figure(film(trace), layer, head), path)


def film_figure(film: Film, layer: str = "", head: int | None = None):
    """The strip of one layer, of one head or the mean of all; marked frames have a frame of another colour."""
    from matplotlib.figure import Figure

    weights, times = film.weights(layer, head).tolist(), film.axis.times
    names = film.answer.get("frames") or [""] * len(times)
    heads = {name: len(every) for name, every in film.layers().items() if name != "rollout"}
    lanes = torch.stack([film.weights(name, place) for name, count in heads.items() for place in range(count)])
    across = min(len(times), ACROSS)
    high = FRAME * _shape(film)
    row = high + BAR + 0.52  # with the names above and the figures below
    strip = across * (FRAME + GAP)
    width = max(SIDE + strip + 0.1, 5.4)
    height = 0.42 + -(-len(times) // across) * row + 0.2 + LANE * len(lanes) + 0.12
    figure = Figure(figsize=(width, height))

    def place(left: float, top: float, wide: float, tall: float):
        """Axes at a place in inches from the upper left corner: the same picture each time, as no solver's is."""
        return figure.add_axes((left / width, 1 - (top + tall) / height, wide / width, tall / height))

    layer = layer or ("rollout" if head is None else "last")
    which = {"last": "the last block", "rollout": "rollout of all blocks"}.get(layer, f"block {layer}")
    whose = "" if layer == "rollout" else ", mean of heads" if head is None else f", head {head}"
    title = f"{film.answer.get('label', '')} · what {film.pooled} gives to each frame · {which}{whose}"
    _text(figure.text(0.1 / width, 1 - 0.22 / height, title, fontsize=8.5, color=INK, ha="left"))
    most = max([*weights, 1e-9])
    for number, (png, time, weight) in enumerate(zip(film.png, times, weights, strict=True)):
        left, top = SIDE + number % across * (FRAME + GAP), 0.42 + number // across * row
        marked = names[number] not in ("", "0")
        shown, bar = place(left, top + 0.16, FRAME, high), place(left, top + 0.2 + high, FRAME, BAR)
        shown.imshow(np.asarray(Image.open(io.BytesIO(base64.b64decode(png)))), aspect="auto")
        shown.spines[:].set(color=RING if marked else LINE, linewidth=1.6 if marked else 0.6)
        _text(shown.set_title(names[number] if marked else "", fontsize=7, color=RING, pad=2))
        bar.bar([0], [weight], color=LOOK, width=0.3)
        bar.set(xlim=(-0.5, 0.5), ylim=(0, most))
        bar.set_xlabel(f"{weight:.2f}\n{time:g} s", fontsize=6.5, color=FAINT, labelpad=2)
        bar.spines[["left", "right", "top"]].set_visible(False)
        bar.spines["bottom"].set_color(LINE)
        for axes in (shown, bar):
            axes.set(xticks=[], yticks=[])
    below = place(SIDE, height - 0.12 - LANE * len(lanes), strip - GAP, LANE * len(lanes))
    below.imshow(lanes.numpy(), cmap="Blues", aspect="auto", interpolation="nearest", vmin=0)
    ticks = np.cumsum([0, *heads.values()])
    below.set_yticks((ticks[:-1] + ticks[1:] - 1) / 2, [f"block {name}" for name in heads], fontsize=7, color=FAINT)
    below.set_xticks([])
    below.tick_params(length=0)
    for tick in ticks[1:-1]:
        below.axhline(tick - 0.5, color="white", linewidth=1.5)
    below.spines[:].set_color(LINE)
    _text(below.set_title("every head, a row each", fontsize=7, color=FAINT, loc="left", pad=3))
    return figure


def _shape(film: Film) -> float:
    """Height of a frame to its width."""
    with Image.open(io.BytesIO(base64.b64decode(film.png[0]))) as image:
        return image.height / image.width


def _text(text):
    """A user's text: a dollar sign in it is no formula."""
    text.set_parse_math(False)
    return text
