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
  qkv check clips/                                  # folders of frames, GIFs or videos, a folder a class
  qkv check faces.csv --path file --label age --labels number
  qkv check photos/captions.jsonl --kind captions
  qkv check reviews/                                # train.tsv, dev.tsv ... with columns text and label
  qkv check reviews.csv --text review --label stars --labels number
  qkv check names.conll --tag 2                     # a word a line; the column of its tag
exit code: 0 where the data can be trained on, 1 where they cannot, 2 where they cannot be read
"""
KINDS = {  # who reads a kind of data, and what more may be said of it
    "pairs": ("qkv.data.pairs:PairFiles", ("source", "target")),
    "pictures": ("qkv.data.image_files:ImageFiles", ("path", "label", "labels")),
    "clips": ("qkv.data.clip_files:ClipFiles", ("path", "label", "labels")),
    "captions": ("qkv.data.caption_files:CaptionFiles", ("path", "caption")),
    "texts": ("qkv.data.texts:TextFiles", ("text", "pair", "label", "labels")),
    "tags": ("qkv.data.tags:TagFiles", ("word", "tag")),
}


def check(
    data: str,
    dev: str = "",
    test: str = "",
    kind: Literal["auto", "pairs", "pictures", "clips", "captions", "texts", "tags"] = "auto",
    source: str = "",
    target: str = "",
    path: str = "",
    label: str = "",
    labels: Literal["", "class", "several", "number"] = "",
    caption: str = "",
    text: str = "",
    pair: str = "",
    word: str = "",
    tag: str = "",
    every: bool = False,
) -> bool:
    """Read all data once and say what is wrong with them, by file and line; nothing is changed.

    Args:
        data: a folder, a file, a prefix of parallel files, an archive of pictures, or the name of a dataset.
        dev: held-out data, if they are not in the folder.
        test: test data, if they are not in the folder.
        kind: what the data are; auto sees by what lies there.
        source: of pairs: suffix or column of the language to translate from.
        target: of pairs: suffix or column of the language to translate into.
        path: column of a table that holds the paths of pictures or clips.
        label: column of a table that holds the labels.
        labels: one class for each, several (of pictures and texts), or a number; one class if not given.
        caption: column of a table that holds the captions of pictures.
        text: column of a table that holds the texts.
        pair: column of a table that holds second texts.
        word: of tagged sentences: column of the word.
        tag: of tagged sentences: column of the tag.
        every: name every one with a fault, not only the first few of each kind.
    """
    from importlib import import_module
    from pathlib import Path

    from qkv.data.kind import find_kind
    from qkv.errors import ConfigError

    more = {"source": source, "target": target, "path": path, "label": label, "labels": labels, "caption": caption,
            "text": text, "pair": pair, "word": word, "tag": tag}  # fmt: skip
    more = {key: value for key, value in more.items() if value}
    if kind == "auto":
        told = [name for name, (_, keys) in KINDS.items() if more and more.keys() <= set(keys)]
        kind = told[0] if len(told) == 1 else "captions" if data.endswith(".json") else find_kind(data, more)
    where, keys = KINDS[kind]
    if strange := more.keys() - set(keys):
        raise ConfigError(f"--{min(strange)} is not for {kind}", remedy="say what the data are with --kind")
    module, name = where.split(":")
    room = import_module(module)
    place = "train" if kind == "pairs" and not Path(data).is_dir() else "folder"
    files = getattr(room, name)(**{place: data}, dev=dev, test=test, **more)
    report = room.check(files) if kind == "pairs" else room.check(files, every)
    print("\n".join(report.lines()))
    if kind != "pairs" and not every and any(0 < len(found.examples) < found.count for found in report.findings):
        print("--every names every one")
    return not report.refused


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(check, "check", argv, EXAMPLES) else 1
