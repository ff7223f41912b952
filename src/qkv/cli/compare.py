"""``qkv compare``: several models learn one thing under one budget, and stand side by side."""

import importlib
from collections.abc import Sequence

from qkv.errors import ConfigError, nearest

__all__ = ["main"]

STUDIES = {
    "translate": ("qkv.cli.compare_translate", "the ladder that led to the Transformer, on sentence pairs"),
    "pretrain": ("qkv.cli.compare_pretrain", "what pretraining is worth, with next sentences or without"),
    "images": ("qkv.cli.compare_images", "what models are told of pictures, and what they must learn"),
}


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if not words or words[0] in ("-h", "--help"):
        print("usage: qkv compare STUDY ...   (qkv compare STUDY --help shows what it takes)\n")
        print("\n".join(f"  {name:10} {about}" for name, (_, about) in STUDIES.items()))
        return 0
    if words[0] not in STUDIES:
        raise ConfigError(f"there is no comparison {words[0]!r}", remedy=nearest(words[0], STUDIES))
    return importlib.import_module(STUDIES[words[0]][0]).main(words[1:])
