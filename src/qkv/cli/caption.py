"""``qkv caption``: pictures in, captions out."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from qkv.cli.verb import check_positive, run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv caption runs/tell photo.jpg
  qkv caption runs/tell photo.jpg folder/ --beam 5 --n-best 3
  qkv caption runs/tell folder/ --output captions.jsonl    # stopped or killed: give it again, and it goes on
  qkv caption runs/tell folder/ --format csv > captions.csv
exit code: 0 where every picture got its caption, 1 where some could not be read (they are marked), 2 for a mistake
"""


def caption(
    run: Path,
    pictures: list[str],
    *,
    output: Path | None = None,
    format: Literal["text", "csv", "jsonl", "auto"] = "auto",
    beam: int | None = None,
    n_best: int = 1,
    length_penalty: float | None = None,
    max_length: int | None = None,
    batch: int = 32,
    device: str | None = None,
    threads: int | None = None,
) -> bool:
    """Tell about pictures; one that cannot be read is marked and counted, and the others are told about.

    Args:
        run: the folder of a trained run.
        pictures: picture files, or folders that are looked through; - reads their names from standard input.
        output: where to write; until it is whole it is called OUTPUT.partial. Standard output if not given.
        format: text (picture, tab, caption), csv, or jsonl with scores by token; auto goes by the output's name.
        beam: hypotheses kept a picture; 1 is greedy. The run's own setting if not given.
        n_best: captions to give a picture.
        length_penalty: alpha of the rule; higher prefers longer captions.
        max_length: most tokens of a caption.
        batch: pictures at once.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from dataclasses import replace

    from qkv.cli.answers import left_of, named, watched
    from qkv.cli.devices import prepare_device
    from qkv.data.picture_paths import find_pictures
    from qkv.tasks.captions_out import HEADS, caption_rows, rows_of, summary
    from qkv.tasks.load import load, require_family
    from qkv.tasks.rows_out import written

    require_family(run, "caption", ["caption"])
    check_positive(batch=batch, max_length=max_length)
    files = find_pictures(named(pictures, "pictures"))
    if format == "auto":
        format = {".csv": "csv", ".jsonl": "jsonl"}.get(output.suffix if output else "", "text")
    captioner = load(run, prepare_device(device, threads))
    asked = {"beam": beam, "length_penalty": length_penalty}
    if beam is None and n_best > captioner.search.beam:
        asked["beam"] = n_best
    how = replace(captioner.search, n_best=n_best, **{key: v for key, v in asked.items() if v is not None})
    rows = rows_of(captioner, output, format, how, max_length or captioner.longest) if output else None
    left = left_of(rows, files) if rows else files
    told = captioner.caption(left, how=how, longest=max_length, batch=batch)
    if rows:
        for _ in watched(
            written(told, rows, lambda answer: caption_rows(answer, format), batch), len(left), "pictures"
        ):
            pass
    else:
        if format in HEADS:
            print(HEADS[format])
        for answer in told:
            print(caption_rows(answer, format))
    broken = captioner.counts["pictures"] - captioner.counts["told"]
    if broken or captioner.counts["cut off"] or (len(left) > 1 and not rows):
        print(f"qkv: {summary(captioner.counts)}", file=sys.stderr)
    return not broken


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(caption, "caption", argv, EXAMPLES) else 1
