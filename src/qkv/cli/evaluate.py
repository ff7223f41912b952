"""``qkv evaluate``: scores of a trained run on a test set."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "translate": "qkv.cli.evaluate_translation",
    "classify clips": "qkv.cli.evaluate_clips",
    "regress clips": "qkv.cli.evaluate_clips",
    "classify pictures": "qkv.cli.evaluate_pictures",
    "regress pictures": "qkv.cli.evaluate_pictures",
    "classify texts": "qkv.cli.evaluate_texts",
    "regress texts": "qkv.cli.evaluate_texts",
    "tag": "qkv.cli.evaluate_tags",
    "vectors": "qkv.cli.evaluate_vectors",
    "caption": "qkv.cli.evaluate_captions",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("evaluate", FAMILIES, argv)
