"""How good a model of clips is on a test set."""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from qkv.data.clip_files import ClipFiles
from qkv.data.clip_listing import ClipExample, list_clips
from qkv.data.clip_sources import spread
from qkv.data.frame_labels import frame_labels
from qkv.data.lines import windows
from qkv.data.pictures import PictureError
from qkv.data.report import Report
from qkv.errors import DataError, nearest
from qkv.look.record import Trace
from qkv.store import json_text
from qkv.tasks.class_scores import (
    calibration,
    class_scores,
    class_table,
    confusion_matrix,
    defined,
    interval,
    per_class,
)
from qkv.tasks.clip_classifier import ClipAnswer, ClipClassifier
from qkv.tasks.frame_scores import frame_scores
from qkv.tasks.number_scores import number_scores, shown

__all__ = ["ClipEvaluation", "evaluate_clips", "said"]


@dataclass(frozen=True)
class ClipEvaluation:
    """Scores of a test set; ``intervals`` are 95 % by bootstrap.

    ``mistakes`` are the surest wrong answers first, of numbers those furthest off; ``looks`` are at the first of them.
    """

    clips: int
    unreadable: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    table: list[str] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    mistakes: list[dict] = field(default_factory=list)
    looks: list[Trace] = field(default_factory=list)

    def to_json(self) -> str:
        plain = asdict(replace(self, looks=[])) | {"scores": defined(self.scores), "intervals": defined(self.intervals)}
        return json_text({name: value for name, value in plain.items() if name != "looks"})

    def __str__(self) -> str:
        lines = []
        for name, value in self.scores.items():
            low, high = self.intervals.get(name, (None, None))
            lines.append(shown(name, value, ".4f") + (f"  ({low:.4f} to {high:.4f})" if low is not None else ""))
        lines += [*self.table, f"{self.clips} clips" + f", {self.unreadable} unreadable" * bool(self.unreadable)]
        lines += [f"  {m['clip']}: {said(m)}, is {m['true']}" for m in self.mistakes[:5]]
        return "\n".join(lines)


def said(mistake: dict) -> str:
    """What was answered, and how surely."""
    return " ".join([str(mistake["said"]), *([f"{mistake['probability']:.3f}"] if "probability" in mistake else [])])


def evaluate_clips(classifier: ClipClassifier, data: str, batch: int = 8, looks: int = 0) -> ClipEvaluation:
    """Answer for every clip at a place and compare: its part test if it has one, else dev, else all of it.

    Args:
        looks: at how many of the worst mistakes to look.

    Raises:
        DataError: there is no labelled clip, or a class that the model does not know.
    """
    codec = classifier.codec
    with tempfile.TemporaryDirectory(prefix="qkv-evaluate-") as scratch:
        parts = list_clips(
            ClipFiles(data, labels=codec.images.labels, rate=codec.rate), Path(scratch), Report(unit="clips")
        )
        return _evaluate(classifier, data, parts, batch, looks)


def _evaluate(
    classifier: ClipClassifier, data: str, parts: dict[str, list[ClipExample]], batch: int, looks: int
) -> ClipEvaluation:
    codec = classifier.codec
    examples = parts[next(part for part in ("test", "dev", "train") if parts.get(part))]
    known = codec.images.classes
    for example in examples:
        if codec.images.labels == "class" and example.label is not None and example.label not in known:
            raise DataError(
                f"the model does not know the class {example.label!r}",
                remedy=nearest(example.label, known),
                file=example.where,
            )
    answers = [
        answer
        for some in windows(examples, batch)
        for answer in classifier.answers([example.clip for example in some], batch)
    ]
    good = [(e, a) for e, a in zip(examples, answers, strict=True) if not a.mark]
    if not good:
        raise DataError("no clip can be read", file=data)
    scores, more = {}, {}
    labelled = [(e, a) for e, a in good if e.label is not None]
    if labelled and codec.images.labels == "number":
        numbers, true = (np.array(some) for some in zip(*((a.label, e.label) for e, a in labelled), strict=True))
        scores, off = number_scores(numbers, true), np.abs(numbers - true)
        more["intervals"] = {"mae": interval(lambda rows: float(off[rows].mean()), len(off))}
        worst = [labelled[i] for i in np.argsort(-off, kind="stable") if off[i]]
        more["mistakes"] = [{"clip": a.clip, "said": f"{a.label:g}", "true": f"{e.label:g}"} for e, a in worst]
    elif labelled:
        scores, more = _of_classes(labelled, known)
    if frames := _frames(good, codec.frame_classes):
        scores |= frame_scores(*frames, codec.frame_classes)
    if not scores:
        raise DataError("nothing is labelled that this model tells", file=data)
    clips = {answer.clip: example.clip for example, answer in good}
    seen = [classifier.look(clips[mistake["clip"]]) for mistake in more.get("mistakes", ())[:looks]]
    return ClipEvaluation(len(good), len(answers) - len(good), scores, looks=seen, **more)


def _of_classes(good: list[tuple[ClipExample, ClipAnswer]], classes: Sequence[str]) -> tuple[dict, dict]:
    chances = np.array([[answer.probabilities[name] for name in classes] for _, answer in good])
    labels = np.array([classes.index(example.label) for example, _ in good])
    scores = class_scores(chances, labels) | {"ece": calibration(chances, labels)[0]}
    right = chances.argmax(1) == labels
    matrix = confusion_matrix(chances.argmax(1), labels, len(classes))
    wrong = sorted(
        (
            {"clip": a.clip, "said": a.label, "probability": a.probabilities[a.label], "true": e.label}
            for e, a in good
            if a.label != e.label
        ),
        key=lambda mistake: -mistake["probability"],
    )
    more = {
        "intervals": {"accuracy": interval(lambda rows: float(right[rows].mean()), len(right))},
        "table": class_table(per_class(matrix, classes)),
        "confusion": matrix.tolist(),
        "mistakes": wrong,
    }
    return scores, more


def _frames(good: list[tuple[ClipExample, ClipAnswer]], classes: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
    """What was said of each labelled frame, as certainties, and its class."""
    said, labels = [], []
    for example, answer in good if classes else ():
        if example.marks is None:
            continue
        try:
            every = frame_labels(example.marks, example.clip.times)
            told = [classes.index(every[number]) for number in spread(len(every), len(answer.times))]
        except (ValueError, PictureError) as error:
            raise DataError(f"the labels of its frames do not fit ({error})", file=example.where) from None
        labels += told
        said += [classes.index(name) for name in answer.frames]
    return (np.eye(len(classes))[said], np.array(labels)) if labels else None
