"""Masks: boolean, True = may attend; causal is aligned at the newest token."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.layers.attention import KeyValue, attend, attention_weights
from qkv.layers.mask import CAUSAL, EVERYTHING, Mask, padding
from qkv.layers.score import ScaledDot

sizes = st.integers(1, 9)


def attended(mask: Mask, queries: int, keys: int) -> torch.Tensor:
    """What ``queries`` queries see in the values 1, 2, 3 ... where all scores are equal."""
    values = torch.arange(1.0, keys + 1).reshape(1, 1, keys, 1)
    memory = KeyValue(torch.zeros_like(values), values)
    return attend(torch.zeros(1, 1, queries, 1), memory, ScaledDot(), mask=mask).flatten()


def test_a_lower_triangle_shares_each_row_among_what_it_allows():  # BL-03
    lower = torch.ones(3, 3).tril().bool()
    weights = attention_weights(torch.zeros(1, 1, 3, 3), lower)[0, 0]
    torch.testing.assert_close(weights, torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))
    torch.testing.assert_close(attended(Mask(lower), 3, 3), torch.tensor([1, 1.5, 2]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_a_mask_of_numbers_is_refused(dtype):  # BL-03: elsewhere zeros and ones would be added to the scores
    with pytest.raises(TypeError, match=rf"boolean \(True = may attend\), not {dtype}; use keep.bool\(\)"):
        Mask.__post_init__(SimpleNamespace(keep=torch.ones(3, 3).tril().to(dtype)))  # before the tests' own type check
    with pytest.raises(TypeError):
        Mask(torch.ones(3, 3).tril().to(dtype))


def test_the_newest_of_five_tokens_sees_all_five():  # BL-04 (a)
    torch.testing.assert_close(attended(CAUSAL, 1, 5), torch.tensor([3.0]))


def test_a_chunk_of_two_after_three_cached_ones_sees_four_and_five():  # BL-04 (b)
    torch.testing.assert_close(attended(CAUSAL, 2, 5), torch.tensor([2.5, 3.0]))


@given(queries=sizes, cached=st.integers(0, 9), padded=st.booleans())
def test_causal_is_aligned_at_the_bottom_right_whichever_kernel_runs(queries, cached, padded):
    keys = queries + cached
    mask = CAUSAL & Mask(torch.ones(1, 1, 1, keys, dtype=torch.bool)) if padded else CAUSAL
    newest = [sum(range(1, cached + query + 2)) / (cached + query + 1) for query in range(queries)]
    torch.testing.assert_close(attended(mask, queries, keys), torch.tensor(newest))


@given(queries=sizes, keys=sizes, seed=st.integers(0, 99))
def test_dense_says_what_fused_says(queries, keys, seed):
    keep = torch.rand(2, 1, 1, keys, generator=torch.Generator().manual_seed(seed)) < 0.7
    for mask in (Mask(keep), CAUSAL, Mask(keep) & CAUSAL):
        dense = mask.dense(queries, keys)
        fused = mask.fused(queries, keys)
        if fused.get("is_causal"):
            assert torch.equal(dense, torch.ones(queries, keys, dtype=torch.bool).tril())
        elif dense is None:
            assert fused.get("attn_mask") is None
        else:
            assert torch.equal(dense, fused["attn_mask"])


@given(seed=st.integers(0, 99))
def test_and_allows_what_both_allow(seed):
    draw = torch.Generator().manual_seed(seed)
    one, other = (Mask(torch.rand(2, 1, 4, 4, generator=draw) < 0.6) for _ in range(2))
    both = one & other & CAUSAL
    lower = torch.ones(4, 4, dtype=torch.bool).tril()
    assert torch.equal(both.dense(4, 4), one.keep & other.keep & lower)
    assert (EVERYTHING & one) == one == (one & EVERYTHING)
    assert (EVERYTHING & EVERYTHING).dense(4, 4) is None


def test_padding_keeps_as_many_keys_as_each_text_is_long():
    keep = padding(torch.tensor([3, 0, 4]), 4).keep
    assert keep.shape == (3, 1, 1, 4)
    assert keep[:, 0, 0].tolist() == [[True, True, True, False], [False] * 4, [True] * 4]
