"""Scores: what folds gives the same weights folded and explicit; the MLP score is the formula of its paper."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.layers.attention import KeyValue, attend, attention_weights
from qkv.layers.score import SCORES, Additive, Bilinear, Cosine, Dot, ScaledDot
from samples import close, memory, tensor

DEPTH = 6
FOLDING = {**{name: SCORES[name] for name in sorted(SCORES)}, "bilinear": lambda: Bilinear(DEPTH)}
sizes = st.integers(1, 7)


@given(name=st.sampled_from(sorted(FOLDING)), seed=st.integers(0, 999), queries=sizes, keys=sizes)
def test_the_folded_score_is_the_explicit_score(name, seed, queries, keys):
    score = FOLDING[name]()
    query, seen = tensor(seed, 2, 3, queries, DEPTH), memory(seed + 1, 2, 3, keys, DEPTH)
    explicit = attention_weights(score.scores(query, seen.key)) @ seen.value
    close(attend(query, seen, score), explicit)


@pytest.mark.parametrize(
    ("name", "formula"),
    {
        "scaled": lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(q)),
        "dot": lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)),
        "cosine": lambda q, k: 10 * sum(a * b for a, b in zip(q, k, strict=True)) / (math.hypot(*q) * math.hypot(*k)),
    }.items(),
)
def test_each_score_is_its_formula(name, formula):
    query, key = tensor(0, 1, 1, 3, DEPTH), tensor(1, 1, 1, 4, DEPTH)
    by_hand = [[formula(q, k) for k in key[0, 0].tolist()] for q in query[0, 0].tolist()]
    close(SCORES[name]().scores(query, key)[0, 0], torch.tensor(by_hand))


def test_bilinear_is_q_w_k_and_joins_widths_that_differ():
    score, query, key = Bilinear(3, 5), tensor(0, 1, 1, 2, 3), tensor(1, 1, 1, 4, 5)
    by_hand = torch.einsum("qi,ij,kj->qk", query[0, 0], score.weight, key[0, 0])
    close(score.scores(query, key)[0, 0], by_hand)


def test_additive_is_a_small_network_over_each_pair():
    score, query, key = Additive(3, 5, hidden=4), tensor(0, 2, 2, 3, 3), tensor(1, 2, 2, 4, 5)
    scores = score.scores(query, score.remember(key))
    assert score.fold(query, key) is None
    for batch in range(2):
        for head in range(2):
            for i in range(3):
                for j in range(4):
                    hidden = score.query.weight @ query[batch, head, i] + score.key.weight @ key[batch, head, j]
                    by_hand = score.value.weight[0] @ torch.tanh(hidden + score.key.bias)
                    close(scores[batch, head, i, j], by_hand)


@given(seed=st.integers(0, 999), factor=st.floats(0.01, 100))
def test_cosine_does_not_see_lengths(seed, factor):
    query, key = tensor(seed, 1, 1, 3, DEPTH), tensor(seed + 1, 1, 1, 4, DEPTH)
    close(Cosine().scores(query * factor, key / factor), Cosine().scores(query, key), 1e-4)


def test_scaling_keeps_the_variance_of_a_score_at_one():
    query, key = tensor(0, 1, 1, 200, 256), tensor(1, 1, 1, 200, 256)
    assert 0.9 < ScaledDot().scores(query, key).var() < 1.1
    assert Dot().scores(query, key).var() > 200


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_score_too_large_for_half_precision_is_still_a_number(dtype):
    query = torch.full((1, 1, 1, 64), 100.0, dtype=dtype)
    assert Dot().scores(query, query).item() == 640_000  # fp16 ends at 65,504


@pytest.mark.parametrize("make", [Cosine, lambda: Bilinear(DEPTH), lambda: Additive(DEPTH)])
def test_every_part_of_a_score_learns(make):
    score = make()
    seen = memory(1, 1, 1, 4, DEPTH)
    attend(tensor(0, 1, 1, 3, DEPTH), KeyValue(score.remember(seen.key), seen.value), score).pow(2).sum().backward()
    for parameter in score.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().sum() > 0
