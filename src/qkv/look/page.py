"""One offline HTML page that shows what a model looked at in one or more texts.

The page is a single file: its style, its script and its data lie inside, nothing is fetched, and a content security
policy forbids it to try. Weights are packed a layer at a time and unpacked when that layer is shown, so a page opens at
once also for 512 tokens. Where all weights together would make the file larger than ``limit``, a reduced view is
written, and the page says what was left out.
"""

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import Float

from qkv.axis import Axis, Tokens
from qkv.errors import RunError
from qkv.look.alignment import word_places
from qkv.look.draw import labels
from qkv.look.measures import distance, entropy, max_entropy, rollouts
from qkv.look.record import Map, Trace

__all__ = ["LIMIT", "NOTEBOOK_LIMIT", "page", "write_page"]

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


def write_page(traces: Trace | Sequence[Trace], path: str | Path, *, title: str = "", limit: int = LIMIT) -> None:
    """Write `page` to a file."""
    Path(path).write_text(page(traces, title=title, limit=limit), encoding="utf-8")


def page(traces: Trace | Sequence[Trace], *, title: str = "", limit: int = LIMIT) -> str:
    """The page of one trace, or of several to choose among; a trace of a batch gives one choice for each example.

    Shown are the maps over whole sequences (windowed ones are not), their rollouts, the exact entropy and distance of
    each head, and from each trace's ``notes``, where given: ``source``, ``target``, ``score``, ``token_scores`` (of the
    target's pieces, without the start mark), ``norms`` (of the states at each position of source and target),
    ``remark`` (a sentence), ``run``, ``alignment`` (see `qkv.look.alignment.Reader.note`; with
    ``sure`` and ``possible`` links beside it the gold is drawn too) and ``faithfulness``.

    Args:
        limit: bytes that the packed weights may take. Beyond it each row keeps its largest weights only, then each
            layer the mean of its heads, then the last examples are left out; the page says which.
    """
    examples = [one for trace in ([traces] if isinstance(traces, Trace) else traces) for one in _split(trace)]
    examples = [(trace, sections) for trace in examples if (sections := _sections(trace))]
    if not examples:
        raise RunError(
            "nothing to show",
            expected="a trace with at least one map over a whole sequence",
            remedy="trace a forward pass with layers that match",
        )
    detail, fitting = _fit([map for _, sections in examples for s in sections for map in s.maps], examples, limit)
    pack = _Pack(detail)
    shown = [pack.example(trace, sections) for trace, sections in examples[:fitting]]
    data = {"examples": shown, "reduced": pack.sentence(len(examples), fitting)}
    run = next((str(trace.notes["run"]) for trace, _ in examples if trace.notes.get("run")), "")
    parts = {
        "title": html.escape(title or (f"{run} · what it looked at" if run else "What it looked at"))
        .encode(
            "utf-8",
            "replace",  # a folder's name may be no text
        )
        .decode(),
        "style": _packaged("page.css"),
        "script": _packaged("page.js"),
        "data": _json(data),
        "weights": "\n".join(
            f'<script type="text/plain" id="weights-{i}">{text}</script>' for i, text in enumerate(pack.weights)
        ),
    }
    # one pass, so that nothing in a user's text is ever taken for a place to fill
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _packaged("page.html"))


@dataclass(frozen=True)
class Section:
    """Maps that the page shows together, a layer each."""

    id: str
    label: str
    maps: list[Map]
    names: list[str]


def _split(trace: Trace) -> list[Trace]:
    """The examples of a batch; notes are about one text, so a batch keeps only what holds for all."""
    count = max((len(maps) for maps in trace.values()), default=0)
    if count == 1:
        return [trace]
    common = {key: trace.notes[key] for key in ("run",) if key in trace.notes}
    return [Trace({name: [maps[i]] for name, maps in trace.items() if i < len(maps)}, common) for i in range(count)]


