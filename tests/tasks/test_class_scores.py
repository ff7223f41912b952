"""Scores of classes: equal to scikit-learn's, and never high for a model that knows nothing."""

import math

import numpy as np
import pytest

from qkv.errors import DataError
from qkv.tasks.class_scores import (
    calibration,
    class_scores,
    class_table,
    confusion_matrix,
    interval,
    per_class,
    per_label,
    rank,
    several_scores,
)

NAMES = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"]


def answers(seed: int, examples: int = 200, classes: int = 7) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    labels = chance.integers(classes, size=examples)
    logits = chance.normal(size=(examples, classes)) + 2 * np.eye(classes)[labels]
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True), labels


def test_scores_of_one_label_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    probabilities, labels = answers(0)
    said = probabilities.argmax(1)
    scores = class_scores(probabilities, labels)
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(labels, said))
    assert scores["top5"] == pytest.approx(metrics.top_k_accuracy_score(labels, probabilities, k=5))
    assert scores["macro_f1"] == pytest.approx(metrics.f1_score(labels, said, average="macro"))
    matrix = confusion_matrix(said, labels, 7)
    assert (matrix == metrics.confusion_matrix(labels, said)).all()
    precision, recall, f1, count = metrics.precision_recall_fscore_support(labels, said)
    rows = per_class(matrix, NAMES)
    assert [row.precision for row in rows] == pytest.approx(precision)
    assert [row.recall for row in rows] == pytest.approx(recall)
    assert [row.f1 for row in rows] == pytest.approx(f1)
    assert [row.count for row in rows] == count.tolist()
    assert class_table(rows)[1].startswith("ant")


def test_scores_of_several_labels_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    chance = np.random.default_rng(1)
    labels = chance.random((80, 5)) < 0.3
    probabilities = np.round(np.clip(chance.random((80, 5)) * 0.7 + 0.3 * labels, 0, 1), 1)  # rounded: there are ties
    scores = several_scores(probabilities, labels)
    assert scores["map"] == pytest.approx(metrics.average_precision_score(labels, probabilities, average="macro"))
    assert scores["micro_f1"] == pytest.approx(metrics.f1_score(labels, probabilities >= 0.5, average="micro"))
    assert scores["macro_f1"] == pytest.approx(metrics.f1_score(labels, probabilities >= 0.5, average="macro"))
    rows = per_label(probabilities, labels, NAMES[:5])
    assert [row.f1 for row in rows] == pytest.approx(metrics.f1_score(labels, probabilities >= 0.5, average=None))


def test_a_class_that_nobody_has_or_says_is_no_part_of_the_mean():
    probabilities = np.array([[0.8, 0.1, 0.1], [0.9, 0.05, 0.05]])
    assert class_scores(probabilities, np.array([0, 0]))["macro_f1"] == 1
    several = several_scores(probabilities, np.array([[1, 0, 0], [1, 0, 0]]))
    assert several == {"map": 1, "micro_f1": 1, "macro_f1": 1}


def test_nothing_to_average_is_not_a_number_and_nothing_to_score_is_an_error():
    scores = several_scores(np.full((2, 3), 0.1), np.zeros((2, 3)))
    assert all(math.isnan(score) for score in scores.values())
    with pytest.raises(DataError, match="nothing to score"):
        class_scores(np.zeros((0, 3)), np.zeros(0, int))


def test_a_model_that_finds_all_classes_alike_is_right_by_chance_only():
    labels = np.repeat(np.arange(10), 3)
    scores = class_scores(np.full((30, 10), 0.1), labels)
    assert scores["accuracy"] == pytest.approx(0.1)
    assert scores["top5"] == pytest.approx(0.5)


def test_what_is_not_a_number_is_wrong():
    assert rank(np.array([[np.nan, np.nan], [0.2, 0.8]]), np.array([0, 1])).tolist() == [2, 0]


def test_calibration_of_a_case_done_by_hand():
    probabilities = np.array([[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.45, 0.55]])
    error, bins = calibration(probabilities, np.array([0, 1, 0, 0]), bins=10)
    # (0.9, 1]: 0.95, right. (0.8, 0.9]: 0.9, wrong. (0.5, 0.6]: 0.6 right and 0.55 wrong.
    assert [(b.low, b.count) for b in bins] == [(0.5, 2), (0.8, 1), (0.9, 1)]
    assert error == pytest.approx((2 * abs(0.5 - 0.575) + 0.9 + 0.05) / 4)


def test_the_interval_holds_the_score_and_is_the_same_again():
    probabilities, labels = answers(2)
    right = probabilities.argmax(1) == labels
    low, high = interval(lambda some: right[some].mean(), len(labels))
    assert low < right.mean() < high
    assert (low, high) == interval(lambda some: right[some].mean(), len(labels))
    # The normal approximation is near for 200 examples.
    wide = 1.96 * math.sqrt(right.mean() * (1 - right.mean()) / len(labels))
    assert high - low == pytest.approx(2 * wide, rel=0.15)
