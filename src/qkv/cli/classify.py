"""``qkv classify``: classes of what a model is shown."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "classify pictures": "qkv.cli.classify_pictures",
    "classify texts": "qkv.cli.classify_texts",
    "classify clips": "qkv.cli.classify_clips",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("classify", FAMILIES, argv)
