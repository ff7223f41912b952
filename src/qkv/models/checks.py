"""What every model's config refuses in the same words."""

from collections.abc import Iterable
from typing import Any

from qkv.errors import ConfigError, nearest

__all__ = ["check_config", "check_heads", "check_image", "check_tie"]


def check_config(config: Any, *whole: str, **choices: Iterable[str]) -> None:
    """What can be said of a field by itself, and of heads and directions that share the width.

    Args:
        whole: fields that are whole numbers from 1, or some of them.
        choices: by field the names that it may be.
    """
    for key, known in choices.items():
        value = getattr(config, key)
        if value not in known:
            raise ConfigError(f"size.{key} is {value!r}", remedy=nearest(value, known))
    for key in whole:
        value = getattr(config, key)
        for number in value if isinstance(value, tuple) else (value,):
            if number < 1:
                raise ConfigError(f"size.{key} is {value}", expected="a whole number from 1")
    if isinstance(heads := getattr(config, "heads", None), int) and hasattr(config, "dim"):
        check_heads(config.dim, heads)
    if getattr(config, "both_ways", False) and config.dim % 2:
        raise ConfigError(
            f"size.dim {config.dim} cannot be shared by two directions",
            remedy="choose an even one, or --size.both_ways false",
        )
    for key in ("dropout", "stochastic_depth"):
        if not 0 <= getattr(config, key, 0) < 1:  # of all numbers, or layers, a part, and not all
            raise ConfigError(f"size.{key} is {getattr(config, key)}", expected="0 or more, less than 1")


def check_heads(dim: int, heads: int) -> None:
    """Heads share the width evenly."""
    if dim % heads:
        raise ConfigError(f"size.dim {dim} cannot be shared evenly by size.heads {heads}", remedy="choose a multiple")


def check_tie(config: Any) -> None:
    """One table for both sides needs as many words on both."""
    if config.tie == "all" and config.source_words != config.target_words:
        raise ConfigError(
            f"size.tie is 'all', but the sides know {config.source_words} and {config.target_words} words",
            remedy="use a joint vocabulary (--data.joint true) or --size.tie output",
        )


def check_image(config: Any) -> None:
    """Patches divide the image that the model is built for; which that is the codec says, and the classes with it."""
    check_config(config, "image", "patch")
    if config.classes and any(side % config.patch for side in config.image):
        height, width = config.image
        raise ConfigError(
            f"size.patch {config.patch} does not divide size.image {height} x {width}",
            remedy="choose sides that are multiples of the patch, or another patch",
        )