def _sections(trace: Trace) -> list[Section]:
    maps = [maps[0] for maps in trace.values() if maps and maps[0].where is None and maps[0].weights.numel()]
    plain = [map for map in maps if map.kind == "self" and not map.causal]
    causal = [map for map in maps if map.kind == "self" and map.causal]
    cross = [map for map in maps if map.kind == "cross"]
    two = bool(cross or (plain and causal))
    rolled = rollouts(Trace({map.name: [map] for map in maps}))
    positions = [map for map in maps if map.kind == "position"]
    of = ["decoder → encoder's input" if map.kind == "cross" else "encoder" for map in rolled]
    found = [
        _section("encoder", "Encoder" if two else "Self-attention", plain),
        _section("decoder", "Decoder" if two else "Self-attention", causal),
        _section("cross", "Decoder → encoder" if two else "Cross-attention", cross),
        _section("mixing", "Mixing", [map for map in maps if map.kind == "mixing"]),
        Section("rollout", "Rollout", rolled, of),
        _section("gradient", "Gradient", [map for map in maps if map.kind == "gradient"]),
        _section("alignment", "Alignment", _aligned(trace)),
        Section("position", "Positions", positions, [map.name.removesuffix(".position") for map in positions]),
    ]
    return [section for section in found if section.maps]


def _section(id: str, label: str, maps: list[Map]) -> Section:
    return Section(id, label, maps, [f"layer {number}" for number in range(1, len(maps) + 1)])


def _aligned(trace: Trace) -> list[Map]:
    """The map that the alignment in the notes was read off: its heads averaged."""
    note = trace.notes.get("alignment")
    if not note or note.get("layer") not in trace:
        return []
    map = trace[note["layer"]][0]
    rows = [map.heads.index(head) for head in note.get("heads") or map.heads if head in map.heads]
    if not rows or not (isinstance(map.query, Tokens) and isinstance(map.key, Tokens)):
        return []
    return [replace(map, weights=map.weights[rows].mean(0, keepdim=True), heads=(0,))]


# --- How much fits -------------------------------------------------------------------------------------------------


def _fit(maps: list[Map], examples: Sequence, limit: int) -> tuple[Detail, int]:
    """The most detail with which all examples fit, and how many examples fit with the least."""
    cells = sum(map.weights.numel() for map in maps)
    if cells * 2 * 4 / 3 <= min(EXACT_LIMIT, limit):
        return LADDER[0], len(examples)
    for detail in LADDER[1:]:
        sizes = [sum(_size(map, detail) for s in sections for map in s.maps) for _, sections in examples]
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


# --- What the script reads -----------------------------------------------------------------------------------------


class _Pack:
    """Turns traces into plain data for the script, and weights into packed text."""

    def __init__(self, detail: Detail):
        self.detail, self.weights = detail, []
        self.kept = self.total = 0.0

    def example(self, trace: Trace, sections: list[Section]) -> dict:
        notes, axes = trace.notes, []
        shown = [self._section(section, axes) for section in sections]
        for section in shown:
            if section["id"] == "alignment":
                section |= _alignment(notes["alignment"])
        between = (map for section in sections for map in section.maps if map.kind in ("cross", "gradient"))
        cross = next(between, None)
        roles = {axes.index(cross.key): "source", axes.index(cross.query): "target"} if cross else {}
        scores = [_finite(score) for score in notes.get("token_scores") or []]
        texts = [axis.text for axis in axes if isinstance(axis, Tokens)]
        faith = notes.get("faithfulness")
        return {
            "title": str(notes.get("source") or (texts[0] if texts else sections[0].maps[0].name)),
            "run": str(notes.get("run") or ""),
            "score": _finite(notes.get("score")),
            "remark": str(notes.get("remark") or ""),
            "faithfulness": str(faith.get("sentence", "") if isinstance(faith, dict) else faith or ""),
            "axes": [
                _axis(axis, role, scores if role == "target" else [], (notes.get("norms") or {}).get(role, []))
                for axis, role in ((axis, roles.get(id, "")) for id, axis in enumerate(axes))
            ],
            "sections": shown,
        }

    def _section(self, section: Section, axes: list[Axis]) -> dict:
        layers = [
            {**self._map(map, axes), "label": name} for map, name in zip(section.maps, section.names, strict=True)
        ]
        return {"id": section.id, "label": section.label, "layers": layers}

    def _map(self, map: Map, axes: list[Axis]) -> dict:
        for axis in (map.query, map.key):
            if axis not in axes:
                axes.append(axis)
        whole = map.weights.float().cpu().numpy()
        whole = np.nan_to_num(whole)
        mean = whole.mean(0, keepdims=True)
        heads = list(map.heads) if self.detail.heads and len(map.heads) > 1 else []
        kept = _reduced(map, whole if heads else mean, self.detail)
        if map.kind != "position":
            self.kept += float(kept.sum()) / len(kept)
            self.total += float(whole.sum()) / len(whole)
        numbers, low, high = _quantised(kept, self.detail)
        self.weights.append(_packed(numbers))
        weighs = map.kind in ("self", "cross", "mixing", "gradient")
        apart = weighs and map.kind in ("self", "mixing") and len(map.query) == len(map.key)
        return {
            "name": map.name,
            "kind": map.kind,
            "causal": map.causal,
            "query": axes.index(map.query),
            "key": axes.index(map.key),
            "queries": list(map.queries),
            "heads": heads,
            "decoder": (map.kind in ("cross", "gradient") or map.causal) and _starts_with_mark(map.query),
            "weights": len(self.weights) - 1,
            "bits": numbers.itemsize * 8,
            "low": low,
            "high": high,
            "thumbnails": _thumbnails(np.concatenate([whole, mean]) if heads else mean),
            "entropy": _figures(entropy(map).mean(1)) if weighs else [],
            "maxEntropy": _finite(float(max_entropy(map).mean())) if weighs else None,
            "distance": _figures(distance(map).mean(1)) if apart else [],
        }

    def sentence(self, examples: int, fitting: int) -> str:
        """What was left out, in words; nothing if nothing was."""
        said = []
        if self.detail.largest is not None and self.kept < self.total * (1 - 1e-6):
            share = math.floor(100 * self.kept / self.total)
            said.append(f"each row shows its {self.detail.largest} largest weights only ({share} % of all weight)")
        if not self.detail.heads:
            said.append("each layer is shown as the mean of its heads")
        if fitting < examples:
            said.append(f"the first {fitting} of {examples} texts are shown")
        if not said:
            return ""
        return "A reduced view, for size: " + "; ".join(said) + ". Entropy, distance and rollout are of the whole."


