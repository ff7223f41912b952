"""What the pages of a look share: weights packed into text until they fit, thumbnails of heads, JSON inside HTML."""

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from jaxtyping import Float

from qkv.look.record import Map

__all__ = [
    "LADDER",
    "LIMIT",
    "NOTEBOOK_LIMIT",
    "Detail",
    "Packing",
    "Section",
    "figures",
    "filled",
    "finite",
    "fit",
    "thumbnails",
]

LIMIT = 24_000_000  # bytes of weights in a file
NOTEBOOK_LIMIT = 4_000_000  # a notebook keeps every page it ever showed
EXACT_LIMIT = 3_000_000  # up to here weights are kept to 5 digits; beyond, 2 are enough to draw and to read
THUMBNAIL = 32  # cells across


@dataclass(frozen=True)
class Detail:
    """How much of the weights is written: the rungs of a ladder, taken from the top until the page fits."""

    exact: bool = False  # 16 bits, linear; else 8 bits of the square root, so that small weights keep two digits too
    largest: int | None = None  # of each row only so many of the largest weights
    heads: bool = True  # every head; else the mean of each layer alone


LADDER = (
    Detail(exact=True),
    Detail(),
    Detail(largest=128),
    Detail(largest=64),
    Detail(largest=32),
    Detail(largest=16),
    Detail(largest=8),
    Detail(largest=32, heads=False),
    Detail(largest=16, heads=False),
    Detail(largest=8, heads=False),
)


def fit(examples: Sequence[Sequence[Map]], limit: int) -> tuple[Detail, int]:
    """The most detail with which the maps of all examples fit, and how many examples fit with the least."""
    cells = sum(map.weights.numel() for maps in examples for map in maps)
    if cells * 2 * 4 / 3 <= min(EXACT_LIMIT, limit):
        return LADDER[0], len(examples)
    for detail in LADDER[1:]:
        sizes = [sum(_size(map, detail) for map in maps) for maps in examples]
        if sum(sizes) <= limit:
            return detail, len(examples)
    fitting = int(np.searchsorted(np.cumsum(sizes), limit, side="right"))
    return LADDER[-1], max(fitting, 1)


def _size(map: Map, detail: Detail) -> float:
    """About how many bytes a map will take: a sample of its rows is packed. A tenth is added, to be safe."""
    rows = np.unique(np.linspace(0, map.weights.shape[1] - 1, 24).astype(int))
    head = map.weights.shape[0] // 2
    sample = map.weights[head, rows][None] if detail.heads else map.weights[:, rows].mean(0, keepdim=True)
    packed = len(_packed(_quantised(_reduced(map, sample.float().cpu().numpy(), detail), detail)[0]))
    thumbnails = THUMBNAIL**2 * 4 / 3 * (map.weights.shape[0] + 1)
    return 1.1 * packed * (map.weights.shape[0] if detail.heads else 1) * map.weights.shape[1] / len(rows) + thumbnails


def _reduced(map: Map, weights: Float[np.ndarray, "head query key"], detail: Detail) -> np.ndarray:
    """Each row's largest weights, the others zero. A map of positions is no distribution and stays whole."""
    if detail.largest is None or detail.largest >= weights.shape[-1] or map.kind == "position":
        return weights
    cut = np.partition(weights, -detail.largest, axis=-1)[..., [-detail.largest]]
    return np.where(weights >= cut, weights, 0)


def _quantised(weights: np.ndarray, detail: Detail) -> tuple[np.ndarray, float, float]:
    """Whole numbers from 0, and the range that they stand for. Weights below zero (similarities) are kept linear."""
    low, high = min(float(weights.min()), 0.0), float(weights.max())
    unit = np.clip((weights - low) / max(high - low, 1e-12), 0, 1)
    if detail.exact or low < 0:
        return np.round(unit * 65535).astype("<u2"), low, high
    return np.round(np.sqrt(unit) * 255).astype("u1"), low, high


def _packed(numbers: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 6)).decode()


@dataclass(frozen=True)
class Section:
    """Maps that a page shows together, a layer each."""

    id: str
    label: str
    maps: list[Map]
    names: list[str]


