"""The record of a look: what is saved is what is loaded."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from traces import a_map, korean_english, soft, texts, tokens

from qkv.errors import ConfigError, RunError
from qkv.look.diff import diff
from qkv.look.record import Map, Trace


def same(a: Trace, b: Trace, tolerance: float = 0.0) -> bool:
    if list(a) != list(b) or a.header() != b.header():
        return False
    return all(
        (x.where is None) == (y.where is None)
        and (x.where is None or torch.equal(x.where, y.where))
        and x.weights.shape == y.weights.shape
        and torch.allclose(x.weights, y.weights, rtol=0, atol=tolerance)
        for x, y in zip(a.select(), b.select(), strict=True)
    )


@given(texts(start=True), texts(end=True), st.integers(0, 99))
def test_save_and_load_is_the_identity(tmp_path_factory, target, source, seed):
    folder = tmp_path_factory.mktemp("record")
    map = a_map(soft(2, len(target), len(source), seed), target, source)
    trace = Trace({map.name: [map]}, {"source": source.text, "score": -0.5})
    trace.save(folder / "a.safetensors")
    assert same(Trace.load(folder / "a.safetensors"), trace)
    trace.save(folder / "a.json")
    assert same(Trace.load(folder / "a.json"), trace, tolerance=1e-6)


def test_examples_that_share_one_tensor_windows_and_empty_maps_are_saved(tmp_path):
    axis = tokens(["a"], ["b"])
    batch = soft(2, 2, 2)[:, None]
    maps = [Map("encoder.blocks.0.attention", "self", w, axis, axis, (0,), (0, 1)) for w in batch]
    again = Map("encoder.blocks.1.attention", "self", batch[0], axis, axis, (0,), (0, 1), where=torch.tensor([[1, 0]]))
    empty = Map("encoder.blocks.2.attention", "self", torch.zeros(0, 2, 2), axis, axis, (), (0, 1))
    trace = Trace({maps[0].name: maps, again.name: [again] * 2, empty.name: [empty] * 2})
    for name in ("a.safetensors", "a.json"):
        trace.save(tmp_path / name)
        assert Trace.load(tmp_path / name)["encoder.blocks.1.attention"][1].where.tolist() == [[1, 0]]
    assert same(Trace.load(tmp_path / "a.safetensors"), trace)


def test_what_is_no_record_is_refused_by_name(tmp_path):
    for name, content in {
        "a.safetensors": b"junk",
        "b.json": b"[1]",
        "c.json": b"{}",
        "d.json": b"{",
        "e.json": b"\xff",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RunError, match=rf"{name}: not a record of qkv"):
            Trace.load(tmp_path / name)
    with pytest.raises(RunError, match="cannot be read"):
        Trace.load(tmp_path / "missing.json")
    with pytest.raises(ConfigError, match=r"'\.gif'"):
        korean_english().save(tmp_path / "a.gif")


def test_json_is_json(tmp_path):
    korean_english().save(tmp_path / "a.json")
    record = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert record["format"] == "qkv-trace/1" and record["notes"]["source"] == "나는 학생이다"


def test_the_suffix_says_what_to_write(tmp_path):
    for name in ("a.html", "a.svg", "a.png"):
        korean_english().save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


# --- Differences ---------------------------------------------------------------------------------------------------


def test_total_variation_by_hand():
    axis = tokens(["a"], ["b"])
    one = Trace({"x": [a_map([[1.0, 0], [0.5, 0.5]], axis, axis, "x", "self")]})
    other = Trace({"x": [a_map([[0.0, 1], [0.25, 0.75]], axis, axis, "x", "self")]})
    (found,) = diff(one, other)
    assert found.rows.tolist() == [[1.0, 0.25]]
    assert found.mean == 0.625 and found.largest == (1.0, 0, 0)
    assert str(found) == "x: mean 0.625, largest 1.000 (head 0, position 0)"


def test_a_record_does_not_differ_from_itself():
    trace = korean_english()
    assert all(found.mean == 0 for found in diff(trace, trace))
    assert len(diff(trace, trace)) == 6


def test_records_of_other_texts_or_layers_are_refused():
    trace = korean_english()
    with pytest.raises(RunError, match="different layers"):
        diff(trace, Trace({"x": []}))
    axis, cut = tokens(["ab"]), tokens(["a", "b"])
    one, other = (Trace({"x": [a_map(soft(1, len(a), len(a)), a, a, "x", "self")]}) for a in (axis, cut))
    with pytest.raises(RunError, match="'ab' against 'a b'"):
        diff(one, other)
