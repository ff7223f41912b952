"""Pictures (or clips) that occur more than once: within a part of the data, under another label, and in train and dev
or test alike. The same picture is the same pixels, whatever its file is called and however it is packed."""

from collections.abc import Iterator

import numpy as np

from qkv.data.image_listing import Example
from qkv.data.notes import DROPPED, KEPT
from qkv.data.report import Report

__all__ = ["across", "compare"]


def compare(
    examples: dict[str, list[Example]], looks: dict[str, np.ndarray], report: Report, keep_duplicates: bool = False
) -> None:
    """Find repeated pictures. Train loses those that are also held out, and those whose label is contradicted.

    Of a picture that train repeats under one label, the first stays (all stay with ``keep_duplicates``).
    """
    held_out = [part for part in ("dev", "test") if part in looks]
    if "train" in looks:
        for other in held_out:
            across("train", other, examples, looks, report, drop=True)
    if len(held_out) == 2:
        across("dev", "test", examples, looks, report, drop=False)
    for part in looks:
        _within(part, examples[part], looks[part], report, keep_duplicates)


def across(
    part: str,
    other: str,
    examples: dict[str, list[Example]],
    looks: dict[str, np.ndarray],
    report: Report,
    drop: bool,
) -> None:
    """Find the pictures of ``part`` that are also in ``other``; with ``drop`` they leave ``part``."""
    mine, theirs = looks[part], looks[other]
    usable = np.flatnonzero(theirs["state"] == KEPT)
    order = usable[np.argsort(theirs["content"][usable], kind="stable")]
    alike = np.flatnonzero(np.isin(mine["content"], theirs["content"][usable]) & (mine["state"] == KEPT))
    found = theirs["content"][order]
    for i, at in zip(alike.tolist(), np.searchsorted(found, mine["content"][alike]).tolist(), strict=True):
        one, twin = examples[part][i], examples[other][int(order[at])]
        kind = f"{report.unit} that are also in {other}" + ("" if one.label == twin.label else ", with another label")
        report.add(part, kind, "dropped" if drop else "noted", _beside(one, twin))
        if drop:
            mine["state"][i] = DROPPED
    if len(alike):
        what = f"{len(alike):,} {report.unit} of {part} are also in {other}"
        done = f"; they are dropped from train, so that scores on {other} are scores on unseen pictures"
        report.remarks.append(f"WARNING: {what}{done if drop else ''}")


def _within(part: str, examples: list[Example], look: np.ndarray, report: Report, keep_duplicates: bool) -> None:
    for group in _groups(look):
        first = examples[group[0]]
        contradicted = len({examples[i].label for i in group}) > 1
        for i in group if contradicted else group[1:]:
            if contradicted:
                twin = next(examples[j] for j in group if examples[j].label != examples[i].label)
                kind, drop = f"{report.unit} under several labels", part == "train"
            else:
                twin, kind = first, f"repeated {report.unit}"
                drop = part == "train" and not keep_duplicates
            report.add(part, kind, "dropped" if drop else "noted", _beside(examples[i], twin))
            if drop:
                look["state"][i] = DROPPED


def _groups(look: np.ndarray) -> Iterator[list[int]]:
    """Places of kept pictures that share their pixels, each group in order, the group of the first place first."""
    kept = np.flatnonzero(look["state"] == KEPT)
    order = kept[np.argsort(look["content"][kept], kind="stable")]
    hashes = look["content"][order]
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(order) else []
    groups = [group.tolist() for group in np.split(order, starts[1:]) if len(group) > 1]
    return iter(sorted(groups))


def _beside(one: Example, twin: Example) -> str:
    return f"{one.where} ({_text(one)}) like {twin.where} ({_text(twin)})"


def _text(example: Example) -> str:
    return "|".join(example.label) if isinstance(example.label, tuple) else str(example.label)
