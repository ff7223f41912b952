"""``qkv import``: published weights as a run."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv import hf:Helsinki-NLP/opus-mt-ko-en runs/opus
  qkv import hf:downloads/opus-mt-ko-en runs/opus     # a folder with config.json, weights and SentencePiece files
"""


def import_(published: str, out: Path) -> None:
    """Turn a published Marian (OPUS-MT) model into a run that translates, looks and evaluates.

    Args:
        published: hf: and the model's folder, or its name on the Hugging Face hub.
        out: the run's folder.
    """
    from qkv.weights.marian import import_marian

    print("\n".join(import_marian(published.removeprefix("hf:"), out)))
    print(f"next: qkv translate {out} < in.txt > out.txt")


def main(argv: Sequence[str]) -> int:
    run_verb(import_, "import", argv, EXAMPLES)
    return 0
