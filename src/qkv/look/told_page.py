"""One offline HTML page of what a captioner looked at, word by word.

The page is a single file: its style, its script, its pictures and its data lie inside, nothing is fetched, and a
content security policy forbids it to try.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from qkv.axis import Grid
from qkv.look.packing import filled
from qkv.look.record import Map, Trace
from qkv.look.told import picture_note, said_words, told_words
from qkv.store import write_text

__all__ = ["page", "write_page"]

LIMIT = 3_000_000  # numbers of heat in a page


def write_page(looks: Sequence[Trace], path: str | Path) -> None:
    """Write the page of one look, or of several; see `qkv.look.told.look_at_picture` for what is shown."""
    write_text(Path(path), page(looks))


def page(looks: Trace | Sequence[Trace], *, limit: int = LIMIT) -> str:
    """The page's HTML, of one look or of several.

    Args:
        limit: numbers of heat that it may hold; of more, each layer is the mean of its heads, and the page says so.
    """
    looks = [looks] if isinstance(looks, Trace) else looks
    maps = [maps[0] for seen in looks for maps in seen.values() if isinstance(maps[0].key, Grid)]
    reduced = sum(map.weights.numel() for map in maps) > limit
    data = {
        "looks": [_look(seen, reduced) for seen in looks],
        "reduced": "For size, each layer is shown as the mean of its heads." if reduced else "",
    }
    styles, scripts = ("page.css", "told_page.css"), ("parts.js", "told_page.js")
    return filled("told_page.html", "What it looked at", styles, scripts, data)


def _look(seen: Trace, reduced: bool) -> dict:
    notes = seen.notes
    picture = picture_note(notes)
    layers = [maps[0] for maps in seen.values() if maps and isinstance(maps[0].key, Grid)]
    faith = notes.get("faithfulness", {})
    words = [
        {"text": word.text, "chance": round(word.chance, 4), "beta": _short(word.beta)} for word in told_words(seen)
    ]
    for word, found in zip(words, faith.get("words", []), strict=False):
        word["falls"] = {"by": found["deletion"], "random": found["random_deletion"]}
        word["better"] = found["chance"] <= 0.05
    return {
        "run": str(notes.get("run", "")),
        "name": picture["name"],
        "png": picture["png"],
        "size": picture["size"],
        "caption": notes["caption"],
        "ended": notes.get("ended", True),
        "sentence": faith.get("sentence", ""),
        "words": words,
        "layers": [_layer(map, notes, reduced) for map in layers],
    }


def _layer(map: Map, notes: dict, reduced: bool) -> dict:
    """Heat by head, word and cell; the mean of the heads comes first."""
    planes = map.weights.mean(0, keepdim=True)
    heads = [] if reduced or len(map.heads) == 1 else list(map.heads)
    rows = [list(places) for _, places in said_words(notes)]
    all_planes = [planes[0], *(map.weights[map.heads.index(head)] for head in heads)]
    heat = [[[round(float(v), 4) for v in plane[row].mean(0)] for row in rows] for plane in all_planes]
    grid = map.key
    left, top, right, bottom = grid.box(0)
    return {
        "name": map.name,
        "heads": heads,
        "rows": grid.rows,
        "columns": grid.columns,
        "cell": [bottom - top, right - left],
        "heat": heat,
    }


def _short(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 4)
