"""``qkv check``: what is wrong with the data, before anything is trained."""

from collections.abc import Sequence

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv check ko-en/                                  # train.ko, train.en, dev.ko ... are found by name
  qkv check ko-en/ --source ko --target en
  qkv check ko-en/train.tsv --source ko --target en
exit code: 0 where the data can be trained on, 1 where they cannot, 2 where they cannot be read
"""


def check(data: str, source: str = "", target: str = "", dev: str = "", test: str = "") -> bool:
    """Read all pairs once and say what is wrong with them, by file and line; nothing is changed.

    Args:
        data: a folder, a prefix of parallel files, or a .tsv, .csv, .jsonl or .parquet file (.gz too).
        source: suffix or column of the language to translate from.
        target: suffix or column of the language to translate into.
        dev: held-out pairs, if they are not in the folder.
        test: test pairs, if they are not in the folder.
    """
    from pathlib import Path

    from qkv.data.pairs import PairFiles
    from qkv.data.pairs import check as examine

    where = {"folder": data} if Path(data).is_dir() else {"train": data}
    report = examine(PairFiles(**where, source=source, target=target, dev=dev, test=test))
    print("\n".join(report.lines()))
    return not report.refused


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(check, "check", argv, EXAMPLES) else 1
