"""``qkv info``: what a run is."""

from collections.abc import Sequence

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv info runs/ko-en
  qkv info runs/ko-en --json | jq .scores
"""


def info(run: str, json: bool = False) -> None:
    """What a run is: parameters, data, scores, versions, config, sizes on disk.

    Args:
        run: the run's folder.
        json: print it as JSON.
    """
    from pathlib import Path

    from qkv.store import json_text
    from qkv.train.info import describe, lines

    told = describe(Path(run))
    print(json_text(told, indent=1) if json else "\n".join(lines(told)))


def main(argv: Sequence[str]) -> None:
    run_verb(info, "info", argv, EXAMPLES)
