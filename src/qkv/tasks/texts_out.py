"""Answers about texts as lines: one for each line in, whatever became of it."""

from qkv.store import json_text
from qkv.tasks.tagger import TagAnswer, Tagger
from qkv.tasks.text_classifier import TextAnswer

__all__ = ["conll_lines", "json_line", "json_spans", "text_line"]


def text_line(answer: TextAnswer, top: int = 1) -> str:
    """The class and its probability, or several such, with tabs between; a number alone.

    A line without an answer has nothing before two tabs, and then says why.
    """
    if answer.mark:
        return f"\t\t{answer.mark}"
    if not answer.classes:
        return str(answer)
    if isinstance(answer.label, tuple) and top == 1:
        return f"{answer}\t{max(answer.probabilities):.4f}"
    return "\t".join(f"{name}\t{chance:.4f}" for name, chance in answer.top(top))


def json_line(answer: TextAnswer, top: int | None = None) -> str:
    """All that is known of an answer, as one line of JSON."""
    fields: dict = dict(zip(("text", "pair"), answer.texts, strict=False))
    if answer.mark:
        return json_text({**fields, "mark": answer.mark})
    fields["number" if not answer.classes else "labels" if isinstance(answer.label, tuple) else "label"] = answer.label
    if answer.classes:
        fields["probabilities"] = {name: round(chance, 6) for name, chance in answer.top(top or len(answer.classes))}
    return json_text(fields)


def conll_lines(tagger: Tagger, answer: TagAnswer) -> str:
    """A unit and its tag a line, a tab between, in the scheme of the files that were learned from; then a blank line.

    A line without an answer is a comment that says why.
    """
    if answer.mark:
        return f"# {answer.mark}\n"
    rows = zip(answer.places, tagger.spelled(answer), strict=True)
    return "".join(f"{answer.text[start:end] or ' '}\t{tag}\n" for (start, end), tag in rows)


def json_spans(tagger: Tagger, answer: TagAnswer) -> str:
    """The text and its spans (of plain tags its words), each with where it stands and how sure it is."""
    if answer.mark:
        return json_text({"text": answer.text, "mark": answer.mark})
    kind = "tag" if tagger.codec.plain else "kind"
    found = [
        {"start": one.start, "end": one.end, kind: one.kind, "text": one.text, "score": round(one.score, 6)}
        for one in answer.found
    ]
    return json_text({"text": answer.text, "words" if tagger.codec.plain else "spans": found})
