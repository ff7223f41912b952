"""The page as a file: self-contained, safe with any text, honest about what it leaves out."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from traces import KOREAN, a_map, a_trace, korean_english, soft, tokens

from qkv.axis import Tokens
from qkv.errors import RunError
from qkv.look.alignment import Reader
from qkv.look.measures import entropy, first_rows
from qkv.look.packing import LADDER
from qkv.look.page import _Pack, page
from qkv.look.record import Map, Trace


class Parts(HTMLParser):
    """What a browser's parser finds: tags with their attributes, and the text of each script by its id."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.scripts, self.now = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.now = dict(attributes).get("id", "") if tag == "script" else None

    def handle_endtag(self, tag):
        self.now = None

    def handle_data(self, data):
        if self.now is not None:
            self.scripts[self.now] = self.scripts.get(self.now, "") + data


def read(text: str) -> tuple[dict, Parts]:
    parts = Parts(text)
    return json.loads(parts.scripts["data"]), parts


def weights(parts: Parts, layer: dict, queries: int, keys: int) -> np.ndarray:
    raw = zlib.decompress(base64.b64decode(parts.scripts[f"weights-{layer['weights']}"]))
    numbers = np.frombuffer(raw, "<u2" if layer["bits"] == 16 else "u1").astype(float)
    unit = numbers / 65535 if layer["bits"] == 16 else (numbers / 255) ** 2
    return (layer["low"] + (layer["high"] - layer["low"]) * unit).reshape(-1, queries, keys)


def test_it_holds_every_layer_and_head():
    data, parts = read(page(korean_english()))
    (example,) = data["examples"]
    assert [section["id"] for section in example["sections"]] == ["encoder", "decoder", "cross", "rollout"]
    cross = example["sections"][2]["layers"]
    assert [layer["name"] for layer in cross] == ["decoder.blocks.0.cross", "decoder.blocks.1.cross"]
    expected = korean_english()["decoder.blocks.1.cross"][0]
    assert np.abs(weights(parts, cross[1], 6, 5) - expected.weights.numpy()).max() < 1e-5
    assert cross[1]["entropy"] == pytest.approx(entropy(expected).mean(1).tolist(), abs=1e-4)
    assert cross[1]["distance"] == [] and len(example["sections"][0]["layers"][0]["distance"]) == 3
    assert example["score"] == -0.31 and example["run"] == "runs/ko-en"
    assert [axis["role"] for axis in example["axes"]] == ["source", "target"]
    assert data["reduced"] == ""


