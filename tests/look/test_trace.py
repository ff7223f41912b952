"""A trace sees what the layers use, changes nothing unless it says so, and is gone when it is closed."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from qkv.axis import Tokens
from qkv.errors import ConfigError, RunError
from qkv.layers.attention import Attention
from qkv.layers.mask import CAUSAL, Mask, padding
from qkv.layers.score import Additive, Bilinear, Cosine, Dot, ScaledDot
from qkv.look.record import Trace
from qkv.look.trace import ablate, position_maps, trace
from samples import START, close, padded, tensor, texts, transformer

LENGTHS = [5, 2, 4]


def batch(lengths=LENGTHS):
    """What a Transformer's forward takes; targets are as long as the sources, and begin with the start mark."""
    targets = [[START, *text[1:]] for text in texts(1, lengths)]
    return (*padded(texts(0, lengths)), *padded(targets))


def axes(lengths=LENGTHS):
    """Axes of such a batch."""
    of_each = [Tokens(tuple("abcde"[:n]), tuple((i, i + 1) for i in range(n)), "abcde"[:n]) for n in lengths]
    return {"source": of_each, "target": of_each}


class Two(nn.Module):
    """Two attention layers, one after the other."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Attention(8, 4), Attention(8, 4)

    def forward(self, states, mask=CAUSAL):
        return self.second(self.first(states, mask=mask), mask=mask)


# What is recorded


@torch.no_grad()
def test_a_map_is_the_softmax_of_the_scores_of_one_layer():
    layer, states, mask = Attention(8, 2), tensor(0, 2, 5, 8), padding(torch.tensor([5, 3]), 5)
    with trace(layer) as seen:
        layer(states, mask=mask)
    [maps] = seen.values()
    for example, map in enumerate(maps):
        for head in range(2):
            width = slice(4 * head, 4 * head + 4)
            query, key = (part(states[example])[:, width] for part in (layer.query, layer.key))
            scores = (query @ key.T / 2).masked_fill(~mask.keep[example, 0], -torch.inf)
            close(map.weights[head], scores.softmax(-1))


@torch.no_grad()
def test_maps_are_named_by_module_path_in_running_order_and_know_their_kind():
    model = transformer()
    with trace(model) as seen:
        model(*batch())
    assert list(seen) == [
        "encoder.0.attention", "encoder.1.attention",
        "decoder.0.attention", "decoder.0.cross", "decoder.1.attention", "decoder.1.cross",
    ]  # fmt: skip
    assert {name: (maps[0].kind, maps[0].causal) for name, maps in seen.items()} == {
        "encoder.0.attention": ("self", False), "encoder.1.attention": ("self", False),
        "decoder.0.attention": ("self", True), "decoder.1.attention": ("self", True),
        "decoder.0.cross": ("cross", False), "decoder.1.cross": ("cross", False),
    }  # fmt: skip
    assert seen.last("cross") is seen["decoder.1.cross"][0]


@pytest.mark.parametrize(
    ("layers", "count"),
    [
        ("decoder.*.cross", 2),
        ("encoder.*", 2),
        ("*", 6),
        (["decoder.1.cross", "encoder.0.*"], 2),
        ("decoder.0.cross", 1),
    ],
)
@torch.no_grad()
def test_as_many_layers_are_seen_as_were_asked_for(layers, count):
    model = transformer()
    with trace(model, layers=layers) as seen:
        model(*batch())
    assert len(seen) == count
    assert len(seen.select()) == count * len(LENGTHS)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 99),
    heads=st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True),
    queries=st.none() | st.lists(st.integers(-2, 1), min_size=1, max_size=3),
    edited=st.booleans(),
)
@torch.no_grad()
def test_some_heads_and_rows_are_a_slice_of_the_whole_trace(seed, heads, queries, edited):
    model, edit = transformer(seed), (lambda name, weights: weights / 2) if edited else None
    with trace(model, axes=axes(), edit=edit) as whole:
        model(*batch())
    with trace(model, axes=axes(), edit=edit, heads=heads, queries=queries) as part:
        model(*batch())
    assert len(part.select()) == len(whole.select())
    for some, all in zip(part.select(), whole.select(), strict=True):
        rows = range(len(all.query)) if queries is None else sorted({row % len(all.query) for row in queries})
        assert some.queries == tuple(rows)
        assert some.heads == tuple(range(4) if heads is None else heads)
        close(some.weights, all.weights[list(some.heads)][:, list(rows)], 1e-6)


@torch.no_grad()
def test_the_last_row_is_the_last_of_each_example():
    model = transformer()
    with trace(model, axes=axes(), queries=[-1]) as seen:
        model(*batch())
    assert [map.queries for map in seen["decoder.0.cross"]] == [(length - 1,) for length in LENGTHS]


@torch.no_grad()
def test_axes_trim_each_map_to_its_text():
    model = transformer()
    with trace(model, axes=axes()) as seen:
        model(*batch())
    with trace(model) as untrimmed:
        model(*batch())
    for name in seen:
        for example, length in enumerate(LENGTHS):
            map, long = seen[name][example], untrimmed[name][example]
            assert map.weights.shape == (4, length, length)
            assert len(map.query) == len(map.key) == length
            close(map.weights, long.weights[:, :length, :length])
            close(map.weights.sum(-1), torch.ones(4, length))
            assert long.query.pieces == ("0", "1", "2", "3", "4")  # bare indices where nothing is known


@torch.no_grad()
def test_the_axes_of_a_batch_are_used_and_given_ones_go_before_them():
    model, given_axes = transformer(), axes()
    of_batch = type("Batch", (), {"axes": axes()})()
    with trace(model, of_batch) as seen:
        model(*batch())
    assert seen["encoder.0.attention"][1].query.pieces == ("a", "b")
    given_axes["source"] = [Tokens(("x",), ((0, 1),), "x")] * 3
    with trace(model, of_batch, axes=given_axes) as seen:
        model(*batch())
    assert seen["decoder.0.cross"][1].key.pieces == ("x",)


@torch.no_grad()
def test_a_layer_that_runs_twice_is_recorded_by_its_last_run():
    layer, last = Attention(8, 2), tensor(1, 2, 3, 8)
    with trace(layer) as seen:
        layer(tensor(0, 1, 5, 8))
        layer(last)
    with trace(layer) as once:
        layer(last)
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(seen.select(), once.select(), strict=True))


@pytest.mark.parametrize("make", [ScaledDot, Dot, Cosine, lambda: Bilinear(4), lambda: Additive(4)])
@pytest.mark.parametrize("how", ["fp16", "bf16", "autocast"])
@torch.no_grad()
def test_every_score_is_traced_in_half_precision(make, how):
    layer, states = Attention(8, 2, score=make()), tensor(0, 2, 5, 8)
    with trace(layer) as single:
        layer(states)
    dtype = torch.float16 if how == "fp16" else torch.bfloat16
    if how != "autocast":
        layer, states = layer.to(dtype), states.to(dtype)
    with torch.autocast("cpu", dtype, enabled=how == "autocast"):
        before = layer(states)
        with trace(layer) as seen:
            assert torch.equal(layer(states), before)
    for half, whole in zip(seen.select(), single.select(), strict=True):
        assert half.weights.dtype == torch.float32
        torch.testing.assert_close(half.weights, whole.weights, atol=2e-2, rtol=2e-2)


@torch.no_grad()
def test_the_steps_of_a_search_can_be_looked_at():
    model = transformer()
    state = model.start(*padded(texts(0, [3, 2])))
    _, state = model.step(state, torch.full((2, 1), START))
    state = model.select(state, torch.zeros(2, 3, dtype=torch.long))
    tokens = torch.tensor([[5, 6, 7], [8, 9, 3]])
    with trace(model, layers="decoder.*", heads=[1], queries=[0, 2]) as seen:
        model.step(state, tokens)
    weights = seen["decoder.0.attention"][0].weights
    assert weights.shape == (1, 2, 4)  # the start, and the three newest words: a hypothesis sees its own only
    assert (weights[0] > 0).tolist() == [[True, True, False, False], [True, False, False, True]]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_tables_of_positions_have_maps_of_how_alike_they_are(positions):
    model = transformer(positions=positions)
    seen = position_maps(model, axes())
    assert list(seen) == ["source.position", "target.position"]
    for length, map in zip(LENGTHS, seen["source.position"], strict=True):
        assert (map.kind, map.weights.shape, map.heads) == ("position", (1, length, length), (0,))
        rows = nn.functional.normalize(model.source.position(0, length), dim=-1)
        close(map.weights[0], rows @ rows.T)
    assert list(position_maps(model, axes(), "target.*")) == ["target.position"]


# Nothing changes


def test_tracing_changes_no_gradient_and_no_dropout():
    model = transformer(dropout=0.3).train()

    def gradients():
        torch.manual_seed(1)
        model.zero_grad()
        model(*batch()).pow(2).sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    before = gradients()
    with trace(model) as seen:
        during = gradients()
    assert all(torch.equal(a, b) for a, b in zip(before, during, strict=True))
    assert not any(map.weights.requires_grad for map in seen.select())


def test_an_edit_that_changes_nothing_changes_neither_answer_nor_gradient():
    model = Two()
    states = tensor(0, 2, 5, 8)
    plain = model(states)
    before = torch.autograd.grad(plain.sum(), list(model.parameters()))
    with trace(model, edit=lambda name, weights: weights):
        edited = model(states)
        during = torch.autograd.grad(edited.sum(), list(model.parameters()))
    close(edited, plain)
    for one, other in zip(before, during, strict=True):
        close(one, other)


# Interventions


@given(seed=st.integers(0, 99), silenced=st.lists(st.integers(0, 3), unique=True))
@torch.no_grad()
def test_an_ablated_head_is_a_head_that_adds_nothing(seed, silenced):
    layer, states = Attention(8, 4), tensor(seed, 2, 5, 8)
    memory = layer.remember(states)
    heads = torch.nn.functional.scaled_dot_product_attention(
        layer._split(layer.query(states)), memory.key, memory.value
    )
    heads[:, silenced] = 0
    expected = layer.output(heads.transpose(1, 2).flatten(2))
    with trace(layer, edit=ablate({"*": silenced})) as seen:
        close(layer(states), expected)
    for map in seen.select():  # what was used is what is recorded
        sums = map.weights.sum(-1)
        close(sums, torch.tensor([0.0 if head in silenced else 1.0 for head in range(4)])[:, None].expand_as(sums))


@torch.no_grad()
def test_an_ablation_touches_the_layers_it_names_only():
    model, states = Two(), tensor(0, 1, 5, 8)
    with trace(model) as plain:
        model(states)
    with trace(model, edit=ablate({"second": [2]})) as seen:
        model(states)
    close(seen["first"][0].weights, plain["first"][0].weights)
    close(seen["second"][0].weights[[0, 1, 3]], plain["second"][0].weights[[0, 1, 3]])
    assert (seen["second"][0].weights[2] == 0).all()


@torch.no_grad()
def test_patching_uses_the_weights_given_and_records_them():
    layer, states = Attention(8, 2), tensor(0, 1, 4, 8)
    uniform = torch.full((1, 2, 4, 4), 0.25)
    with trace(layer, edit=lambda name, weights: uniform, heads=[1], queries=[-1]) as seen:
        patched = layer(states)
    expected = layer.output(layer.value(states).mean(1, keepdim=True).expand(-1, 4, -1))
    close(patched, expected)
    assert torch.equal(seen.select()[0].weights, torch.full((1, 1, 4), 0.25))


def test_an_edit_is_seen_once_for_each_run_with_names_and_whole_weights():
    calls = []

    def edit(name, weights):
        calls.append((name, tuple(weights.shape)))
        return weights

    model = Two()
    with trace(model, edit=edit, heads=[0], queries=[0]):
        model(tensor(0, 2, 5, 8))
    assert calls == [("first", (2, 4, 5, 5)), ("second", (2, 4, 5, 5))]


# Opening and closing


def test_a_second_trace_of_a_traced_layer_is_refused_and_the_first_goes_on():
    model = Two()
    with trace(model, layers="first") as seen:
        with pytest.raises(ConfigError, match=r"already being traced. Close the first trace"), trace(model):
            pass
        with trace(model, layers="second") as other:
            model(tensor(0, 1, 3, 8))
    assert (list(seen), list(other)) == (["first"], ["second"])


def test_an_error_inside_closes_the_trace():
    model = Two()
    with pytest.raises(ZeroDivisionError), trace(model):
        raise ZeroDivisionError
    assert model.first.tap is None is model.second.tap
    with trace(model) as seen:
        model(tensor(0, 1, 3, 8))
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (dict(layers="third"), "no attention layer matches 'third'. Layers here: first, second"),
        (dict(heads=[4]), "first has no head 4; expected 0 to 3"),
        (dict(heads=[-1]), "first has no head -1"),
    ],
)
def test_what_is_not_there_cannot_be_traced(wanted, message):
    model = Two()
    with pytest.raises(ConfigError, match=message), trace(model, **wanted):
        pass
    assert model.first.tap is None


def test_a_row_that_is_not_there_is_named():
    model = Two()
    with pytest.raises(ConfigError, match="first has no query 5 among 3 positions"), trace(model, queries=[5]):
        model(tensor(0, 1, 3, 8))


@pytest.mark.parametrize("edit", [None, ablate({"*": [0, 1, 2, 3]})], ids=["watching", "intervening"])
@torch.no_grad()
def test_another_threads_run_is_not_recorded_and_has_the_right_answer(edit):
    model, mine, theirs = Two(), tensor(0, 1, 3, 8), tensor(1, 1, 5, 8)
    right, answers = model(theirs), []
    with trace(model, edit=edit) as seen:
        model(mine)
        thread = threading.Thread(target=lambda: answers.append(model(theirs)))
        thread.start()
        thread.join()
    close(answers[0], right, 1e-7)
    assert [map.weights.shape for map in seen.select()] == [(4, 3, 3)] * 2


# Compiled modules


def test_a_compiled_module_is_traced_uncompiled_and_not_compiled_again():
    script = Path(__file__).with_name("compiled.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# The record


@torch.no_grad()
def test_a_record_comes_back_as_it_was_saved(tmp_path):
    model = transformer()
    with trace(model, axes=axes(), heads=[3, 1], queries=[0, -1]) as seen:
        model(*batch())
    seen.notes["text"] = "나는 학생이다"
    seen.save(tmp_path / "look.safetensors")
    loaded = Trace.load(tmp_path / "look.safetensors")
    assert loaded.header() == seen.header()
    assert list(loaded) == list(seen)
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(loaded.select(), seen.select(), strict=True))
    seen.save(tmp_path / "look.json")
    rounded = Trace.load(tmp_path / "look.json")
    assert rounded.header() == seen.header()
    for one, other in zip(rounded.select(), seen.select(), strict=True):
        close(one.weights, other.weights, 1e-4)


@torch.no_grad()
def test_a_record_is_selected_by_name_kind_and_example_and_read_by_row():
    model = transformer()
    with trace(model, axes=axes(), queries=[-1]) as seen:
        model(*batch())
    assert {map.name for map in seen.select("decoder.*", kind="self")} == {"decoder.0.attention", "decoder.1.attention"}
    second = seen.example(1)
    assert [len(maps) for maps in second.values()] == [1] * 6
    map = second.last("cross")
    assert map is seen["decoder.1.cross"][1]
    assert torch.equal(map.row(1), map.weights[:, 0])
    with pytest.raises(RunError, match=r"query 0 of decoder.1.cross was not recorded. Recorded: \[1\]"):
        map.row(0)
    close(map.mean().weights[0], map.weights.mean(0))
    with pytest.raises(RunError, match="no map of kind 'mixing'"):
        seen.last("mixing")


def test_a_mask_over_heads_is_cut_with_them():
    layer, keep = Attention(8, 2), torch.tensor([[1, 0, 1], [0, 1, 1]]).bool()[None, :, None]
    with trace(layer, heads=[1]) as seen, torch.no_grad():
        layer(tensor(0, 1, 3, 8), mask=Mask(keep))
    assert ((seen.select()[0].weights > 0) == keep[0, 1]).all()
