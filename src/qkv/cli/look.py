"""``qkv look``: what a model looked at."""

from collections.abc import Sequence

from qkv.cli.families import run_family_verb

__all__ = ["main"]

FAMILIES = {
    "translate": "qkv.cli.look_translation",
    "classify pictures": "qkv.cli.look_picture",
    "regress pictures": "qkv.cli.look_picture",
    "classify texts": "qkv.cli.look_texts",
    "regress texts": "qkv.cli.look_texts",
    "tag": "qkv.cli.look_texts",
    "pretrain": "qkv.cli.look_texts",
    "classify clips": "qkv.cli.look_clips",
    "regress clips": "qkv.cli.look_clips",
    "vectors": "qkv.cli.look_vectors",
    "caption": "qkv.cli.look_caption",
}


def main(argv: Sequence[str]) -> int:
    return run_family_verb("look", FAMILIES, argv)
