"""``qkv tag``: tags of the parts of what a model is shown."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "tag": "qkv.cli.tag_texts",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("tag", FAMILIES, argv)
