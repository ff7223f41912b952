"""``qkv demo``: the whole way on built-in sentences, in minutes."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv demo --out demo       # then open demo/look.html
"""


def demo(out: Path = Path("demo"), seed: int = 0, threads: int | None = None) -> None:
    """Train a small Korean-English Transformer on the built-in phrases, translate unseen ones, and show how it did.

    Args:
        out: the folder for the data, the run, the page and the report.
        seed: of the phrases and of the training.
        threads: CPU threads; all if not given.
    """
    from qkv import demo

    report = demo.demo(out, seed, threads)
    for source, translation, reference in report.examples:
        print(f"  {source}\n    {translation}" + ("" if translation == reference else f"   (right: {reference})"))
    for name, signature in report.signatures.items():
        print(f"{name} {getattr(report, name):.1f}  {signature}")
    print(f"alignment error rate {report.aer:.3f} (shifted reading, gold links of the grammar)")
    print(f"{report.exact:.0%} of the unseen sentences exactly right; {report.seconds:.0f} s in all")
    print(f"see what it looked at: {out / 'look.html'}")


def main(argv: Sequence[str]) -> int:
    run_verb(demo, "demo", argv, EXAMPLES)
    return 0
