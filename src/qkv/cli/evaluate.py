"""``qkv evaluate``: scores of a trained run on a test set."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "translate": "qkv.cli.evaluate_translation",
    "classify pictures": "qkv.cli.evaluate_pictures",
    "regress pictures": "qkv.cli.evaluate_pictures",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("evaluate", FAMILIES, argv)
