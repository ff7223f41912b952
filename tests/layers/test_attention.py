"""The one attention layer: what is hidden weighs nothing, on every path, in every precision, with finite gradients."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from qkv.layers.attention import Attention, KeyValue, attend, attention_weights
from qkv.layers.mask import CAUSAL, EVERYTHING, Mask, padding
from qkv.layers.score import Additive, Bilinear, Cosine, Dot, ScaledDot
from qkv.look.trace import trace
from samples import close, memory, tensor

DEPTH = 4
SCORES = {
    "scaled": ScaledDot, "dot": Dot, "cosine": Cosine,
    "bilinear": lambda: Bilinear(DEPTH), "additive": lambda: Additive(DEPTH),
}  # fmt: skip
# A tap that says it intervenes, and changes nothing: it sends the layer down the explicit path.
EXPLICIT = SimpleNamespace(intervenes=True, see=lambda *_: None, edit=lambda weights, mask: weights)
PATHS = pytest.mark.parametrize("tap", [None, EXPLICIT], ids=["fused", "explicit"])
EVERY_SCORE = pytest.mark.parametrize("name", SCORES)
names = st.sampled_from(sorted(SCORES))
paths = st.sampled_from([None, EXPLICIT])
sizes = st.integers(1, 6)
seeds = st.integers(0, 999)


def random_mask(seed: int, *shape: int, kept: float = 0.6) -> Mask:
    return Mask(torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < kept)


def lengths(*real: int, keys: int = 3) -> Mask:
    return padding(torch.tensor(real), keys)


def padded_band(tokens: int, width: int, real: int) -> Mask:
    """Each token sees its neighbours less than ``width`` away, and of those the real ones only."""
    place = torch.arange(tokens)
    return Mask((place[:, None] - place).abs() < width) & Mask((place < real)[None, :])


# What is hidden


@given(seed=seeds, queries=sizes, keys=sizes, name=names, tap=paths)
def test_a_hidden_key_weighs_nothing_and_its_value_changes_nothing(seed, queries, keys, name, tap):
    score, mask = SCORES[name](), random_mask(seed, 2, 1, queries, keys)
    query, seen = tensor(seed, 2, 3, queries, DEPTH), memory(seed + 1, 2, 3, keys, DEPTH)
    weights = attention_weights(score.scores(query, seen.key), mask.keep)
    assert (weights[~mask.keep.expand_as(weights)] == 0).all()
    hidden = ~mask.keep.any(-2)[..., None]  # from every query: (batch, 1, key, 1)
    nonsense = KeyValue(seen.key.masked_fill(hidden, 1e4), seen.value.masked_fill(hidden, -1e4))
    close(*(attend(query, them, score, mask=mask, tap=tap) for them in (seen, nonsense)))


@given(seed=seeds, queries=sizes, keys=sizes, name=names, tap=paths)
def test_rows_of_weights_sum_to_one_or_are_all_zero_and_every_path_agrees(seed, queries, keys, name, tap):
    score, mask = SCORES[name](), random_mask(seed, 2, 1, queries, keys, kept=0.4)
    query, seen = tensor(seed, 2, 3, queries, DEPTH), memory(seed + 1, 2, 3, keys, DEPTH)
    weights = attention_weights(score.scores(query, seen.key), mask.keep)
    close(weights.sum(-1), mask.keep.any(-1).float().expand_as(weights[..., 0]))
    close(attend(query, seen, score, mask=mask, tap=tap), weights @ seen.value)


@PATHS
@EVERY_SCORE
@pytest.mark.parametrize(
    ("mask", "tokens"),
    [(lengths(3, 0), 3), (padded_band(16, 4, 4), 16), (lengths(2, 0) & CAUSAL, 3)],
    ids=["an empty text", "a band over padding", "causal over an empty text"],
)
def test_a_row_that_sees_nothing_is_zero_and_leaves_every_gradient_as_without_it(name, tap, mask, tokens):  # BL-01
    score = SCORES[name]()
    leaves = [tensor(seed, 2, 1, tokens, DEPTH).requires_grad_() for seed in range(3)]
    query, key, value = leaves
    somewhere = mask.dense(tokens, tokens).expand(2, 1, tokens, tokens).any(-1, keepdim=True)
    output = attend(query, KeyValue(score.remember(key), value), score, mask=mask, tap=tap)
    assert (output.masked_select(~somewhere) == 0).all()
    assert (~somewhere).any()

    pull = tensor(9, 2, 1, tokens, DEPTH)
    learned = [*leaves, *score.parameters()]
    with_it = torch.autograd.grad((output * pull).sum(), learned, retain_graph=True)
    without_it = torch.autograd.grad((output * pull * somewhere).sum(), learned)
    for one, other in zip(with_it, without_it, strict=True):
        assert one.isfinite().all()
        close(one, other, 1e-6)


@PATHS
def test_an_empty_text_in_the_batch_leaves_the_gradients_of_a_layer_as_without_it(tap):  # BL-01
    layer = Attention(8, 2)
    layer.tap = tap
    states = tensor(0, 2, 3, 8)

    def gradients(batch, lengths):
        layer.zero_grad()
        output = layer(batch, mask=padding(torch.tensor(lengths), 3))
        output[:1].pow(2).sum().backward()
        return [parameter.grad.clone() for parameter in layer.parameters()]

    for one, other in zip(gradients(states, [3, 0]), gradients(states[:1], [3]), strict=True):
        close(one, other, 1e-6)


# Precision


@PATHS
@EVERY_SCORE
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mask", [EVERYTHING, CAUSAL, lengths(5, 0, keys=5)], ids=["all", "causal", "padding"])
def test_half_precision_is_single_precision_within_two_hundredths(name, tap, dtype, mask):
    score, query, seen = SCORES[name](), tensor(0, 2, 2, 5, DEPTH), memory(1, 2, 2, 5, DEPTH)
    single = attend(query, seen, score, mask=mask, tap=tap)
    seen = KeyValue(seen.key.to(dtype), seen.value.to(dtype))
    half = attend(query.to(dtype), seen, score.to(dtype), mask=mask, tap=tap)
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), single, atol=2e-2, rtol=2e-2)


@PATHS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_hidden_row_of_scores_of_minus_twenty_is_zero_in_half_precision(tap, dtype):  # BL-05
    assert torch.tensor(-65504.0, dtype=torch.float16) + torch.tensor(-20.0, dtype=torch.float16) < -65504
    query, key = torch.full((1, 1, 1, 1), -20.0, dtype=dtype), torch.ones(1, 1, 2, 1, dtype=dtype)
    hidden = Mask(torch.zeros(1, 1, 1, 2, dtype=torch.bool))
    assert attend(query, KeyValue(key, key), Dot(), mask=hidden, tap=tap).item() == 0
    second_only = Mask(torch.tensor([[[[False, True]]]]))
    values = torch.tensor([5.0, 7.0], dtype=dtype).reshape(1, 1, 2, 1)
    assert attend(query, KeyValue(key, values), Dot(), mask=second_only, tap=tap).item() == 7


# Order


@given(seed=seeds, tokens=sizes, name=names, tap=paths)
def test_without_positions_self_attention_commutes_with_permutation(seed, tokens, name, tap):
    layer = Attention(8, 2, score=SCORES[name]())
    layer.tap = tap
    states = tensor(seed, 2, tokens, 8)
    order = torch.randperm(tokens, generator=torch.Generator().manual_seed(seed))
    close(layer(states[:, order]), layer(states)[:, order])


@given(seed=seeds, tokens=st.integers(2, 6), data=st.data(), tap=paths)
def test_under_a_causal_mask_a_token_changes_nothing_before_it(tap, seed, tokens, data):
    layer, states = Attention(8, 2), tensor(seed, 1, tokens, 8)
    layer.tap = tap
    changed_at = data.draw(st.integers(1, tokens - 1))
    changed = states.clone()
    changed[:, changed_at:] = tensor(seed + 1, 1, tokens - changed_at, 8)
    close(layer(states, mask=CAUSAL)[:, :changed_at], layer(changed, mask=CAUSAL)[:, :changed_at])
    assert not torch.allclose(layer(states, mask=CAUSAL)[:, changed_at], layer(changed, mask=CAUSAL)[:, changed_at])


@given(seed=seeds, tokens=st.integers(1, 40), chunk=st.integers(1, 5), tap=paths)
def test_a_cache_filled_chunk_by_chunk_gives_what_one_pass_gives(tap, seed, tokens, chunk):  # BL-04
    layer, states = Attention(8, 2), tensor(seed, 2, tokens, 8)
    layer.tap = tap
    cache, outputs = None, []
    with torch.no_grad():
        for begin in range(0, tokens, chunk):
            newest = layer.remember(states[:, begin : begin + chunk])
            cache = newest if cache is None else cache.append(newest)
            outputs.append(layer(states[:, begin : begin + chunk], cache, mask=CAUSAL))
        close(torch.cat(outputs, 1), layer(states, mask=CAUSAL))


# The cache is a value


@given(seed=seeds, counts=st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_appending_is_concatenating_and_changes_no_earlier_cache(seed, counts):
    parts = [memory(seed + i, 2, 3, count, DEPTH) for i, count in enumerate(counts)]
    caches = [parts[0]]
    for part in parts[1:]:
        caches.append(caches[-1].append(part))
    for i, cache in enumerate(caches):
        assert torch.equal(cache.key, torch.cat([part.key for part in parts[: i + 1]], -2))
        assert torch.equal(cache.value, torch.cat([part.value for part in parts[: i + 1]], -2))


def test_selecting_takes_examples_in_order_and_lets_them_grow_apart():
    cache = memory(0, 3, 1, 2, DEPTH).append(memory(2, 3, 1, 1, DEPTH))
    chosen = cache.select(torch.tensor([2, 0, 2]))
    assert torch.equal(chosen.key, cache.key[[2, 0, 2]])
    more = memory(4, 3, 1, 1, DEPTH)
    assert torch.equal(chosen.append(more).value, torch.cat([cache.value[[2, 0, 2]], more.value], -2))


# The layer


@given(seed=seeds, lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_it_is_the_multi_head_attention_of_torch(seed, lengths):
    ours, theirs = Attention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    query, seen = tensor(seed, len(lengths), 3, 8), tensor(seed + 1, len(lengths), 5, 8)
    mask = padding(torch.tensor(lengths), 5)
    close(ours(query, seen, mask=mask), theirs(query, seen, seen, key_padding_mask=~mask.keep[:, 0, 0])[0])


@EVERY_SCORE
def test_without_projections_it_compares_the_states_themselves(name):
    layer = Attention(DEPTH, score=SCORES[name](), project=False)
    query, seen = tensor(0, 2, 3, DEPTH), tensor(1, 2, 5, DEPTH)
    weights = attention_weights(layer.score.scores(query, layer.score.remember(seen)))
    close(layer(query, seen), weights @ seen)
    assert [name for name, _ in layer.named_parameters() if not name.startswith("score.")] == []


@pytest.mark.parametrize("score", [Bilinear(4, 6), Additive(4, 6)], ids=["bilinear", "additive"])
def test_a_score_that_joins_widths_reads_a_memory_of_its_own_width(score):
    layer = Attention(4, memory_width=6, score=score, project=False)
    assert layer(tensor(0, 2, 3, 4), tensor(1, 2, 5, 6)).shape == (2, 3, 6)


def test_heads_must_share_the_width_evenly():
    with pytest.raises(ValueError, match="dim 10 cannot be shared evenly by 4 heads"):
        Attention(10, 4)


@given(seed=seeds, tap=paths)
def test_a_bias_is_added_to_the_scores_and_hides_nothing(tap, seed):
    query, seen, bias = tensor(seed, 2, 3, 4, DEPTH), memory(seed + 1, 2, 3, 5, DEPTH), tensor(seed + 3, 1, 3, 4, 5)
    for mask in (EVERYTHING, padding(torch.tensor([4, 0]), 5)):
        weights = attention_weights(ScaledDot().scores(query, seen.key) + bias, mask.keep)
        close(attend(query, seen, ScaledDot(), mask=mask, bias=bias, tap=tap), weights @ seen.value)


@PATHS
def test_dropout_takes_weights_in_training_only(tap):
    layer, states = Attention(8, 2, dropout=0.5), tensor(0, 1, 6, 8)
    layer.tap = tap
    assert not torch.equal(layer(states), layer(states))
    layer.eval()
    assert torch.equal(layer(states), layer(states))


@torch.no_grad()
def test_a_layer_that_is_read_at_its_first_tokens_says_the_same_of_them_and_shows_all_of_its_maps():
    layer, states = Attention(8, 2, between=("tokens", "tokens")).eval(), tensor(0, 3, 5, 8)
    mask = Mask(torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)[:, None, None, :])
    for keep in (EVERYTHING, mask, Mask(mask.keep.expand(3, 1, 5, 5))):
        whole = layer(states, mask=keep)
        for first in (1, 2):
            close(layer(states, mask=keep, first=first), whole[:, :first])
        before = layer(states, mask=keep, first=2)
        with trace(layer) as seen:
            assert torch.equal(layer(states, mask=keep, first=2), before)
        assert seen[""][0].weights.shape == (2, 5, 5)
        with trace(layer, edit=lambda name, weights: weights):
            close(layer(states, mask=keep, first=2), before)
    with pytest.raises(ValueError, match="causal"):
        layer(states, mask=CAUSAL, first=1)
