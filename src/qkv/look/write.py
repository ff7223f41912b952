"""A look as a file: the ending of its name says what it is."""

from pathlib import Path

from qkv.errors import ConfigError
from qkv.look.record import Trace

__all__ = ["write"]


def write(seen: Trace, path: Path) -> None:
    """Write a page (.html), a picture (.svg, .png) or the record (.safetensors, .json)."""
    match path.suffix:
        case ".html":
            seen.to_page(path)
        case ".svg" | ".png":
            from qkv.look.draw import draw

            draw(seen, path)
        case ".safetensors" | ".json":
            seen.save(path)
        case other:
            raise ConfigError(
                f"cannot write {other or 'a file without an ending'!r}",
                expected=".html, .svg, .png, .safetensors or .json",
                file=path,
            )
