"""``qkv caption``: pictures in, captions out."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from qkv.cli.verb import check_positive, run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv caption runs/tell photo.jpg
  qkv caption runs/tell photo.jpg folder/ --beam 5 --n-best 3
  qkv caption runs/tell folder/ --output captions.jsonl
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
        pictures: picture files, or folders that are looked through.
        output: where to write; standard output if not given.
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

    from qkv.cli.devices import prepare_device
    from qkv.data.picture_paths import find_pictures
    from qkv.tasks.captions_out import caption_lines, summary
    from qkv.tasks.load import load

    files = find_pictures(pictures)
    if format == "auto":
        format = {".csv": "csv", ".jsonl": "jsonl"}.get(output.suffix if output else "", "text")
    captioner = load(run, prepare_device(device, threads))
    asked = {"beam": beam, "length_penalty": length_penalty}
    if beam is None and n_best > captioner.search.beam:
        asked["beam"] = n_best
    how = replace(captioner.search, n_best=n_best, **{key: v for key, v in asked.items() if v is not None})
    check_positive(batch=batch)
    with nullcontext(sys.stdout) if output is None else open(output, "w", encoding="utf-8", newline="") as out:
        told = captioner.caption(files, how=how, longest=max_length, batch=batch)
        for line in caption_lines(told, format):  # stopped or killed, what was written stays
            print(line, file=out)
    broken = captioner.counts["pictures"] - captioner.counts["told"]
    if len(files) > 1 or broken:
        print(f"qkv: {summary(captioner.counts)}", file=sys.stderr)
    return not broken


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(caption, "caption", argv, EXAMPLES) else 1
