"""The user's sentence pairs: where they are (`PairFiles`), and what is wrong with them (`check`)."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qkv.errors import ConfigError, DataError, refuse_wrong

if TYPE_CHECKING:  # the command line reads PairFiles for its flags and must start without torch and numpy
    from qkv.data.formats import Corpus
    from qkv.data.notes import Notes
    from qkv.data.report import Report

__all__ = ["PARTS", "PairFiles", "check", "examine_all", "open_part", "resolve"]

PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class PairFiles:
    """Which sentence pairs to learn from, and how to read them.

    Args:
        folder: a folder in which train, dev (or val, valid, validation) and test are found by name.
        train: a prefix (ko_en/train for train.ko and train.en), a .tsv, .csv, .jsonl or .parquet file (.gz too), or the
            name of a dataset (NAME or NAME:CONFIG).
        dev: held-out pairs that choose the best weights; without any, some of train are held out.
        test: pairs that training must not see; those that are also in train are dropped from train.
        source: suffix or column of the language to translate from.
        target: suffix or column of the language to translate into.
        vocabulary: what words are cut into.
        words: size of the vocabulary; 0 chooses by the number of pairs.
        joint: one vocabulary for both languages.
        learn_from: lines of each side that the vocabulary is learned from, at most, spread over the corpus.
        lowercase: read all text without capitals.
        strip_accents: read all text without accents.
        max_length: pieces a line may have; a longer one drops its pair.
        max_ratio: drop pairs whose lengths differ so many times more than usual; 0 keeps and reports them.
        keep_duplicates: keep pairs of train that occur more than once.
        batch_tokens: tokens of a batch, on the longer side, padding counted.
        bpe_dropout: probability of forgetting a merge, so that words are cut differently each time.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    source: str = ""
    target: str = ""
    vocabulary: Literal["bpe", "unigram", "word", "character"] = "bpe"
    words: int = 0
    joint: bool = True
    learn_from: int = 1_000_000
    lowercase: bool = False
    strip_accents: bool = False
    max_length: int = 256
    max_ratio: float = 0.0
    keep_duplicates: bool = False
    batch_tokens: int = 4096
    bpe_dropout: float = 0.0

    def __post_init__(self):
        refuse_wrong(
            "data",
            (self.words < 0, "words", self.words, "0 or more"),
            (self.learn_from < 1, "learn_from", self.learn_from, "1 or more"),
            (self.max_length < 1, "max_length", self.max_length, "1 or more"),
            (self.max_ratio and self.max_ratio <= 1, "max_ratio", self.max_ratio, "0, or more than 1"),
            (self.batch_tokens < 1, "batch_tokens", self.batch_tokens, "1 or more"),
            (not 0 <= self.bpe_dropout < 1, "bpe_dropout", self.bpe_dropout, "0 or more, less than 1"),
            (self.bpe_dropout and self.vocabulary != "bpe", "bpe_dropout", self.bpe_dropout, "vocabulary bpe"),
        )


def resolve(data: PairFiles) -> PairFiles:
    """The same with train, dev, test, source and target filled in from the names in ``folder`` and of files.

    Raises:
        ConfigError, DataError: there is nothing to train on, or it is not clear which language is the source.
    """
    from qkv.data.discover import find_parts, find_sides

    if data.folder:
        found = find_parts(Path(data.folder).expanduser())
        data = replace(data, **{part: getattr(data, part) or found.get(part, "") for part in PARTS})
        if not any(getattr(data, part) for part in PARTS):
            raise DataError(
                "no train, dev or test was found by name",
                expected="train.ko and train.en, or train.tsv ...",
                file=data.folder,
            )
    first = data.train or data.dev or data.test
    if not first:
        raise ConfigError(
            "no data is named",
            remedy="say --data FOLDER, or --data.train ko_en/train --data.source ko --data.target en",
        )
    if not (data.source and data.target):
        source, target = find_sides(first, data.source, data.target)
        data = replace(data, source=source, target=target)
    if data.source == data.target:
        raise ConfigError(f"source and target are both {data.source!r}", expected="two languages")
    return data


def open_part(data: PairFiles, part: str) -> "Corpus | None":
    """The corpus of "train", "dev" or "test", not yet read; None if there is none."""
    from qkv.data.formats import open_corpus

    data = resolve(data)
    where = getattr(data, part)
    return open_corpus(where, data.source, data.target, part) if where else None


def check(data: PairFiles) -> "Report":
    """The data doctor: read everything once and report. Nothing is written; ``refused`` says what forbids training.

    Raises:
        DataError, ConfigError: files are missing, so that there is nothing to check.
    """
    with tempfile.TemporaryDirectory(prefix="qkv-check-") as scratch:
        report, _ = examine_all(resolve(data), Path(scratch), keep_text=False)
    return report


def examine_all(data: PairFiles, scratch: Path, keep_text: bool = True) -> "tuple[Report, dict[str, Notes]]":
    """The report, and what is noted of each pair of each part, in files under ``scratch``; see `Notes`."""
    from qkv.data.doctor import Limits, examine
    from qkv.data.notes import Notes
    from qkv.data.repeats import compare
    from qkv.data.report import Report

    corpora = {part: corpus for part in PARTS if (corpus := open_part(data, part))}
    limits = Limits(10 * data.max_length, data.max_ratio)
    report = Report()
    notes = {}
    for part, corpus in corpora.items():
        notes[part] = Notes(scratch / part, keep_text and part != "test")
        examine(part, corpus, notes[part], report, limits)
    compare(corpora, {part: found.array for part, found in notes.items()}, report, data.keep_duplicates)
    if "train" in notes and not report.kept["train"] and not report.refused:
        file = corpora["train"].source_file
        reasons = "; ".join(str(finding) for finding in report.findings if finding.part == "train")
        report.refused.append(
            DataError("no pair is left to train on" + (f" ({reasons})" if reasons else ""), remedy="mend it", file=file)
        )
    return report, notes