class Packing:
    """Weights of maps as numbered pieces of text, with so much detail, and what was left out of them."""

    def __init__(self, detail: Detail):
        self.detail, self.weights = detail, []
        self.kept = self.total = 0.0

    def packed(self, map: Map) -> dict:
        """Packs a map; what the script needs to unpack it. Of one head, or without room for more, only the mean."""
        whole = _numbers(map)
        heads = list(map.heads) if self.detail.heads and len(map.heads) > 1 else []
        kept = _reduced(map, whole if heads else whole.mean(0, keepdims=True), self.detail)
        if map.kind != "position":
            self.kept += float(kept.sum()) / len(kept)
            self.total += float(whole.sum()) / len(whole)
        numbers, low, high = _quantised(kept, self.detail)
        self.weights.append(_packed(numbers))
        return {
            "heads": heads,
            "weights": len(self.weights) - 1,
            "bits": numbers.itemsize * 8,
            "low": low,
            "high": high,
        }

    def planes(self, map: Map) -> Float[np.ndarray, "plane query key"]:
        """The heads of a map that are packed, and after them their mean."""
        whole = _numbers(map)
        mean = whole.mean(0, keepdims=True)
        return np.concatenate([whole, mean]) if self.detail.heads and len(map.heads) > 1 else mean

    def left_out(self) -> list[str]:
        """What was left out of the maps, in words."""
        said = []
        if self.detail.largest is not None and self.kept < self.total * (1 - 1e-6):
            share = math.floor(100 * self.kept / self.total)
            said.append(f"each row shows its {self.detail.largest} largest weights only ({share} % of all weight)")
        if not self.detail.heads:
            said.append("each layer is shown as the mean of its heads")
        return said


def _numbers(map: Map) -> Float[np.ndarray, "head query key"]:
    return np.nan_to_num(map.weights.float().cpu().numpy())


def thumbnails(heads: Float[np.ndarray, "head query key"]) -> dict:
    """Each head at most `THUMBNAIL` cells across; a cell shows the largest weight in its place, on its head's scale."""
    rows, columns = (np.unique(np.linspace(0, size, THUMBNAIL + 1).astype(int)[:-1]) for size in heads.shape[1:])
    small = np.maximum.reduceat(np.maximum.reduceat(heads, rows, axis=1), columns, axis=2)
    low = np.minimum(small.min((1, 2), keepdims=True), 0)
    unit = (small - low) / np.maximum(small.max((1, 2), keepdims=True) - low, 1e-12)
    data = base64.b64encode(np.round(np.sqrt(unit) * 255).astype("u1").tobytes()).decode()
    return {"rows": len(rows), "columns": len(columns), "data": data}


def figures(values) -> list:
    return [finite(round(value, 4)) for value in values.tolist()]


def finite(value) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def filled(
    body: str,
    title: str,
    styles: Sequence[str],
    scripts: Sequence[str] = (),
    data: dict | None = None,
    weights: Sequence[str] = (),
    **places: str,
) -> str:
    """A page's HTML with everything that it needs inside of it: nothing is fetched, and its policy forbids to try.

    Args:
        body, styles, scripts: names of our own files; a page without scripts may run none.
        data, weights: what the scripts read.
        places: HTML for the places that the body has beside those.
    """
    body = _packaged(body) + (_packaged("scripts.html") if scripts else "")
    parts = places | {
        "policy": "script-src 'unsafe-inline'; " if scripts else "",
        "title": html.escape(title).encode("utf-8", "replace").decode(),  # a folder's name may be no text
        "style": "".join(map(_packaged, styles)),
        "script": "".join(map(_packaged, scripts)),
        "data": _as_json(data),
        "weights": "\n".join(
            f'<script type="text/plain" id="weights-{i}">{text}</script>' for i, text in enumerate(weights)
        ),
    }
    # one pass, so that nothing in a user's text is ever taken for a place to fill
    whole = _packaged("frame.html").replace("{{body}}", body)
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], whole)


def _as_json(data: dict) -> str:
    """JSON that no HTML parser can take for markup (``</script>``, ``<!--``)."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: right under any encoding
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packaged(name: str) -> str:
    """One of our own files, and in it those of our own that it names (``{{scale.html}}``)."""
    text = files("qkv.look").joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+\.html)\}\}", lambda place: _packaged(place[1]), text)
