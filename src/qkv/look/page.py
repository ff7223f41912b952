"""One offline HTML page that shows what a model looked at in one or more texts.

The page is a single file: its style, its script and its data lie inside, nothing is fetched, and a content security
policy forbids it to try. Weights are packed a layer at a time and unpacked when that layer is shown, so a page opens at
once also for 512 tokens. Where all weights together would make the file larger than ``limit``, a reduced view is
written, and the page says what was left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qkv.axis import Axis, Tokens
from qkv.errors import RunError
from qkv.look.alignment import word_places
from qkv.look.draw import labels
from qkv.look.measures import distance, entropy, first_rows, max_entropy, rollouts
from qkv.look.packing import LIMIT, Packing, Section, figures, filled, finite, fit, thumbnails
from qkv.look.record import Map, Trace

__all__ = ["page", "write_page"]


def write_page(traces: Trace | Sequence[Trace], path: str | Path, *, title: str = "", limit: int = LIMIT) -> None:
    """Write `page` to a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(traces, title=title, limit=limit), encoding="utf-8")


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
    detail, fitting = fit([[map for s in sections for map in s.maps] for _, sections in examples], limit)
    pack = _Pack(detail)
    shown = [pack.example(trace, sections) for trace, sections in examples[:fitting]]
    data = {"examples": shown, "reduced": pack.sentence(len(examples), fitting)}
    run = next((str(trace.notes["run"]) for trace, _ in examples if trace.notes.get("run")), "")
    title = title or (f"{run} · what it looked at" if run else "What it looked at")
    return filled("page.html", title, ("page.css",), ("parts.js", "board.js", "page.js"), data, pack.weights)


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
    pooled = [map for map in maps if map.kind == "cross" and _pools(map)]
    cross = [map for map in maps if map.kind == "cross" and not _pools(map)]
    two = bool(cross or (plain and causal))
    rolled = rollouts(Trace({map.name: [map] for map in maps}))
    positions = [map for map in maps if map.kind == "position"]
    relevant = [map for map in maps if map.kind == "relevance"]
    # A row for each layer, where the first position is a mark that stands for the whole text.
    one = first_rows(plain) if len(plain) > 1 and _starts_with_mark(plain[0].query) and not two else None
    of = ["decoder → encoder's input" if map.kind == "cross" else "encoder" for map in rolled]
    found = [
        _section("encoder", "Encoder" if two else "Self-attention", plain),
        _section("decoder", "Decoder" if two else "Self-attention", causal),
        _section("cross", "Decoder → encoder" if two else "Cross-attention", cross),
        _section("pool", "Pooling", pooled),
        _section("mixing", "Mixing", [map for map in maps if map.kind == "mixing"]),
        Section("first", plain[0].query.pieces[0] if one else "", [one] if one else [], ["[CLS]"]),
        Section("rollout", "Rollout", rolled, of),
        Section("relevance", "Answer", relevant, [map.name.removeprefix("relevance.") for map in relevant]),
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


# --- What the script reads -----------------------------------------------------------------------------------------


class _Pack(Packing):
    """Turns traces into plain data for the script, and weights into packed text."""

    def example(self, trace: Trace, sections: list[Section]) -> dict:
        notes, axes = trace.notes, []
        shown = [self._section(section, axes) for section in sections]
        for section in shown:
            if section["id"] == "alignment":
                section |= _alignment(notes["alignment"])
        every = [map for section in sections for map in section.maps]
        cross = next((map for map in every if map.kind in ("cross", "gradient") and not _pools(map)), None)
        roles = {axes.index(cross.key): "source", axes.index(cross.query): "target"} if cross else {}
        roles |= {axes.index(map.query): "answer" for map in every if map.kind == "relevance"}
        scores = [finite(score) for score in notes.get("token_scores") or []]
        texts = [axis.text for axis in axes if isinstance(axis, Tokens)]
        faith = notes.get("faithfulness")
        return {
            "title": str(notes.get("source") or (texts[0] if texts else sections[0].maps[0].name)),
            "run": str(notes.get("run") or ""),
            "score": finite(notes.get("score")),
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
        weighs = map.kind in ("self", "cross", "mixing", "gradient")
        apart = weighs and map.kind in ("self", "mixing") and map.query == map.key
        return {
            "name": map.name,
            "kind": map.kind,
            "causal": map.causal,
            "query": axes.index(map.query),
            "key": axes.index(map.key),
            "queries": list(map.queries),
            "decoder": (map.kind in ("cross", "gradient") or map.causal)
            and _starts_with_mark(map.query)
            and not _pools(map),
            **self.packed(map),
            "thumbnails": thumbnails(self.planes(map)),
            "entropy": figures(entropy(map).mean(1)) if weighs else [],
            "maxEntropy": finite(float(max_entropy(map).mean())) if weighs else None,
            "distance": figures(distance(map).mean(1)) if apart else [],
        }

    def sentence(self, examples: int, fitting: int) -> str:
        """What was left out, in words; nothing if nothing was."""
        said = [
            *self.left_out(),
            *([f"the first {fitting} of {examples} texts are shown"] if fitting < examples else []),
        ]
        if not said:
            return ""
        return "A reduced view, for size: " + "; ".join(said) + ". Entropy, distance and rollout are of the whole."


def _starts_with_mark(axis: Axis) -> bool:
    """Whether a decoder takes this text in: after a start mark, so that each row predicts the next position."""
    return isinstance(axis, Tokens) and len(axis) > 0 and axis.spans[0][0] == axis.spans[0][1]


def _pools(map: Map) -> bool:
    """Whether a map is that of a learned query, which is no text."""
    return isinstance(map.query, Tokens) and map.query.pieces == ("[pool]",)


def _alignment(note: dict) -> dict:
    heads = note.get("heads")
    return {
        **{key: [list(link) for link in note.get(key, [])] for key in ("links", "sure", "possible")},
        "reading": note.get("reading", "shifted"),
        "from": f"{note['layer']}, {'heads ' + ', '.join(map(str, heads)) if heads else 'all heads'}",
    }


def _axis(axis: Axis, role: str, scores: list, norms: list) -> dict:
    told = {"role": role, "pieces": labels(axis), "scores": scores, "norms": [finite(norm) for norm in norms]}
    if not isinstance(axis, Tokens):
        return {**told, "text": False, "words": [], "marks": []}
    words = [
        {"text": word.text, "positions": list(word.positions), "mark": word.mark, "place": place}
        for word, place in zip(axis.words(), word_places(axis), strict=True)
    ]
    marks = sorted(position for word in words if word["mark"] for position in word["positions"])
    return {**told, "text": True, "words": words, "marks": marks}
