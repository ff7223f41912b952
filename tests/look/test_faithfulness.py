"""Deletion and insertion against random orders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import RunError
from qkv.look.faithfulness import deletion_insertion


def worth(values):
    """The score of an input: the worth of the positions that are left."""
    values = np.asarray(values, dtype=float)
    return lambda removed: (~removed) @ values


def test_curves_by_hand():
    result = deletion_insertion(worth([1.0, 3.0]), np.array([0.2, 0.9]))
    assert result.curve.deletion.tolist() == [4, 1, 0]
    assert result.curve.insertion.tolist() == [0, 3, 4]
    # heights (4/2 + 1 + 0/2) / 2 = 1.5 and (0/2 + 3 + 4/2) / 2 = 2.5
    assert result.curve.area == pytest.approx(1.0)
    assert result.random.area == pytest.approx(0.0)  # both orders of two, averaged
    assert result.chance == 0.5 and not result.better_than_chance
    assert "no better than chance here" in result.sentence


def test_the_right_order_is_better_than_chance_and_the_wrong_one_is_not():
    values = 0.5 ** np.arange(12)
    good, bad = (deletion_insertion(worth(values), order, samples=199) for order in (values, -values))
    assert good.better_than_chance and good.sentence.endswith("better than chance here.")
    assert "no better" not in good.sentence
    assert not bad.better_than_chance and bad.chance > 0.9
    assert good.note()["area"] == good.curve.area


def test_baselines_are_drawn_beside():
    values = np.arange(8.0)
    result = deletion_insertion(worth(values), values, baselines={"gradient": values, "uniform": np.ones(8)})
    assert result.baselines["gradient"].area == pytest.approx(result.curve.area)
    assert result.baselines["uniform"].area < result.curve.area


def test_no_row_is_asked_for_twice_and_batches_are_bounded():
    seen = []

    def score(removed):
        assert len(removed) <= 10 and removed.dtype == bool
        seen.extend(map(bytes, removed))
        return np.zeros(len(removed))

    deletion_insertion(score, np.arange(6.0), batch=10)
    assert len(seen) == len(set(seen)) <= 2**6


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9), st.integers(0, 5))
def test_laws(values, seed):
    importance = np.random.default_rng(seed).random(len(values))
    result = deletion_insertion(worth(values), importance, samples=19, seed=seed)
    curve = result.curve
    assert curve.deletion[0] == curve.insertion[-1]  # nothing removed
    assert curve.deletion[-1] == curve.insertion[0]  # everything removed
    assert 0 < result.chance <= 1


def test_what_does_not_fit_is_refused():
    with pytest.raises(RunError, match="one figure for each position"):
        deletion_insertion(worth([]), np.array([]))
    with pytest.raises(RunError, match="gradient"):
        deletion_insertion(worth([1, 2]), np.ones(2), baselines={"gradient": np.ones(3)})
    with pytest.raises(RunError, match="finite"):
        deletion_insertion(worth([1, 2]), np.array([1, np.nan]))
    with pytest.raises(RunError, match="one for each row"):
        deletion_insertion(lambda removed: [0.0], np.ones(3))
