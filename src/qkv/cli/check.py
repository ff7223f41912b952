"""``qkv check``: what is wrong with the data, before anything is trained."""

from collections.abc import Sequence
from typing import Literal

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv check ko-en/                                  # train.ko, train.en, dev.ko ... are found by name
  qkv check ko-en/ --source ko --target en
  qkv check ko-en/train.tsv --source ko --target en
  qkv check photos/                                 # a folder a class; or train, val and test with class folders
  qkv check photos/ --every                         # name every file, not only the first few of each kind
  qkv check faces.csv --path file --label age --labels number
exit code: 0 where the data can be trained on, 1 where they cannot, 2 where they cannot be read
"""


def check(
    data: str,
    source: str = "",
    target: str = "",
    dev: str = "",
    test: str = "",
    kind: Literal["auto", "pairs", "pictures"] = "auto",
    path: str = "",
    label: str = "",
    labels: Literal["class", "several", "number"] = "class",
    every: bool = False,
) -> bool:
    """Read all pairs or pictures once and say what is wrong with them, by file and line; nothing is changed.

    Args:
        data: a folder, a prefix of parallel files, a .tsv, .csv, .jsonl or .parquet file (.gz too), or an archive (.zip
            or .tar) of pictures.
        source: suffix or column of the language to translate from.
        target: suffix or column of the language to translate into.
        dev: held-out data, if they are not in the folder.
        test: test data, if they are not in the folder.
        kind: sentence pairs or labelled pictures; auto sees by what lies there.
        path: column of a table that holds the paths of pictures.
        label: column of a table that holds the labels of pictures.
        labels: one class a picture, several, or a number.
        every: name every picture with a fault, not only the first few of each kind.
    """
    from pathlib import Path

    from qkv.data import image_files, pairs
    from qkv.data.kind import find_kind

    if kind == "auto":
        kind = "pairs" if source or target else "pictures" if path or label else find_kind(data)
    where = {"folder": data} if Path(data).is_dir() or kind == "pictures" else {"train": data}
    held_out = {"dev": dev, "test": test}
    if kind == "pictures":
        files = image_files.ImageFiles(**where, **held_out, path=path, label=label, labels=labels)
        report = image_files.check(files, every)
    else:
        report = pairs.check(pairs.PairFiles(**where, **held_out, source=source, target=target))
    print("\n".join(report.lines()))
    return not report.refused


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(check, "check", argv, EXAMPLES) else 1
