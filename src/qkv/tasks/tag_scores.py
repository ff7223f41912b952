"""Scores of tagged sentences, at the unit of the user's file; entity scores are those of seqeval's default mode."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qkv.data.spans import spans_of
from qkv.errors import DataError

__all__ = ["SpanCounts", "span_counts", "span_scores", "tag_table", "word_scores"]

Tags = Sequence[str]


@dataclass(frozen=True)
class SpanCounts:
    """How many spans of each kind are there, were said, and are right: all words and the kind."""

    true: Counter[str]
    said: Counter[str]
    right: Counter[str]

    def figures(self, kind: str | None = None) -> tuple[float, float, float]:
        """Precision, recall and F1 of one kind, or of all together; 0 where nothing was said or there."""
        true, said, right = (
            sum(counts.values()) if kind is None else counts[kind] for counts in (self.true, self.said, self.right)
        )
        precision, recall = right / max(said, 1), right / max(true, 1)
        return precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0


def span_counts(true: Sequence[Tags], said: Sequence[Tags]) -> SpanCounts:
    """Compare sentences tag by tag; spans of both are read by the rule of `qkv.data.spans`."""
    _check(true, said)
    counts = SpanCounts(Counter(), Counter(), Counter())
    for one, other in zip(true, said, strict=True):
        own, theirs = set(spans_of(one)), set(spans_of(other))
        counts.true.update(span.kind for span in own)
        counts.said.update(span.kind for span in theirs)
        counts.right.update(span.kind for span in own & theirs)
    return counts


def span_scores(true: Sequence[Tags], said: Sequence[Tags]) -> dict[str, float]:
    """``f1``, ``precision`` and ``recall`` over all spans, ``macro_f1`` over kinds that are there or were said, and
    ``accuracy`` of words."""
    counts = span_counts(true, said)
    precision, recall, f1 = counts.figures()
    kinds = sorted(counts.true.keys() | counts.said.keys())
    macro = sum(counts.figures(kind)[2] for kind in kinds) / max(len(kinds), 1)
    return {"f1": f1, "precision": precision, "recall": recall, "macro_f1": macro, "accuracy": _accuracy(true, said)}


def word_scores(true: Sequence[Tags], said: Sequence[Tags]) -> dict[str, float]:
    """``accuracy`` of words and ``macro_f1`` over tags that are there or were said, for tags that spell no spans."""
    _check(true, said)
    counts = SpanCounts(Counter(), Counter(), Counter())
    for one, other in zip(true, said, strict=True):
        counts.true.update(one)
        counts.said.update(other)
        counts.right.update(tag for tag, same in zip(one, other, strict=True) if tag == same)
    tags = counts.true.keys() | counts.said.keys()
    macro = sum(counts.figures(tag)[2] for tag in tags) / len(tags)
    return {"accuracy": _accuracy(true, said), "macro_f1": macro}


def tag_table(true: Sequence[Tags], said: Sequence[Tags], plain: bool) -> list[str]:
    """A line for each kind of span, or each plain tag, for people to read."""
    if plain:  # a word is a span of its tag
        true, said = ([[f"B-{tag}" for tag in tags] for tags in some] for some in (true, said))
    counts = span_counts(true, said)
    kinds = sorted(counts.true.keys() | counts.said.keys())
    width = max([len("kind"), *map(len, kinds)])
    lines = [f"{'kind':{width}}  precision  recall    F1     there"]
    for kind in kinds:
        precision, recall, f1 = counts.figures(kind)
        lines.append(f"{kind:{width}}  {precision:9.3f}  {recall:6.3f} {f1:5.3f}  {counts.true[kind]:8,}")
    return lines


def _accuracy(true: Sequence[Tags], said: Sequence[Tags]) -> float:
    words = sum(map(len, true))
    return sum(a == b for one, other in zip(true, said, strict=True) for a, b in zip(one, other, strict=True)) / words


def _check(true: Sequence[Tags], said: Sequence[Tags]) -> None:
    if not sum(map(len, true)):
        raise DataError("there is nothing to score", expected="one word or more")
    if [len(tags) for tags in true] != [len(tags) for tags in said]:
        raise ValueError("tags of other words than there are")
