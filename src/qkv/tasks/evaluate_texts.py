"""How good a classifier of texts, or a model of numbers, is on a test set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.classes import unknown
from qkv.data.discover import find_parts
from qkv.data.image_tables import is_table
from qkv.data.report import Report
from qkv.data.texts import TextFiles
from qkv.data.texts_listing import LabelledText, list_texts
from qkv.errors import DataError
from qkv.store import json_text
from qkv.tasks.class_scores import (
    calibration,
    class_scores,
    class_table,
    confusion_matrix,
    defined,
    interval,
    per_class,
    per_label,
    several_scores,
)
from qkv.tasks.number_scores import number_scores, shown
from qkv.tasks.text_classifier import TextAnswer, TextClassifier

__all__ = ["TextEvaluation", "evaluate_texts", "read_test"]

MOST = 12  # classes of which the whole confusion matrix is shown to people


@dataclass(frozen=True)
class TextEvaluation:
    """Scores of a test set with their 95 % intervals, a table of classes, and what was taken for what.

    ``mistakes`` are places of the wrong answers, the surest first (of numbers all, the furthest off first).
    """

    texts: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    table: list[str] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    classes: tuple[str, ...] = ()
    bins: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)
    examples: list[LabelledText] = field(default_factory=list)
    answers: list[TextAnswer] = field(default_factory=list)

    def to_json(self) -> str:
        plain = {
            "texts": self.texts,
            "scores": defined(self.scores),
            "intervals": defined(self.intervals),
            "classes": self.classes,
            "confusion": self.confusion,
            "calibration": self.bins,
        }
        return json_text(plain)

    def __str__(self) -> str:
        lines = [*self.remarks, f"{self.texts:,} texts"]
        known = defined(self.intervals)
        for name, value in self.scores.items():
            between = "  ({:.4f} to {:.4f})".format(*known[name]) if known.get(name) else ""
            lines.append(shown(name, value, ".4f") + between)
        return "\n".join([*lines, *self.table, *self._confused()])

    def _confused(self) -> list[str]:
        pairs = [
            (count, self.classes[true], self.classes[said])
            for true, row in enumerate(self.confusion)
            for said, count in enumerate(row)
            if count and true != said
        ]
        told = [
            f"  {true} taken for {said}: {count:,}" for count, true, said in sorted(pairs, key=lambda p: -p[0])[:10]
        ]
        if self.confusion and len(self.classes) <= MOST:
            width = max(map(len, self.classes))
            told += [f"{'':{width}}  said: " + "  ".join(self.classes)]
            told += [
                f"{name:{width}}  "
                + "  ".join(f"{count:{max(len(other), 5)},}" for other, count in zip(self.classes, row, strict=True))
                for name, row in zip(self.classes, self.confusion, strict=True)
            ]
        return told


def read_test(
    data: str, classifier: TextClassifier, columns: dict[str, str], separator: str
) -> tuple[list[LabelledText], list[str]]:
    """The test texts at a place and lines about what could not be used: of a folder the part test, or else dev.

    Raises:
        DataError: there are none, or they have a class that the model does not know.
    """
    path, report = Path(data).expanduser(), Report(unit="texts")
    if path.is_dir() and (parts := {n: f for n, f in find_parts(path).items() if is_table(Path(f))}):
        data = parts.get("test") or parts.get("dev") or next(iter(parts.values()))
    targets = classifier.codec.targets
    found = list_texts(TextFiles(test=data, labels=targets.labels, separator=separator, **columns), report)
    examples = found.get("test", [])
    if not examples:
        why = "; ".join(map(str, report.findings))
        raise DataError("there is nothing to score" + (f" ({why})" if why else ""), file=data)
    if targets.labels != "number" and (
        error := unknown((one.label for one in examples), targets.classes, "test", data, "the model")
    ):
        raise error
    wrong = next((one for one in examples if len(one.texts) != 1 + classifier.codec.pair), None)
    if wrong is not None:
        raise DataError(
            f"{wrong.where} has {len(wrong.texts)} texts",
            expected=f"{1 + classifier.codec.pair}, as the model was trained with",
            remedy="name the columns with --text and --pair",
        )
    return examples, [str(finding) for finding in report.findings]


def evaluate_texts(
    classifier: TextClassifier, data: str, columns: dict[str, str] | None = None, separator: str = "|"
) -> TextEvaluation:
    """Answer a test set and compare.

    Args:
        data: a table, a folder with one, class folders, or the name of a dataset.
        columns: names of the columns "text", "pair" and "label", where they are not the usual ones.
    """
    examples, remarks = read_test(data, classifier, columns or {}, separator)
    answers = classifier.answers_to([one.texts for one in examples])
    made = {"class": _of_classes, "several": _of_several, "number": _of_numbers}[classifier.codec.targets.labels]
    found = made(classifier, [one.label for one in examples], answers)
    return TextEvaluation(len(examples), remarks=remarks, examples=examples, answers=answers, **found)


def _of_classes(classifier: TextClassifier, labels: Sequence, answers: Sequence[TextAnswer]) -> dict[str, Any]:
    said, classes = np.array([answer.probabilities for answer in answers]), classifier.classes
    true = np.array([classes.index(label) for label in labels])
    error, bins = calibration(said, true)
    matrix = confusion_matrix(said.argmax(1), true, len(classes))
    wrong = np.flatnonzero(said.argmax(1) != true)
    return {
        "scores": class_scores(said, true) | {"calibration_error": error},
        "intervals": {
            name: interval(lambda rows, name=name: class_scores(said[rows], true[rows])[name], len(true))
            for name in ("accuracy", "macro_f1")
        },
        "table": class_table(per_class(matrix, classes)),
        "confusion": matrix.tolist(),
        "classes": classes,
        "bins": [vars(one) for one in bins],
        "mistakes": wrong[np.argsort(-said[wrong].max(1), kind="stable")].tolist(),
    }


def _of_several(classifier: TextClassifier, labels: Sequence, answers: Sequence[TextAnswer]) -> dict[str, Any]:
    said = np.array([answer.probabilities for answer in answers])
    true = classifier.codec.targets.encode(labels).numpy() > 0.5
    missed = np.abs(said - true).max(1)
    return {
        "scores": several_scores(said, true),
        "intervals": {
            name: interval(lambda rows, name=name: several_scores(said[rows], true[rows])[name], len(true))
            for name in ("map", "micro_f1")
        },
        "table": class_table(per_label(said, true, classifier.classes)),
        "classes": classifier.classes,
        "mistakes": [int(i) for i in np.argsort(-missed, kind="stable") if missed[i] > 0.5],
    }


def _of_numbers(classifier: TextClassifier, labels: Sequence, answers: Sequence[TextAnswer]) -> dict[str, Any]:
    said, true = np.array([answer.label for answer in answers]), np.array(labels)
    return {
        "scores": number_scores(said, true),
        "intervals": {
            name: interval(lambda rows, name=name: number_scores(said[rows], true[rows])[name], len(true))
            for name in ("mae", "r2")
        },
        "mistakes": np.argsort(-np.abs(said - true), kind="stable").tolist(),
    }