def _starts_with_mark(axis: Axis) -> bool:
    """Whether a decoder takes this text in: after a start mark, so that each row predicts the next position."""
    return isinstance(axis, Tokens) and len(axis) > 0 and axis.spans[0][0] == axis.spans[0][1]


def _alignment(note: dict) -> dict:
    heads = note.get("heads")
    return {
        **{key: [list(link) for link in note.get(key, [])] for key in ("links", "sure", "possible")},
        "reading": note.get("reading", "shifted"),
        "from": f"{note['layer']}, {'heads ' + ', '.join(map(str, heads)) if heads else 'all heads'}",
    }


def _axis(axis: Axis, role: str, scores: list, norms: list) -> dict:
    told = {"role": role, "pieces": labels(axis), "scores": scores, "norms": [_finite(norm) for norm in norms]}
    if not isinstance(axis, Tokens):
        return {**told, "text": False, "words": [], "marks": []}
    words = [
        {"text": word.text, "positions": list(word.positions), "mark": word.mark, "place": place}
        for word, place in zip(axis.words(), word_places(axis), strict=True)
    ]
    marks = sorted(position for word in words if word["mark"] for position in word["positions"])
    return {**told, "text": True, "words": words, "marks": marks}


def _thumbnails(heads: Float[np.ndarray, "head query key"]) -> dict:
    """Each head at most `THUMBNAIL` cells across; a cell shows the largest weight in its place, on its head's scale."""
    rows, columns = (np.unique(np.linspace(0, size, THUMBNAIL + 1).astype(int)[:-1]) for size in heads.shape[1:])
    small = np.maximum.reduceat(np.maximum.reduceat(heads, rows, axis=1), columns, axis=2)
    low = np.minimum(small.min((1, 2), keepdims=True), 0)
    unit = (small - low) / np.maximum(small.max((1, 2), keepdims=True) - low, 1e-12)
    data = base64.b64encode(np.round(np.sqrt(unit) * 255).astype("u1").tobytes()).decode()
    return {"rows": len(rows), "columns": len(columns), "data": data}


def _figures(values) -> list:
    return [_finite(round(value, 4)) for value in values.tolist()]


def _finite(value) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _json(data: dict) -> str:
    """JSON that no HTML parser can take for markup (``</script>``, ``<!--``)."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: right under any encoding
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packaged(name: str) -> str:
    return files("qkv.look").joinpath(name).read_text(encoding="utf-8")
