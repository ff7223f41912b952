"""Which files of a folder are train, dev and test, and which languages they hold, by their names alone."""

import csv
import json
import re
from pathlib import Path

from qkv.data.formats import TABLES
from qkv.data.lines import open_lines, raw_lines
from qkv.errors import ConfigError, DataError

__all__ = ["find_parts", "find_sides"]

NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation", "val"), "test": ("test",)}


def find_parts(folder: Path, whole: tuple[str, ...] = TABLES) -> dict[str, str]:
    """``{"train": "ko_en/train", "test": "ko_en/test2016"}``: prefixes of parallel files, or tables.

    A name is a part's own (``dev``, ``val`` ...) or begins with it and goes on with no letter (``test2016``).

    Args:
        whole: suffixes of files that hold all of a part; another file is taken for one side of parallel lines.

    Raises:
        DataError: there is no such folder, or two names fit a part.
    """
    if not folder.is_dir():
        raise DataError("there is no such folder", remedy="name a folder that holds train, dev and test", file=folder)
    stems: dict[str, str] = {}
    for file in sorted(folder.iterdir()):
        bare = file.with_suffix("") if file.suffix == ".gz" else file
        if file.is_file() and bare.suffix:
            stems.setdefault(bare.stem, str(file) if bare.suffix in whole else str(file.with_name(bare.stem)))
    found = {}
    for part, names in NAMES.items():
        exact = [stem for stem in stems if stem.lower() in names]
        longer = [stem for stem in stems if re.match(rf"({'|'.join(names)})[^a-z]", stem.lower())]
        fitting = exact or longer
        if len(fitting) > 1:
            raise DataError(
                f"{' and '.join(fitting)} could both be {part}", remedy=f"say which with --data.{part}", file=folder
            )
        if fitting:
            found[part] = stems[fitting[0]]
    return found


def find_sides(where: str, source: str = "", target: str = "") -> tuple[str, str]:
    """The source and target of a corpus whose user named none or one of them.

    Two languages whose names stand in the path in that order (``ko_en/train``, ``corpus.de-en.tsv``) are source and
    target; a table with two columns is read from left to right.

    Raises:
        ConfigError: that is not clear; the message lists what there is.
    """
    path = Path(where).expanduser()
    names, ordered = _names(path)
    if not names and not path.is_file() and "/" in where and not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent}", remedy="see where the files are")
    if not names and not path.exists() and not source and not target:
        raise DataError(
            f"there is no file or folder {where}, and no parallel files beginning with {where}.",
            remedy="of a dataset by name, say --data.source and --data.target",
        )
    if source or target:
        others = [name for name in names if name not in (source, target)]
        if len(others) == 1:
            return source or others[0], target or others[0]
    else:
        # The last folder first: a language may well be part of a name further up.
        for text in reversed(Path(where).expanduser().absolute().parts[-3:]):
            words = re.split(r"[^a-z]+", text.lower())
            mentioned = [name for name in dict.fromkeys(words) if name in names]
            if len(mentioned) == 2:
                return mentioned[0], mentioned[1]
        if ordered and len(names) == 2:
            return names[0], names[1]
    raise ConfigError(
        f"it is not clear which language of {where} is the source"
        + (f": there are {', '.join(names)}" if names else ""),
        remedy="say --data.source and --data.target",
    )


def _names(path: Path) -> tuple[list[str], bool]:
    """Suffixes of parallel files or columns of a table, and whether their order says which is the source."""
    if not path.is_file():
        folder = path.parent
        files = [file.name.removesuffix(".gz") for file in sorted(folder.iterdir())] if folder.is_dir() else []
        prefix = path.name + "."
        return list(dict.fromkeys(name.removeprefix(prefix) for name in files if name.startswith(prefix))), False
    kind = Path(path.name.removesuffix(".gz")).suffix
    if kind == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_schema(path).names, True
    with open_lines(path) as stream:
        text = (next(raw_lines(stream), None) or b"").decode("utf-8", errors="replace").lstrip("\ufeff").rstrip("\r")
    if kind == ".csv":
        return next(csv.reader([text]), []), True
    if kind == ".tsv":
        cells = text.split("\t")
        # A first line of short single words is a header; anything else is already a pair.
        header = len(set(cells)) == len(cells) and all(re.fullmatch(r"[A-Za-z_]{1,12}", cell) for cell in cells)
        return (cells if header else ["source", "target"]), True
    if kind == ".jsonl":
        try:
            record = json.loads(text)
        except ValueError:
            return [], False
        record = record.get("translation", record) if isinstance(record, dict) else {}
        return list(record), True
    return [], False
