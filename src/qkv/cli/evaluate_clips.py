"""``qkv evaluate`` of a model of clips."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/scenes --data clips/test            # class folders with clips
  qkv evaluate runs/scenes --data test.csv --json       # a table of path, label and, if told, frames
"""


def evaluate(
    run: Path,
    *,
    data: str,
    batch: int = 8,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Answer for every clip of a test set and score it: classes with a table and calibration, and frames by F1.

    Args:
        run: the folder of a trained run.
        data: a folder of class folders with clips, or of parts (its test is taken), or a table.
        batch: clips answered at once.
        json: print JSON, with the confusion matrix and all mistakes.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.tasks.evaluate_clips import evaluate_clips
    from qkv.tasks.load import load

    result = evaluate_clips(load(run, prepare_device(device, threads)), data, batch)
    print(result.to_json() if json else result)


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
