"""Scores of numbers: equal to scikit-learn's and SciPy's."""

import json
import math

import numpy as np
import pytest

from qkv.errors import DataError
from qkv.store import json_text, numbers
from qkv.tasks.number_scores import number_scores, shown


def test_scores_are_those_of_scikit_learn_and_scipy():
    metrics, stats = pytest.importorskip("sklearn.metrics"), pytest.importorskip("scipy.stats")
    chance = np.random.default_rng(0)
    targets = np.round(chance.normal(50, 10, 60))  # rounded: there are ties
    said = np.round(targets + chance.normal(0, 8, 60))
    scores = number_scores(said, targets)
    assert scores["mae"] == pytest.approx(metrics.mean_absolute_error(targets, said))
    assert scores["rmse"] == pytest.approx(metrics.mean_squared_error(targets, said) ** 0.5)
    assert scores["r2"] == pytest.approx(metrics.r2_score(targets, said))
    assert scores["spearman"] == pytest.approx(stats.spearmanr(said, targets).statistic)


def test_where_nothing_differs_there_is_no_correlation():
    scores = number_scores(np.array([1.0, 2.0]), np.array([3.0, 3.0]))
    assert scores["mae"] == 1.5 and math.isnan(scores["r2"]) and math.isnan(scores["spearman"])
    assert math.isnan(number_scores(np.array([1.0, 1.0]), np.array([3.0, 4.0]))["spearman"])


def test_what_is_not_a_number_says_why_and_is_null_in_json():
    scores = number_scores(np.array([1.0]), np.array([3.0]))
    assert [shown(name, value, ".2f") for name, value in scores.items()] == [
        "mae 2.00", "rmse 2.00", "r2 not defined (all targets are equal)",
        "spearman not defined (all targets or answers are equal)",
    ]  # fmt: skip
    written = json.loads(json_text({"dev": scores, "bounds": [(-math.inf, 1.0)]}), parse_constant=pytest.fail)
    assert written == {"dev": {"mae": 2.0, "rmse": 2.0, "r2": None, "spearman": None}, "bounds": [[None, 1.0]]}
    assert str(numbers(written["dev"])) == str(scores)


def test_nothing_to_score_is_an_error():
    with pytest.raises(DataError, match="nothing to score"):
        number_scores(np.zeros(0), np.zeros(0))
