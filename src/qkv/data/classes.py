"""The classes that labels name: one sorted list, made from all that can be learned from, before anything is held out.

It is saved with the model and used everywhere; held-out examples and later data are read by it and never make another.
Names sort as text (1, 10, 2): the order has no meaning, since no one counts classes by hand again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from qkv.data.report import Report
from qkv.errors import DataError, nearest

__all__ = ["Label", "class_list", "counts", "judge", "unknown"]

CONSTANT = 0.95  # share of one class from which a model that always says it looks good
FAR = 100  # times the range of nine tenths of all targets, from which one is too far off to learn beside the others

Label = str | tuple[str, ...] | float


def class_list(labels: Iterable[Label]) -> tuple[str, ...]:
    """All classes that occur, sorted; none for numbers."""
    return tuple(sorted(counts(labels)))


def counts(labels: Iterable[Label]) -> Counter[str]:
    """How many examples each class has."""
    found: Counter[str] = Counter()
    for label in labels:
        if not isinstance(label, float):
            found.update([label] if isinstance(label, str) else label)
    return found


def unknown(
    labels: Iterable[Label], classes: Sequence[str], part: str, file: str, knower: str = "train"
) -> DataError | None:
    """The error that a class which is not among ``classes`` is, those of ``knower``; None if all are known."""
    missing = sorted(set(counts(labels)) - set(classes))
    if not missing:
        return None
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return DataError(
        f"{part} has the class {missing[0]!r}{more}, which {knower} has not",
        remedy=nearest(missing[0], classes),
        file=file,
    )


def judge(labels: dict[str, list[Label]], kind: str, report: Report) -> None:
    """Report what the labels of each part are like; classes that only a held-out part has are refused by name."""
    one = report.unit.removesuffix("s")
    if kind == "number":
        _judge_numbers(labels, report)
        return
    train = labels.get("train")
    known = class_list(train if train is not None else next(iter(labels.values())))
    for part, some in labels.items():
        have = counts(some)
        if part == "train" or train is None:
            report.remarks.append(
                f"{part}: {len(have):,} classes: {_few(f'{name} ({n:,})' for name, n in sorted(have.items()))}"
            )
        if train is not None and part != "train":
            if error := unknown(some, known, part, report.files[part][0]):
                report.refused.append(error)
            for name in known:
                if not have[name]:
                    report.add(part, f"classes of train without a {one}", "noted", name)
        _judge_shares(part, have, len(some), kind, report)
    if train and len(known) < 2 and kind == "class":
        report.refused.append(
            DataError(
                f"all {report.unit} of train are of one class, {known[0]!r}",
                expected="two classes or more",
                file=report.files["train"][0],
            )
        )
    if train and not known and kind == "several":
        report.refused.append(DataError(f"no {one} of train has a label", file=report.files["train"][0]))


def _judge_shares(part: str, have: Counter[str], examples: int, kind: str, report: Report) -> None:
    if not examples:
        return
    name, most = have.most_common(1)[0] if have else ("", 0)
    if most > CONSTANT * examples and (kind == "several" or len(have) > 1):
        report.remarks.append(
            f"WARNING: {most / examples:.1%} of {part} is {name!r}: "
            "a model that says nothing else is right as often; look at the scores of each class"
        )
    if part == "train":
        for name, count in sorted(have.items()):
            if count < 2:
                report.add(
                    part, f"classes of one {report.unit.removesuffix('s')}, which cannot be held out", "noted", name
                )


def _judge_numbers(labels: dict[str, list[Label]], report: Report) -> None:
    for part, some in labels.items():
        if not some:
            continue
        values = np.array(some)
        low, mean, high = values.min(), values.mean(), values.max()
        report.remarks.append(f"{part}: targets from {low:g} to {high:g}, mean {mean:g}, deviation {values.std():g}")
        usual = np.percentile(values, (5, 95))
        farthest = values[np.abs(values - usual.mean()).argmax()]
        if abs(farthest - usual.mean()) > FAR * np.ptp(usual) > 0:
            report.remarks.append(
                f"WARNING: most targets of {part} lie from {usual[0]:g} to {usual[1]:g}, but one is {farthest:g}, "
                "beside which the others look all alike to a model: is it a mistake?"
            )
        if part == "train" and low == high:
            report.refused.append(
                DataError(
                    f"every target of train is {low:g}", expected="targets that differ", file=report.files[part][0]
                )
            )


def _few(names: Iterable[str], most: int = 20) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
