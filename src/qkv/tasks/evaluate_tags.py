"""How good a tagger is on a test file, at the unit of that file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.report import Report
from qkv.data.spans import find_scheme, spans_of, spelled
from qkv.data.tags import SUFFIXES, TagFiles
from qkv.data.tags_reading import Sentence, find_tagged, read_sentences
from qkv.errors import DataError, nearest
from qkv.store import json_text
from qkv.tasks.class_scores import interval, reliability
from qkv.tasks.tag_scores import span_counts, span_scores, tag_table, word_scores
from qkv.tasks.tagger import TagAnswer, Tagger

__all__ = ["TagEvaluation", "evaluate_tags", "read_test_tags"]


@dataclass(frozen=True)
class TagEvaluation:
    """Scores of a test file, a table of kinds, and what was taken for what, counted in words.

    ``mistakes`` are places of sentences with wrong tags, those with most of them first.
    """

    sentences: int
    words: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    table: list[str]
    confusion: list[tuple[str, str, int]]
    remarks: list[str] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)
    examples: list[Sentence] = field(default_factory=list)
    answers: list[TagAnswer] = field(default_factory=list)

    def to_json(self) -> str:
        plain = {
            "sentences": self.sentences,
            "words": self.words,
            "scores": self.scores,
            "intervals": self.intervals,
            "confusion": self.confusion,
        }
        return json_text(plain)

    def __str__(self) -> str:
        lines = [*self.remarks, f"{self.sentences:,} sentences, {self.words:,} words"]
        for name, value in self.scores.items():
            between = "  ({:.4f} to {:.4f})".format(*self.intervals[name]) if name in self.intervals else ""
            lines.append(f"{name} {value:.4f}{between}")
        confused = [f"  {true} taken for {said}: {count:,} words" for true, said, count in self.confusion[:10]]
        return "\n".join([*lines, *self.table, *confused])


def read_test_tags(data: str, tagger: Tagger, word: str = "", tag: str = "") -> tuple[list[Sentence], list[str]]:
    """The sentences of a test file (of a folder, its part test, or else dev), and lines about what was repaired.

    Raises:
        DataError: there are none, a column is missing, or there is a tag that the tagger does not know.
    """
    files, report = TagFiles(folder=data, word=word, tag=tag), Report(unit="sentences")
    parts = find_tagged(files)
    path: Path = parts.get("test") or parts.get("dev") or parts["train"]
    sentences = read_sentences(path, "test", files, report)
    report.raise_if_refused()
    if not sentences:
        raise DataError("there is nothing to score", expected=f"a file ending in {', '.join(SUFFIXES)}", file=path)
    if not tagger.codec.plain:
        if find_scheme(t for one in sentences for t in one.tags) == "plain" and any(
            set(one.tags) != {"O"} for one in sentences
        ):
            raise DataError("the tags spell no spans", expected="B-, I- and O, as the model learned", file=path)
        sentences = [one._replace(tags=tuple(spelled(spans_of(one.tags), len(one.tags)))) for one in sentences]
    for one in sentences:
        for line, own in zip(one.lines, one.tags, strict=True):
            if own not in tagger.codec.tags:
                raise DataError(
                    f"the tag is {own!r}, which the model does not know",
                    remedy=nearest(own, tagger.codec.tags),
                    file=path,
                    line=line,
                )
    return sentences, [str(finding) for finding in report.findings]


def evaluate_tags(tagger: Tagger, data: str, word: str = "", tag: str = "") -> TagEvaluation:
    """Tag the words of a test file and compare."""
    examples, remarks = read_test_tags(data, tagger, word, tag)
    answers = list(tagger.tag_words(one.words for one in examples))
    true, said = [one.tags for one in examples], [answer.tags for answer in answers]
    plain = tagger.codec.plain
    scores = (word_scores if plain else span_scores)(true, said)
    intervals = _intervals(true, said, plain)
    sure, right = _judged(true, answers, plain)
    if len(sure):
        scores["calibration_error"], _ = reliability(np.array(sure), np.array(right))
    wrong = [sum(a != b for a, b in zip(one, other, strict=True)) for one, other in zip(true, said, strict=True)]
    confused = Counter(
        (_bare(a, plain), _bare(b, plain))
        for one, other in zip(true, said, strict=True)
        for a, b in zip(one, other, strict=True)
        if _bare(a, plain) != _bare(b, plain)
    )
    return TagEvaluation(
        len(examples),
        sum(map(len, true)),
        scores,
        intervals,
        tag_table(true, said, plain),
        [(*pair, count) for pair, count in confused.most_common()],
        remarks,
        [i for i in sorted(range(len(wrong)), key=lambda i: -wrong[i]) if wrong[i]],
        examples,
        answers,
    )


def _intervals(true: Sequence, said: Sequence, plain: bool) -> dict[str, tuple[float, float]]:
    """Of accuracy, and of F1 over spans, by drawing sentences."""
    rows = []
    for one, other in zip(true, said, strict=True):
        same = sum(a == b for a, b in zip(one, other, strict=True))
        counts = span_counts([one], [other]) if not plain else None
        spans = [sum(c.values()) for c in (counts.true, counts.said, counts.right)] if counts else [0, 0, 0]
        rows.append([same, len(one), *spans])
    sums = np.array(rows, dtype=np.float64)

    def accuracy(drawn: Any) -> float:
        same, words = sums[drawn, :2].sum(0)
        return same / words

    def f1(drawn: Any) -> float:
        there, told, right = sums[drawn, 2:].sum(0)
        return 2 * right / max(there + told, 1)

    return {"accuracy": interval(accuracy, len(sums))} | ({} if plain else {"f1": interval(f1, len(sums))})


def _judged(true: Sequence, answers: Sequence[TagAnswer], plain: bool) -> tuple[list[float], list[bool]]:
    """How sure each span (or plain tag) that was said is, and whether it is right."""
    sure, right = [], []
    for tags, answer in zip(true, answers, strict=True):
        if plain:
            right += [a == b for a, b in zip(tags, answer.tags, strict=True)]
        else:
            there = set(spans_of(tags))
            right += [span in there for span in spans_of(answer.tags)]
        sure += [one.score for one in answer.found]
    return sure, right


def _bare(tag: str, plain: bool) -> str:
    return tag if plain or tag == "O" else tag[2:]
