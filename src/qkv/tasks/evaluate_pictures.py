"""How good a picture model is on a test set, and where it was most wrong."""

import dataclasses
import heapq
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from qkv.data.classes import unknown
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import Example, open_place
from qkv.data.report import Report
from qkv.errors import DataError
from qkv.store import json_text
from qkv.tasks.class_scores import (
    Bin,
    ClassRow,
    calibration,
    class_scores,
    class_table,
    confusion_matrix,
    defined,
    interval,
    macro_f1,
    per_class,
    per_label,
    rank,
    several_scores,
)
from qkv.tasks.number_scores import number_scores, shown
from qkv.tasks.picture_classifier import PictureAnswer, PictureClassifier, opened

__all__ = ["Mistake", "PictureEvaluation", "evaluate_pictures"]

WORST = 40  # mistakes that are kept
FEW = 12  # classes up to which the confusion matrix is printed
TRUE_SAID = "true \\ said"
PAIRS = 10  # of classes taken for each other
DRAWS_OF_SEVERAL = 200  # of the bootstrap: average precision of many classes takes its time


@dataclass(frozen=True)
class Mistake:
    """A picture that was answered wrongly, with what the model was shown of it.

    ``truth`` is its label in words, ``labels`` its classes. ``wrong`` is how far the answer is from it: the
    cross entropy, or the error in the unit of the targets.
    """

    answer: PictureAnswer
    truth: str
    labels: tuple[str, ...]
    wrong: float
    pixels: UInt8[np.ndarray, "height width 3"]


@dataclass(frozen=True)
class PictureEvaluation:
    """Scores of a test set with their 95 % intervals, and what lies behind them.

    ``confusion[true][said]`` counts pictures; calibration is of the likeliest class. Both are there for one label.
    """

    where: str
    pictures: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    classes: list[ClassRow]
    confusion: list[list[int]]
    calibration_error: float | None
    bins: list[Bin]
    mistakes: list[Mistake]
    unread: list[str]
    notes: list[str]
    seconds: float
    names: tuple[str, ...] = field(default=())

    def to_json(self) -> str:
        """All of it but the pixels."""
        plain = {key.name: getattr(self, key.name) for key in dataclasses.fields(self)}
        plain |= {key: defined(plain[key]) for key in ("scores", "intervals")}
        plain["classes"] = [dataclasses.asdict(row) for row in self.classes]
        plain["bins"] = [dataclasses.asdict(one) for one in self.bins]
        plain["mistakes"] = [_plain(mistake) for mistake in self.mistakes]
        return json_text(plain)

    def __str__(self) -> str:
        lines = [*self.notes, f"{self.pictures:,} pictures of {self.where} in {self.seconds:.1f} s"]
        lines += [f"{len(self.unread):,} could not be read: {why}" for why in self.unread[:1]]
        known = defined(self.intervals)
        for name, value in self.scores.items():
            between = "  (95 % of resampled test sets: {:.4g} to {:.4g})".format(*known[name]) if known[name] else ""
            lines.append(shown(f"{name:9}", value, ".4g") + between)
        if self.classes:
            lines += ["", *class_table(self.classes)]
        if self.confusion:
            lines += ["", *_confused(self.confusion, self.names)]
        if self.bins:
            lines += ["", f"calibration error {self.calibration_error:.4f}: how sure it was, and how often right"]
            lines += ["  probability   mean  right  pictures"]
            lines += [
                f"  {b.low:.2f} to {b.high:.2f}  {b.confidence:.3f}  {b.accuracy:.3f}  {b.count:8,}" for b in self.bins
            ]
        return "\n".join(lines)


def evaluate_pictures(classifier: PictureClassifier, files: ImageFiles, batch: int = 64) -> PictureEvaluation:
    """Answer all labelled pictures at a place and compare.

    Of a folder, archive or table with parts, test is taken, or else dev.

    Raises:
        DataError: there is no labelled picture, or one of a class that the model does not know.
    """
    codec, report = classifier.codec, Report(unit="pictures")
    files = dataclasses.replace(files, labels=codec.labels)
    with tempfile.TemporaryDirectory(prefix="qkv-evaluate-") as scratch:
        found = open_place(files.folder, None, files, Path(scratch), report)
        part = next((part for part in ("test", "dev", "train") if found.get(part)), None)
        if part is None:
            raise DataError("no labelled picture was found", file=files.folder)
        examples = found[part]
        if codec.labels != "number" and (
            error := unknown((one.label for one in examples), codec.classes, part, files.folder, "the model")
        ):
            raise error
        begun = time.monotonic()
        answers = list(classifier.answers(examples, batch))
        seconds = time.monotonic() - begun
        read = [i for i, answer in enumerate(answers) if not answer.mark]
        if not read:
            raise DataError(f"no picture can be read ({answers[0].mark})", file=files.folder)
        unread = [answer.mark for answer in answers if answer.mark]
        answers, examples = [answers[i] for i in read], [examples[i] for i in read]
        scored = _SCORED[codec.labels](classifier, answers, examples)
        worst = heapq.nlargest(WORST, (i for i in range(len(read)) if scored.bad[i]), key=lambda i: scored.wrong[i])
        mistakes = [
            Mistake(
                answers[i],
                _truth(examples[i]),
                _labels(examples[i]),
                float(scored.wrong[i]),
                classifier.codec.preprocess.shown(opened(examples[i])[1]),
            )
            for i in worst
        ]
    where = files.folder if len(found) == 1 and part == "train" else f"{part} of {files.folder}"
    return PictureEvaluation(
        where,
        len(answers),
        scored.scores,
        {name: interval(score, len(answers), scored.draws) for name, score in scored.resampled.items()},
        scored.classes,
        scored.confusion,
        scored.error,
        scored.bins,
        mistakes,
        unread,
        [str(finding) for finding in report.findings] + report.remarks,
        seconds,
        codec.classes,
    )


