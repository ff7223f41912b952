"""``qkv evaluate`` of a model of clips."""

import sys
from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import check_positive, run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/scenes --data clips/test            # class folders with clips
  qkv evaluate runs/scenes --data test.csv --json       # a table of path, label and, if told, frames
  qkv evaluate runs/scenes --data clips.zip --page worst.html
"""


def evaluate(
    run: Path,
    *,
    data: str,
    page: Path | None = None,
    batch: int = 8,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Answer for every clip of a test set and score it: classes with a table and calibration, and frames by F1.

    Args:
        run: the folder of a trained run.
        data: a folder of class folders with clips, or of parts (its test is taken), an archive of it, a
            table, or the name of a dataset.
        page: also write the worst mistakes as a page, each as a film strip with the weight of every frame.
        batch: clips answered at once.
        json: print JSON, with the confusion matrix and all mistakes.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.look.film_mistakes import MOST, write_film_mistakes
    from qkv.tasks.evaluate_clips import evaluate_clips
    from qkv.tasks.load import load

    check_positive(batch=batch)
    classifier = load(run, prepare_device(device, threads))
    result = evaluate_clips(classifier, data, batch, looks=MOST if page is not None else 0)
    if page is not None:
        write_film_mistakes(page, result)
        print(f"wrote {page}", file=sys.stderr)
    print(result.to_json() if json else result)


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
