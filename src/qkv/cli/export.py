"""``qkv export``: a run in a published format."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv export runs/opus opus-again      # transformers.MarianMTModel.from_pretrained("opus-again") loads it
"""


def export(run: Path, out: Path) -> None:
    """Write an imported run (fine-tuned or not) as a folder that the transformers library loads.

    Args:
        run: the folder of a run whose vocabulary is of SentencePiece.
        out: the folder to write.
    """
    from qkv.weights.marian import export_marian

    export_marian(run, out)
    print(f"wrote {out}")


def main(argv: Sequence[str]) -> int:
    run_verb(export, "export", argv, EXAMPLES)
    return 0