def test_nothing_is_fetched():
    text = page(korean_english())
    _, parts = read(text)
    policy = next(a["content"] for tag, a in parts.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    assert not any(tag in ("link", "iframe", "img", "object", "embed", "base") for tag, _ in parts.tags)
    assert not any({"src", "href"} & set(attributes) for _, attributes in parts.tags)
    assert not re.search(r"https?://|@import|url\(", text)


HOSTILE = "</script><script>alert(1)</script><!-- <script> ]]> {{script}} \u2028 & \" ' <img src=x onerror=alert(1)>"


def test_text_never_becomes_markup():
    words = [[word] for word in HOSTILE.split(" ")]
    trace = a_trace(tokens(*words, end=True), tokens(*words, start=True), run=HOSTILE, faithfulness=HOSTILE)
    plain, text = page(korean_english()), page(trace)
    (data, parts), known = read(text), Parts(plain)
    assert data["examples"][0]["title"] == data["examples"][0]["run"] == HOSTILE
    shape = [tag for tag, _ in known.tags]
    assert [tag for tag, _ in parts.tags] == shape
    assert "<!--" not in text and text.count("</script>") == plain.count("</script>")


@given(st.text(min_size=1, max_size=40))
def test_any_text_can_be_shown(text):
    axis = Tokens((text,), ((0, len(text)),), text)
    map = a_map([[1.0]], axis, axis, "encoder.blocks.0.attention", "self")
    shown = page(Trace({map.name: [map]}, {"source": text}), title=text)
    data, _ = read(shown)
    assert data["examples"][0]["title"] == text
    shown.encode("utf-8")


def test_a_lone_surrogate_does_not_break_the_file(tmp_path):
    trace = a_trace(tokens(["a\ud800"], end=True), tokens(["b"], start=True), run="runs/\udcff")
    trace.to_page(tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size > 10_000


def test_several_texts_and_the_examples_of_a_batch():
    one, other = korean_english(), a_trace(KOREAN, tokens(["You"], ["are"], start=True), layers=1)
    assert [e["title"] for e in read(page([one, other]))[0]["examples"]] == ["나는 학생이다"] * 2
    maps = {
        name: [*maps, *a_trace(tokens(["둘"], end=True), tokens(["two"], start=True))[name]]
        for name, maps in one.items()
    }
    data, _ = read(page(Trace(maps, {"source": "only of the first", "run": "runs/a"})))
    assert [e["title"] for e in data["examples"]] == ["나는 학생이다", "둘"]


def test_an_alignment_in_the_notes_is_shown():
    trace = korean_english()
    note = Reader("decoder.blocks.1.cross", (0, 2), "unshifted").note(trace)
    aligned = Trace(trace.maps, {**trace.notes, "alignment": {**note, "sure": [[0, 0]], "possible": [[1, 2]]}})
    data, parts = read(page(aligned))
    section = data["examples"][0]["sections"][-1]
    assert section["id"] == "alignment" and section["reading"] == "unshifted"
    assert section["links"] == note["links"] and section["sure"] == [[0, 0]]
    mean = trace["decoder.blocks.1.cross"][0].weights[[0, 2]].mean(0)
    assert np.abs(weights(parts, section["layers"][0], 6, 5)[0] - mean.numpy()).max() < 1e-5


def test_positions_are_shown_with_their_sign():
    axis = Tokens(("0", "1"), ((0, 0), (0, 0)), "")
    map = a_map([[1.0, -0.5], [-0.5, 1.0]], axis, axis, "encoder.positions", "position")
    data, parts = read(page(Trace({map.name: [map]})))
    (section,) = data["examples"][0]["sections"]
    assert section["id"] == "position"
    assert weights(parts, section["layers"][0], 2, 2)[0].ravel() == pytest.approx([1, -0.5, -0.5, 1], abs=1e-4)


def test_bad_figures_in_the_notes_are_left_out():
    data, _ = read(page(korean_english(score=float("nan"), token_scores=[float("-inf"), None, -0.1])))
    assert data["examples"][0]["score"] is None
    assert data["examples"][0]["axes"][1]["scores"] == [None, None, -0.1]


def test_nothing_to_show_is_an_error():
    windowed = Map(
        "a", "self", soft(1, 4, 4), KOREAN, KOREAN, (0,), (0, 1, 2, 3), where=torch.zeros(1, 4, dtype=torch.long)
    )
    for empty in (Trace(), [], Trace({"a": [windowed]})):
        with pytest.raises(RunError, match="nothing to show"):
            page(empty)


# --- Too large (BL-61) ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [20_000, 120_000, 400_000])
def test_a_page_keeps_to_its_limit_and_says_what_it_left_out(limit):
    words = [["가", "나"]] * 60
    traces = [a_trace(tokens(*words, end=True), tokens(*words, start=True), 3, 4, seed=i) for i in range(6)]
    data, parts = read(page(traces, limit=limit))
    packed = sum(len(text) for id, text in parts.scripts.items() if id.startswith("weights-"))
    assert packed <= limit * 1.1 or len(data["examples"]) == 1
    assert "A reduced view" in data["reduced"]
    if len(data["examples"]) < 6:
        assert f"the first {len(data['examples'])} of 6 texts" in data["reduced"]
    layer = data["examples"][0]["sections"][0]["layers"][0]
    exact = entropy(traces[0]["encoder.blocks.0.attention"][0]).mean(1)
    if layer["heads"]:
        assert layer["entropy"] == pytest.approx(exact.tolist(), abs=1e-4)  # of the whole, whatever is drawn


@pytest.mark.parametrize("detail", LADDER)
def test_every_rung_of_the_ladder_keeps_the_largest_weights(detail):
    pack, map = _Pack(detail), a_map(soft(2, 6, 100), tokens(*[["a"]] * 5, start=True), tokens(*[["b"]] * 100))
    layer = pack._map(map, [])
    raw = np.frombuffer(zlib.decompress(base64.b64decode(pack.weights[0])), "<u2" if detail.exact else "u1")
    kept = raw.reshape(-1, 6, 100)
    whole = map.weights if detail.heads else map.weights.mean(0, keepdim=True)
    assert (kept.argmax(-1) == whole.numpy().argmax(-1)).all()
    assert detail.largest is None or (kept > 0).sum(-1).max() <= detail.largest
    assert layer["heads"] == ([0, 1] if detail.heads else [])


def test_it_shows_itself_in_a_notebook():
    frame = korean_english()._repr_html_()
    parts = Parts(frame)
    ((tag, attributes),) = parts.tags
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"].startswith("<!doctype html>")
    assert read(attributes["srcdoc"])[0]["examples"][0]["title"] == "나는 학생이다"


def answered(layers: int = 2, heads: int = 2) -> Trace:
    """The trace of a classifier: self-attention over a text that begins with a mark, and what its answers hang on."""
    text = tokens(["a"], ["fi", "ne"], ["film"], start=True, end=True)
    maps = {
        f"blocks.{i}.attention": [a_map(soft(heads, 6, 6, i), text, text, f"blocks.{i}.attention", "self")]
        for i in range(layers)
    }
    classes = Tokens(("good", "bad"), ((0, 4), (5, 8)), "good bad")
    for name in ("relevance.attention", "relevance.gradient"):
        maps[name] = [a_map(soft(1, 2, 6, 9), classes, text, name, "relevance")]
    return Trace(maps, {"source": text.text, "target": "good 0.9"})


def test_an_answer_has_what_it_hangs_on_and_the_first_token_a_row_a_layer():
    trace = answered(layers=3)
    (example,) = read(page(trace))[0]["examples"]
    sections = {section["id"]: section["layers"] for section in example["sections"]}
    assert [layer["label"] for layer in sections["relevance"]] == ["attention", "gradient"]
    assert list(sections) == ["encoder", "first", "rollout", "relevance"]
    (first,) = sections["first"]
    assert example["axes"][first["query"]]["pieces"] == ["layer 1", "layer 2", "layer 3"]
    assert first["heads"] == [0, 1] and not sections["relevance"][0]["decoder"]
    seen = first_rows(trace.select(kind="self"))
    for layer, map in enumerate(trace.select(kind="self")):
        assert torch.equal(seen.weights[:, layer], map.weights[:, 0])


def test_all_pages_stand_in_one_frame():
    pages = [file for file in files("qkv.look").iterdir() if file.name.endswith(".html")]
    framed = [file.name for file in pages if "Content-Security-Policy" in file.read_text(encoding="utf-8")]
    assert framed == ["frame.html"]
