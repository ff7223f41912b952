"""The user's tagged sentences: where they are and how to read them (`TagFiles`), and what is wrong with them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qkv.data.texts import check_learning

if TYPE_CHECKING:  # the command line reads TagFiles for its flags and must start without torch and numpy
    from qkv.data.report import Report

__all__ = ["SUFFIXES", "TagFiles", "check"]

SUFFIXES = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".iobes")


@dataclass(frozen=True)
class TagFiles:
    """Which tagged sentences to learn from, and how to read them: a word a line, a blank line between sentences.

    Args:
        folder: a folder in which train, dev (or val, valid, validation) and test are found by name, or one file:
            .conll, .conllu, .bio or .iob2 (.gz too).
        train: the training sentences, if they are not in ``folder``.
        dev: held-out sentences that choose the best weights; without any, some of train are held out.
        test: sentences that training must not see; those that are also in train are dropped from train.
        word: column of the word: its number from 1 (-1 is the last), or its name in the first line. By default the
            first; of .conllu the second.
        tag: column of the tag, likewise. By default the last; of .conllu the fourth.
        hold_out: share of train that is held out where no dev is named.
        keep_duplicates: keep sentences of train that occur more than once.
        vocabulary: what words are cut into; auto is character for a file of single characters, wordpiece for others. A
            run that starts from another takes over its vocabulary.
        words: size of the vocabulary; 0 chooses by the number of sentences.
        lowercase: read all text without capitals.
        strip_accents: read all text without accents.
        max_length: pieces of a window, marks counted: a longer sentence is read in windows that overlap.
        batch: windows of a batch.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    word: str = ""
    tag: str = ""
    hold_out: float = 0.1
    keep_duplicates: bool = False
    vocabulary: Literal["auto", "wordpiece", "bpe", "unigram", "word", "character"] = "auto"
    words: int = 0
    lowercase: bool = False
    strip_accents: bool = False
    max_length: int = 256
    batch: int = 16

    def __post_init__(self):
        check_learning(self)


def check(data: TagFiles, every: bool = False) -> "Report":
    """The doctor of tagged sentences: read all once and report. Nothing is written.

    Raises:
        DataError, ConfigError: files are missing, so that there is nothing to check.
    """
    from qkv.data.tags_doctor import examine_all

    return examine_all(data, every)[0]
