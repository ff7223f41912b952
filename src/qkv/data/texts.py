"""The user's labelled texts: where they are and how to read them (`TextFiles`), and what is wrong with them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qkv.errors import ConfigError, refuse_wrong

if TYPE_CHECKING:  # the command line reads TextFiles for its flags and must start without torch and numpy
    from qkv.data.report import Report

__all__ = ["TextFiles", "check", "check_learning"]


@dataclass(frozen=True)
class TextFiles:
    """Which labelled texts to learn from, and how to read them.

    Args:
        folder: a folder in which train, dev (or val, valid, validation) and test are found by name, as tables or as
            folders of class folders with .txt files; a folder of class folders; a .tsv, .csv, .jsonl or .parquet file
            (.gz too); or the name of a dataset (NAME or NAME:CONFIG).
        train: where the training texts are, if not in ``folder``.
        dev: held-out texts that choose the best weights; without any, some of train are held out.
        test: texts that training must not see; those that are also in train are dropped from train.
        labels: one class a text, any number of classes a text (several), or a number.
        text: column of a table that holds the text, or its number from 1 in a table without a header; by default text,
            sentence, document, review ...
        pair: column of a second text, for tasks on two; by default text2, sentence2, hypothesis ..., where there is
            one beside the first; none leaves it unread.
        label: column that holds the label; by default label, labels, class, category, target ...
        separator: what stands between several labels in one field of a .csv or .tsv.
        hold_out: share of train that is held out where no dev is named, of each class alike.
        keep_duplicates: keep texts of train that occur more than once.
        vocabulary: what words are cut into; a run that starts from another takes over its vocabulary.
        words: size of the vocabulary; 0 chooses by the number of texts.
        lowercase: read all text without capitals.
        strip_accents: read all text without accents.
        max_length: pieces of a text, marks counted; what is longer is cut off, and counted.
        batch: texts of a batch.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    labels: Literal["class", "several", "number"] = "class"
    text: str = ""
    pair: str = ""
    label: str = ""
    separator: str = "|"
    hold_out: float = 0.1
    keep_duplicates: bool = False
    vocabulary: Literal["wordpiece", "bpe", "unigram", "word", "character"] = "wordpiece"
    words: int = 0
    lowercase: bool = False
    strip_accents: bool = False
    max_length: int = 256
    batch: int = 32

    def __post_init__(self):
        if self.labels not in ("class", "several", "number"):
            raise ConfigError(f"data.labels is {self.labels!r}", expected="class, several or number")
        check_learning(self)


def check_learning(data) -> None:
    """What `TextFiles` and `qkv.data.tags.TagFiles` refuse alike."""
    refuse_wrong(
        "data",
        (not 0 < data.hold_out < 1, "hold_out", data.hold_out, "a share: above 0, below 1"),
        (data.words < 0, "words", data.words, "0 or more"),
        (data.max_length < 8, "max_length", data.max_length, "8 or more"),
        (data.batch < 1, "batch", data.batch, "1 or more"),
    )


def check(data: TextFiles, every: bool = False) -> "Report":
    """The doctor of labelled texts: read all once and report. Nothing is written.

    Args:
        every: name every line, not only the first few of each kind.

    Raises:
        DataError, ConfigError: files or columns are missing, so that there is nothing to check.
    """
    from qkv.data.texts_doctor import examine_all

    return examine_all(data, every)[0]
