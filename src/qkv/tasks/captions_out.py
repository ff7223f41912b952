"""Captions as lines, and what became of the pictures, in one line for the user."""

import json
from collections import Counter
from pathlib import Path

from qkv.decode.search import Search
from qkv.tasks.captioner import Caption, Captioner
from qkv.tasks.rows_out import Rows, as_csv, as_text, state_of

__all__ = ["HEADS", "caption_rows", "rows_of", "summary"]

HEADS = {"csv": "picture,rank,caption,score,ended,wrong"}  # the line above all, by format


def caption_rows(answer: Caption, format: str) -> str:
    """What is written of a picture: ``text`` (picture, tab, caption; a marked picture has its fault in brackets),
    ``csv`` under a header, or ``jsonl``. Of several captions text and csv have a line each, best first."""
    if format == "jsonl":
        return json.dumps(_plain(answer), ensure_ascii=False)
    picture, lines = as_text(answer.picture), []
    for rank, one in enumerate([answer, *answer.others]):
        if format == "csv":
            score = "" if one.score is None else f"{one.score:.4f}"
            lines.append(as_csv([picture, rank, as_text(one.text), score, str(one.ended).lower(), as_text(one.wrong)]))
        else:
            told = f"[{one.mark}] {one.wrong}" if one.mark else one.text + " [cut off]" * (not one.ended)
            lines.append(picture + "\t" + as_text(told).replace("\t", " "))
    return "\n".join(lines)


def rows_of(captioner: Captioner, path: Path, format: str, how: Search, longest: int) -> Rows:
    """The file of a captioner's answers, new or gone on with."""
    belongs = f"{state_of(captioner.model, captioner.codec)} {how} {longest} {format}"
    return Rows(path, belongs, "picture", HEADS.get(format, ""), format, several=how.n_best > 1)


def summary(counts: Counter) -> str:
    """How many pictures came in, and how many got no caption, and why."""
    count = counts["pictures"]
    odd = [f"{number} {kind}" for kind, number in counts.items() if number and kind not in ("pictures", "told")]
    return f"{count} picture{'s' * (count != 1)}" + (f" ({', '.join(odd)})" if odd else "")


def _plain(answer: Caption) -> dict:
    if answer.mark:
        return {"picture": as_text(answer.picture), "mark": answer.mark, "wrong": as_text(answer.wrong)}
    fields = {
        "picture": as_text(answer.picture), "caption": answer.text, "score": answer.score, "ended": answer.ended,
        "tokens": answer.tokens, "token_scores": answer.token_scores,
    }  # fmt: skip
    if answer.others:
        fields["others"] = [{"caption": one.text, "score": one.score, "ended": one.ended} for one in answer.others]
    return fields
