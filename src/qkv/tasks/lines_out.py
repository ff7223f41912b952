"""Answers as lines: one line out for each line in, whatever became of it."""

from collections import Counter
from collections.abc import Iterable, Iterator

from qkv.look.alignment import format_pharaoh
from qkv.store import json_text
from qkv.tasks.translator import Answer

__all__ = ["as_json", "as_text", "summary", "text_lines"]


def as_text(answer: Answer, n_best: int = 1, align: bool = False) -> str:
    """The translation; with several, ``rank ||| text ||| score``; with ``align``, Pharaoh links after ``|||``.

    A line that was not translated, or of which fewer translations were found, has as many lines as the others.
    """
    if n_best > 1:
        found = [answer, *answer.others]
        ranked = found + [Answer("", answer.source)] * (n_best - len(found))
        return "\n".join(f"{i} ||| {a.text} ||| {a.score if a.score is not None else ''}" for i, a in enumerate(ranked))
    return f"{answer.text} ||| {format_pharaoh(answer.links or ())}" if align else answer.text


def as_json(answer: Answer) -> str:
    """All that is known of an answer, as one line of JSON."""
    return json_text(_plain(answer))


def text_lines(
    answers: Iterable[Answer], json_lines: bool = False, n_best: int = 1, align: bool = False
) -> Iterator[str]:
    """Each answer's line. With ``n_best`` above 1 a line gives several, all with the line's rank before them."""
    for answer in answers:
        yield as_json(answer) if json_lines else as_text(answer, n_best, align)


def summary(counts: Counter) -> str:
    """One line for the user: how many lines came in, and how many of them were not translated, and why."""
    marks = {
        "blank": "blank",
        "over-long": "over-long",
        "undecodable": "not UTF-8",
        "cut off": "cut off before they ended",
        "no pair": "without a second text",
    }
    odd = [f"{counts[key]} {words}" for key, words in marks.items() if counts[key]]
    count = counts["lines"]
    return f"{count} line{'s' * (count != 1)}" + (f" ({', '.join(odd)})" if odd else "")


def _plain(answer: Answer) -> dict:
    fields = {"text": answer.text, "source": answer.source, "score": answer.score, "ended": answer.ended}
    if answer.mark:
        fields["mark"] = answer.mark
    if answer.tokens:
        fields |= {"tokens": answer.tokens, "token_scores": answer.token_scores}
    if answer.links is not None:
        fields["alignment"] = format_pharaoh(answer.links)
    if answer.others:
        fields["others"] = [_plain(other) for other in answer.others]
    return fields
