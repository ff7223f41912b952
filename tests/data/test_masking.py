"""Which tokens are hidden, and how: BL-42, and whole words."""

import numpy as np
import pytest

from qkv.data.masking import mask_tokens

PAD, CLS, SEP, MASK = 0, 1, 2, 999
ORDINARY = np.arange(3, 999)


def inputs(rows: int, real: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ``real`` maskable tokens between marks, then padding."""
    tokens = np.random.default_rng(1).integers(3, 999, (rows, width))
    tokens[:, 0], tokens[:, real + 1], tokens[:, real + 2 :] = CLS, SEP, PAD
    return tokens, (tokens > 2)


def test_statistics_of_100_000_tokens():
    """BL-42: 15,000 +- 340 chosen, 80/10/10, no mark among what is chosen or drawn."""
    tokens, maskable = inputs(1000, 100, 110)
    assert maskable.sum() == 100_000
    hidden, chosen = mask_tokens(tokens, maskable, MASK, ORDINARY, 0.15, np.random.default_rng(0))
    assert abs(chosen.sum() - 15_000) <= 340
    assert not (chosen & ~maskable).any()
    assert (hidden[~chosen] == tokens[~chosen]).all()
    count, became, was = chosen.sum(), hidden[chosen], tokens[chosen]
    masked, kept = (became == MASK).sum(), (became == was).sum()
    drawn = became[(became != MASK) & (became != was)]
    assert abs(masked / count - 0.80) <= 0.01
    assert abs(len(drawn) / count - 0.10) <= 0.008  # a drawn token is the true one once in 1000
    assert abs(kept / count - 0.10) <= 0.008
    assert np.isin(drawn, ORDINARY).all() and len(np.unique(drawn)) > 500
    assert (chosen.sum(1) == 15).all()  # of each row its share
    places = chosen.sum(0)[1:101]
    assert places.min() > 100 and places.max() < 205  # and everywhere in it alike


def test_a_short_row_has_one_and_a_row_of_marks_none():
    tokens, maskable = inputs(2, 2, 6)
    maskable[1] = False
    _, chosen = mask_tokens(tokens, maskable, MASK, ORDINARY, 0.15, np.random.default_rng(0))
    assert chosen.sum(1).tolist() == [1, 0]


def test_words_are_hidden_whole_and_in_the_same_share():
    tokens, maskable = inputs(1000, 100, 110)
    opens = np.ones(1000, bool)
    opens[500:999] = False  # about half of all pieces go on with a word
    _, chosen = mask_tokens(tokens, maskable, MASK, ORDINARY, 0.15, np.random.default_rng(0), opens)
    assert abs(chosen.sum() - 15_000) <= 340
    assert not (chosen & ~maskable).any()
    goes_on = ~opens[tokens[:, 1:]] & maskable[:, 1:] & maskable[:, :-1]
    assert (chosen[:, 1:][goes_on] == chosen[:, :-1][goes_on]).all()
    assert goes_on.sum() > 40_000


@pytest.mark.parametrize("opens", [None, np.ones(1000, bool)])
def test_the_same_draws_choose_the_same(opens):
    tokens, maskable = inputs(5, 30, 40)
    one, other = (
        mask_tokens(tokens, maskable, MASK, ORDINARY, 0.15, np.random.default_rng(3), opens) for _ in range(2)
    )
    assert (one.tokens == other.tokens).all() and (one.chosen == other.chosen).all()
