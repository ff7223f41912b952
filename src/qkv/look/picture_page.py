"""One offline HTML page that shows what a model looked at in one picture: see `qkv.look.pictures.look_at`.

Made as the page of texts is (`qkv.look.page`): one file, nothing fetched, weights packed a layer at a time, and a
reduced view, which says so, where they would not fit.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch

from qkv.axis import Axis, Grid
from qkv.errors import RunError
from qkv.look.cells import reading
from qkv.look.draw import labels
from qkv.look.measures import entropy, max_entropy, pixel_distance
from qkv.look.packing import LIMIT, Packing, Section, figures, filled, finite, fit, thumbnails
from qkv.look.record import Map, Trace

__all__ = ["picture_page"]


def picture_page(trace: Trace, *, title: str = "", limit: int = LIMIT) -> str:
    """The page of a trace of one picture, whose notes hold it.

    Args:
        limit: bytes that the packed weights may take; beyond it see `qkv.look.packing.LADDER`.
    """
    notes, sections = trace.notes, _sections(trace)
    if "png" not in notes.get("picture", {}):
        raise RunError("the trace holds no picture", remedy="look with qkv.look.pictures.look_at")
    if not sections:
        raise RunError("nothing to show", expected="a trace with at least one map over the cells of the picture")
    detail, _ = fit([[map for section in sections for map in section.maps]], limit)
    pack = _Pack(detail)
    shown = [pack.section(section) for section in sections]
    left_out = pack.left_out()
    data = {
        "picture": notes["picture"],
        "run": str(notes.get("run") or ""),
        "answer": notes.get("answer") or {},
        "reads": notes.get("reads") or [],
        "rollout": notes.get("rollout") or {},
        "faithfulness": notes.get("faithfulness"),
        "reduced": f"A reduced view, for size: {'; '.join(left_out)}. Figures are of the whole." if left_out else "",
        "axes": [_axis(axis) for axis in pack.axes],
        "windows": [where.tolist() for where in pack.windows],
        "sections": shown,
    }
    name = notes["picture"].get("name") or "a picture"
    title = title or f"{name} · what {data['run'] or 'a model'} looked at"
    styles, scripts = ("page.css", "picture.css"), ("parts.js", "board.js", "picture.js")
    return filled("picture.html", title, styles, scripts, data, pack.weights)


def _sections(trace: Trace) -> list[Section]:
    """The first example's maps over cells, sorted."""
    maps = [maps[0] for maps in trace.values() if maps and isinstance(maps[0].key, Grid) and maps[0].weights.numel()]
    rolled = [map for map in maps if map.name == "rollout" or map.name.endswith(".rollout")]
    looking = [map for map in maps if map.kind in ("self", "cross") and map not in rolled]
    position = [map for map in maps if map.kind == "position"]
    biases = [map for map in position if map.name.endswith(".bias")]
    tables = [map for map in position if map not in biases]
    found = [
        Section("attention", "Attention", looking, _layers(looking)),
        Section("mixing", "Mixing", *_numbered([map for map in maps if map.kind == "mixing"])),
        Section("rollout", "Rollout", rolled[-1:] + rolled[:-1], ["answer", *_grids(rolled[:-1])][: len(rolled)]),
        Section("classes", "Classes", *_named([map for map in maps if map.kind == "gradient"])),
        Section("position", "Positions", *_named(tables)),
        Section("bias", "Position bias", biases, _layers(biases)),
    ]
    return [section for section in found if section.maps]


def _layers(maps: Sequence[Map]) -> list[str]:
    """A number for each layer, with its stage where there are several; and whether its windows are shifted."""
    names = []
    for number, map in enumerate(maps, 1):
        numbers = [int(part) + 1 for part in re.findall(r"(?<=\.)\d+(?=\.)", map.name)]
        name = f"stage {numbers[0]}, layer {numbers[1]}" if len(numbers) == 2 else str(number)
        shifted = map.where is not None and int(map.where[0, 0]) != 0
        names.append(name + (", shifted" if shifted else "") if numbers else map.name.split(".")[0])
    return names


def _grids(maps: Sequence[Map]) -> list[str]:
    """What the rows of each rollout are."""
    if len(maps) == 1 and maps[0].query == maps[0].key:
        return ["each position"]
    return [f"cells after stage {number}" for number in range(1, len(maps) + 1)]


def _numbered(maps: list[Map]) -> tuple[list[Map], list[str]]:
    return maps, [str(number) for number in range(1, len(maps) + 1)]


def _named(maps: list[Map]) -> tuple[list[Map], list[str]]:
    return maps, [map.name for map in maps]


class _Pack(Packing):
    """Turns the maps of a trace into plain data for the script, and their weights into packed text."""

    def __init__(self, detail: Any):
        super().__init__(detail)
        self.axes: list[Axis] = []
        self.windows: list[torch.Tensor] = []

    def section(self, section: Section) -> dict:
        layers = [{**self._map(map), "label": name} for map, name in zip(section.maps, section.names, strict=True)]
        return {"id": section.id, "label": section.label, "layers": layers}

    def _map(self, map: Map) -> dict:
        looks = map.kind in ("self", "cross")
        return {
            "name": map.name,
            "kind": map.kind,
            "query": _place(map.query, self.axes),
            "key": _place(map.key, self.axes),
            "queries": list(map.queries),
            "windows": None if map.where is None else _window_place(map.where, self.windows),
            **self.packed(map),
            "thumbnails": self._thumbnails(map),
            "entropy": figures(entropy(map).mean(1)) if looks else [],
            "maxEntropy": finite(float(max_entropy(map).mean())) if looks else None,
            "distance": figures(pixel_distance(map).nanmean(1)) if looks and isinstance(map.query, Grid) else [],
        }

    def _thumbnails(self, map: Map) -> dict | None:
        """What is looked at first, of every head and of their mean."""
        if len(map.heads) < 2 or not self.detail.heads:
            return None
        rows = (map.weights[:, 0] if map.kind == "position" else reading(map))[:, len(map.key.prefix) :]
        rows = torch.cat([rows, rows.mean(0, keepdim=True)])
        return thumbnails(rows.unflatten(1, (map.key.rows, map.key.columns)).float().cpu().numpy())


def _place(axis: Axis, known: list[Axis]) -> int:
    if axis not in known:
        known.append(axis)
    return known.index(axis)


def _window_place(where: torch.Tensor, known: list[torch.Tensor]) -> int:
    for place, other in enumerate(known):
        if where.shape == other.shape and bool((where == other).all()):
            return place
    known.append(where)
    return len(known) - 1


def _axis(axis: Axis) -> dict:
    if not isinstance(axis, Grid):
        return {"grid": False, "names": labels(axis)}
    tall, wide = axis.sides
    return {
        "grid": True,
        "rows": axis.rows,
        "columns": axis.columns,
        "tall": tall,
        "wide": wide,
        "names": list(axis.prefix),
    }
