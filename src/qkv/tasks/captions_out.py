"""Captions as lines, and what became of the pictures, in one line for the user."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator

from qkv.tasks.captioner import Caption

__all__ = ["caption_lines", "summary"]

COLUMNS = ("picture", "rank", "caption", "score", "ended", "wrong")


def caption_lines(told: Iterable[Caption], format: str) -> Iterator[str]:
    """Lines of ``text`` (picture, tab, caption; a marked picture has its fault in brackets), ``csv`` with a header, or
    ``jsonl``. Of several captions a picture, text and csv have a line each, best first."""
    if format == "csv":
        yield ",".join(COLUMNS)
    for answer in told:
        if format == "jsonl":
            yield json.dumps(_plain(answer), ensure_ascii=False)
            continue
        for rank, one in enumerate([answer, *answer.others]):
            if format == "csv":
                score = "" if one.score is None else f"{one.score:.4f}"
                yield _row([one.picture, rank, one.text, score, str(one.ended).lower(), one.wrong])
            else:
                cut = "" if one.ended else " [cut off]"
                yield f"{one.picture}\t{f'[{one.mark}] {one.wrong}' if one.mark else one.text + cut}"


def summary(counts: Counter) -> str:
    """How many pictures came in, and how many got no caption, and why."""
    count = counts["pictures"]
    odd = [f"{number} {kind}" for kind, number in counts.items() if number and kind not in ("pictures", "told")]
    return f"{count} picture{'s' * (count != 1)}" + (f" ({', '.join(odd)})" if odd else "")


def _row(cells: list) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _plain(answer: Caption) -> dict:
    if answer.mark:
        return {"picture": answer.picture, "mark": answer.mark, "wrong": answer.wrong}
    fields = {
        "picture": answer.picture, "caption": answer.text, "score": answer.score, "ended": answer.ended,
        "tokens": answer.tokens, "token_scores": answer.token_scores,
    }  # fmt: skip
    if answer.others:
        fields["others"] = [{"caption": one.text, "score": one.score, "ended": one.ended} for one in answer.others]
    return fields
