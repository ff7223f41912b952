"""``qkv look``: what a model looked at."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "translate": "qkv.cli.look_translation",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("look", FAMILIES, argv)
