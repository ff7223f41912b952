"""``qkv score``: how likely a model finds given translations."""

import sys
from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv score runs/ko-en --source test.ko --target test.en
  qkv score runs/ko-en --source test.ko --target test.en --json > scores.jsonl
"""


def score(
    run: Path, *, source: Path, target: Path, json: bool = False, device: str | None = None, threads: int | None = None
) -> None:
    """Print the log-probability of each pair under the model, divided by the run's length penalty.

    Args:
        run: the folder of a trained run.
        source: a file of lines.
        target: their translations, line by line.
        json: one line of JSON each, with a score for each token.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.tasks.evaluate import score_files
    from qkv.tasks.lines_out import as_json, summary
    from qkv.tasks.load import load, require_family

    require_family(run, "score", ["translate"])
    translator = load(run, prepare_device(device, threads))
    for answer in score_files(translator, source, target):
        print(as_json(answer) if json else "" if answer.score is None else f"{answer.score:.6f}", flush=True)
    if translator.counts.keys() - {"lines"}:
        print(f"qkv: {summary(translator.counts)}", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    run_verb(score, "score", argv, EXAMPLES)
    return 0
