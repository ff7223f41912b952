"""The lectures' claims about sequence to sequence, as tests."""

from dataclasses import replace

import pytest
import torch

from qkv.axis import Tokens
from qkv.decode.search import Marks, Search, search
from qkv.errors import ConfigError
from qkv.look.trace import trace
from qkv.models.seq2seq import Seq2Seq, Seq2SeqConfig
from samples import END, RECURRENT, START, close, padded, tensor, texts


def seq2seq(seed: int = 0, **changes) -> Seq2Seq:
    torch.manual_seed(seed)
    return Seq2Seq(Seq2SeqConfig(**{**RECURRENT, **changes})).eval()


def answer(model: Seq2Seq, state, target) -> torch.Tensor:
    return model.decoder(model.target(target), state.memory, state.memory_mask, state.carried)


SOURCE, LENGTHS = padded(texts(0, [5, 3]))
TARGET = torch.tensor([[START, 5, 6], [START, 7, 8]])


@torch.no_grad()
def test_without_attention_the_encoder_says_nothing_but_the_fixed_vector():
    model = seq2seq(attention="none")
    state = model.start(SOURCE, LENGTHS)
    assert state.memory is None
    other = replace(state, carried=replace(state.carried, cells=tuple(c + 0.5 for c in state.carried.cells)))
    assert not torch.allclose(answer(model, state, TARGET), answer(model, other, TARGET), atol=1e-3)


@pytest.mark.parametrize("attention", ["dot", "bilinear", "additive"])
@torch.no_grad()
def test_with_attention_each_state_of_the_encoder_is_heard(attention):
    model = seq2seq(attention=attention)
    vectors = model.source(SOURCE)
    states, _ = model.encoder(vectors, LENGTHS)
    before = model.start(SOURCE, LENGTHS)
    changed = states.clone()
    changed[0, 1] += 1.0
    after = replace(before, memory=model.decoder.attention.remember(changed))
    one, other = answer(model, before, TARGET), answer(model, after, TARGET)
    assert not torch.allclose(one[0], other[0], atol=1e-4)
    assert torch.equal(one[1], other[1])


@torch.no_grad()
def test_without_attention_a_changed_state_of_the_encoder_changes_nothing():
    model = seq2seq(attention="none")
    before = answer(model, model.start(SOURCE, LENGTHS), TARGET)

    def spoil(module, given, made):
        return made[0] + 1.0, made[1]  # every state, but not where the encoder ended

    handle = model.encoder.register_forward_hook(spoil)
    assert torch.equal(answer(model, model.start(SOURCE, LENGTHS), TARGET), before)
    handle.remove()


@pytest.mark.parametrize("changes", [{}, {"feed": "state"}, {"order": "bahdanau", "attention": "additive"}])
@torch.no_grad()
def test_a_decoder_that_looks_step_by_step_is_traced_whole(changes):
    model = seq2seq(**changes)
    axes = {"source": [_axis(5), _axis(3)], "target": [_axis(3), _axis(3)]}
    with trace(model, axes=axes) as seen:
        model(SOURCE, LENGTHS, TARGET)
    with trace(model, axes=axes) as stepwise:
        state = model.start(SOURCE, LENGTHS)
        for tokens in TARGET.unbind(1):
            _, state = model.step(state, tokens[:, None])
    assert list(seen) == ["decoder.attention"]
    for whole, steps, length in zip(*seen.values(), *stepwise.values(), (5, 3), strict=True):
        assert whole.weights.shape == (1, 3, length) and whole.queries == steps.queries == (0, 1, 2)
        close(whole.weights, steps.weights)
        close(whole.weights.sum(-1), torch.ones(1, 3))


@torch.no_grad()
def test_of_a_decoder_that_looks_step_by_step_single_rows_can_be_traced():
    model = seq2seq(feed="state")
    axes = {"source": [_axis(5), _axis(3)], "target": [_axis(3), _axis(3)]}
    with trace(model, axes=axes) as whole:
        model(SOURCE, LENGTHS, TARGET)
    with trace(model, axes=axes, queries=[1, -1]) as some:
        model(SOURCE, LENGTHS, TARGET)
    for one, other in zip(whole.select(), some.select(), strict=True):
        assert other.queries == (1, 2)
        close(other.weights, one.weights[:, 1:])


@pytest.mark.parametrize("changes", [{"attention": "none"}, {}, {"feed": "state"}, {"order": "bahdanau"}])
@pytest.mark.parametrize("beam", [1, 4])
def test_a_search_finds_alone_what_it_finds_in_company(changes, beam):
    model = seq2seq(3, **changes)
    model.output.weight.data *= 4
    marks, limit = Marks(START, END, (0, START)), torch.tensor([8, 8])
    with torch.inference_mode():
        together = search(model, model.start(SOURCE, LENGTHS), marks, limit, Search(beam=beam))
        for i, length in enumerate(LENGTHS.tolist()):
            state = model.start(SOURCE[i : i + 1, :length], LENGTHS[i : i + 1])
            (alone,) = search(model, state, marks, limit[:1], Search(beam=beam))
            assert alone[0].tokens == together[i][0].tokens
            assert alone[0].score == pytest.approx(together[i][0].score, abs=1e-4)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"attention": "attentive"}, "size.attention is 'attentive'"),
        ({"cell": "lstn"}, "Did you mean 'lstm'"),
        ({"attention": "none", "feed": "state"}, "size.attention is none"),
        ({"dim": 15}, "two directions"),
        ({"dropout": 1.0}, "size.dropout is 1.0"),
        ({"target_words": 5}, "size.tie is 'all'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(changes, words):
    with pytest.raises(ConfigError, match=words):
        Seq2SeqConfig(**{**RECURRENT, **changes})


def test_both_orders_and_feeding_give_the_cell_wider_inputs():
    widths = {
        (order, feed): seq2seq(order=order, feed=feed).decoder.cells.input_size
        for order in ("luong", "bahdanau")
        for feed in ("none", "state")
    }
    assert widths == {
        ("luong", "none"): 16,
        ("luong", "state"): 32,
        ("bahdanau", "none"): 32,
        ("bahdanau", "state"): 48,
    }


def test_very_long_lines_pass(length=600):
    model = seq2seq(attention="additive", depth=1)
    source, target = tensor(0, 1, length), tensor(1, 1, length)
    ids = [(side.abs() * 3).long().clamp(3, 12) for side in (source, target)]
    with torch.no_grad():
        assert model(ids[0], torch.tensor([length]), ids[1]).isfinite().all()


def _axis(length: int) -> Tokens:
    return Tokens(tuple(map(str, range(length))), ((0, 0),) * length, "")