@dataclass(frozen=True)
class _Scored:
    """``wrong`` is how much each answer is wrong, ``bad`` whether it is so at all."""

    scores: dict[str, float]
    resampled: dict[str, Callable[[np.ndarray], float]]
    wrong: np.ndarray
    bad: np.ndarray
    classes: list[ClassRow] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    error: float | None = None
    bins: list[Bin] = field(default_factory=list)
    draws: int = 1000


def _of_one_class(
    classifier: PictureClassifier, answers: Sequence[PictureAnswer], examples: Sequence[Example]
) -> _Scored:
    classes = classifier.codec.classes
    chances = np.stack([answer.probabilities for answer in answers])
    labels = classifier.codec.encode([one.label for one in examples]).argmax(1).numpy()
    said, ranks = chances.argmax(1), rank(chances, labels)
    scores, matrix = class_scores(chances, labels), confusion_matrix(said, labels, len(classes))
    resampled = {
        "accuracy": lambda some: (ranks[some] == 0).mean(),
        "top5": lambda some: (ranks[some] < 5).mean(),
        "macro_f1": lambda some: macro_f1(confusion_matrix(said[some], labels[some], len(classes))),
    }
    error, bins = calibration(chances, labels)
    return _Scored(
        scores,
        {name: resampled[name] for name in scores},
        -np.log(np.maximum(chances[np.arange(len(labels)), labels], 1e-30)),
        said != labels,
        per_class(matrix, classes),
        matrix.tolist(),
        error,
        bins,
    )


def _of_several(
    classifier: PictureClassifier, answers: Sequence[PictureAnswer], examples: Sequence[Example]
) -> _Scored:
    chances = np.stack([answer.probabilities for answer in answers])
    labels = classifier.codec.encode([one.label for one in examples]).numpy().astype(bool)
    scores = several_scores(chances, labels)
    resampled = {name: lambda some, name=name: several_scores(chances[some], labels[some])[name] for name in scores}
    true = np.where(labels, chances, 1 - chances)
    wrong = [set(answer.labels) != set(one.label) for answer, one in zip(answers, examples, strict=True)]
    rows = per_label(chances, labels, classifier.codec.classes)
    losses = -np.log(np.maximum(true, 1e-30)).sum(1)
    return _Scored(scores, resampled, losses, np.array(wrong), rows, draws=DRAWS_OF_SEVERAL)


def _of_numbers(
    classifier: PictureClassifier, answers: Sequence[PictureAnswer], examples: Sequence[Example]
) -> _Scored:
    said, targets = np.array([answer.number for answer in answers]), np.array([one.label for one in examples])
    scores = number_scores(said, targets)
    resampled = {name: lambda some, name=name: number_scores(said[some], targets[some])[name] for name in scores}
    return _Scored(scores, resampled, abs(said - targets), said != targets)


_SCORED = {"class": _of_one_class, "several": _of_several, "number": _of_numbers}


def _labels(example: Example) -> tuple[str, ...]:
    if isinstance(example.label, tuple):
        return example.label
    return (example.label,) if isinstance(example.label, str) else ()


def _truth(example: Example) -> str:
    return f"{example.label:g}" if isinstance(example.label, float) else ", ".join(_labels(example))


def _confused(matrix: list[list[int]], names: Sequence[str]) -> list[str]:
    """The matrix where there are few classes, and what is most often taken for what."""
    lines, counts = [], np.array(matrix)
    if len(names) <= FEW:
        wide = max(map(len, (TRUE_SAID, *names)))
        across = max(5, len(str(counts.max())) + 1)
        short = [name[: across - 1] for name in names]
        lines = [f"{TRUE_SAID:{wide}}" + "".join(f"{name:>{across}}" for name in short)]
        rows = zip(names, matrix, strict=True)
        lines += [f"{name:{wide}}" + "".join(f"{n:{across}}" for n in row) for name, row in rows]
    off = counts - np.diag(counts.diagonal())
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    pairs = [(int(off.flat[i]), *divmod(int(i), len(names))) for i in order if off.flat[i]]
    return lines + [f"{names[t]} taken for {names[s]}: {n:,}" for n, t, s in pairs]


def _plain(mistake: Mistake) -> dict[str, Any]:
    answer = mistake.answer
    said = {"number": answer.number} if answer.number is not None else {"said": answer.label, "top": answer.top(5)}
    return {"picture": answer.name, "true": mistake.truth, "wrong": mistake.wrong, **said}
