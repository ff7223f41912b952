"""How good a translator is on a test set."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from qkv.data.lines import Line, open_lines, read_lines
from qkv.decode.search import Search
from qkv.errors import DataError
from qkv.look.alignment import alignment_error_rate, read_pharaoh
from qkv.store import json_text, new_file
from qkv.tasks.scores import text_scores
from qkv.tasks.translator import Answer, Translator

__all__ = ["Evaluation", "alignment_error", "evaluate_files", "read_gold", "read_pair_files", "score_files"]


@dataclass(frozen=True)
class Evaluation:
    """Scores of a test set, each with its signature, and how long translating it took."""

    sentences: int
    scores: dict[str, float]
    signatures: dict[str, str]
    seconds: float

    def to_json(self) -> str:
        return json_text(asdict(self))

    def __str__(self) -> str:
        lines = [f"{name} {value:.2f}  {self.signatures.get(name, '')}".rstrip() for name, value in self.scores.items()]
        return "\n".join([*lines, f"{self.sentences} sentences in {self.seconds:.1f} s"])


def read_pair_files(source: Path, target: Path) -> list[tuple[str, str]]:
    """The lines of two files side by side; a line that is no text is empty.

    Raises:
        DataError: a file is missing, or they have different numbers of lines.
    """
    return [(left.text, right.text) for left, right in _side_by_side(source, target)]


def score_files(translator: Translator, source: Path, target: Path) -> Iterator[Answer]:
    """An answer for each line: its score, or why there is none (see `Answer.mark`), which is also counted."""
    pairs = _side_by_side(source, target)
    marks = [_mark(translator, left, right) for left, right in pairs]
    scored = translator.score((s.text, t.text) for (s, t), mark in zip(pairs, marks, strict=True) if not mark)
    for (left, _), mark in zip(pairs, marks, strict=True):
        translator.counts["lines"] += 1
        if mark:
            translator.counts[mark] += 1
            yield Answer("", left.text, mark=mark)
        else:
            yield next(scored)


def _mark(translator: Translator, left: Line, right: Line) -> str:
    """Why a pair has no score: a side is no text, or longer than what is translated; empty for one that has."""
    if unusable := left.unusable or right.unusable:
        return unusable
    sides = translator.codec.encode_source([left.text])[0], translator.codec.target.encode([right.text])[0]
    return "over-long" if max(map(len, sides)) > translator.longest_source else ""


def _side_by_side(source: Path, target: Path) -> list[tuple[Line, Line]]:
    sides = []
    for path in (source, target):
        with open_lines(path) as file:
            sides.append(list(read_lines(file)))
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{source} has {len(sides[0])} lines and {target} has {len(sides[1])}", expected="as many in both"
        )
    return list(zip(*sides, strict=True))


def evaluate_files(
    translator: Translator,
    source: Path,
    reference: Path,
    gold_align: Path | None = None,
    how: Search | None = None,
    output: Path | None = None,
) -> Evaluation:
    """Translate ``source`` and compare with ``reference``; alignments are read while the references are given."""
    pairs = read_pair_files(source, reference)
    if not pairs:
        raise DataError("there is nothing to score", file=source, expected="a line a sentence")
    if output is not None:
        output.write_text("", encoding="utf-8")  # what cannot be written is known before the work is done
    begun = time.monotonic()
    outputs = [answer.text for answer in translator.translate((text for text, _ in pairs), how=how)]
    seconds = time.monotonic() - begun
    scores, signatures = text_scores(outputs, [text for _, text in pairs])
    if gold_align is not None:
        scores["aer"] = alignment_error(translator, pairs, gold_align)
        signatures["aer"] = "Och & Ney 2003, 1 - (|A&S| + |A&P|) / (|A| + |S|); references given"
    if output is not None:
        with new_file(output) as partial:
            partial.write_text("".join(text + "\n" for text in outputs), encoding="utf-8")
    return Evaluation(len(pairs), scores, signatures, seconds)


def alignment_error(translator: Translator, pairs: Sequence[tuple[str, str]], gold_align: Path) -> float:
    """The alignment error rate of given pairs against a gold file."""
    gold = read_gold(gold_align, pairs)
    aligned = translator.align(list(translator.score(pairs)))
    return alignment_error_rate([a.links for a in aligned], [g.sure for g in gold], [g.possible for g in gold])


def read_gold(gold_align: Path, pairs: Sequence[tuple[str, str]]) -> list:
    """The gold links of pairs, sure and possible ones.

    Raises:
        DataError: there are more or fewer lines than pairs, or a link leads outside of its pair.
    """
    gold = read_pharaoh(gold_align)
    if len(gold) != len(pairs):
        raise DataError(f"has {len(gold)} lines", file=gold_align, expected=f"{len(pairs)}, one for each pair")
    for line, ((source, target), (_, possible)) in enumerate(zip(pairs, gold, strict=True), 1):
        sizes = len(source.split()), len(target.split())
        for link in possible:
            if link[0] >= sizes[0] or link[1] >= sizes[1]:
                raise DataError(
                    f"the link {link[0]}-{link[1]} is outside a pair of {sizes[0]} and {sizes[1]} words",
                    file=gold_align,
                    line=line,
                    expected="words counted from 0, source first",
                )
    return gold
