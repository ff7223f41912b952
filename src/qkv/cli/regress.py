"""``qkv regress``: numbers of what a model is shown."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "regress pictures": "qkv.cli.regress_pictures",
    "regress texts": "qkv.cli.regress_texts",
    "regress clips": "qkv.cli.regress_clips",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("regress", FAMILIES, argv)
