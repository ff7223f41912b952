"""``qkv vectors``: word vectors at work, and their files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from qkv.cli.verb import run_verb
from qkv.errors import ConfigError, nearest

__all__ = ["main"]

EXAMPLES = """usage: qkv vectors RUN ACTION ...

  nearest WORD                 the words whose vectors point the same way
  analogy WORD - WORD + WORD   what is to the third as the first to the second
  similarity WORD WORD         the cosine of two words
  odd WORD WORD WORD ...       which does not belong
  evaluate                     analogies and rated pairs
  export FILE                  as a file of word2vec or GloVe
and   qkv vectors import FILE --out RUN

examples:
  qkv vectors runs/words nearest 왕 --top 10
  qkv vectors runs/words analogy 왕 - 남자 + 여자 --rule mul
  qkv vectors runs/words evaluate --questions questions-words.txt --pairs wordsim353.tsv
  qkv vectors runs/words export words.bin --format word2vec-binary
  qkv vectors import glove.6B.300d.txt --out runs/glove
(qkv vectors RUN ACTION --help shows the options of an action)
"""


def nearest_words(run: Path, word: str, top: int = 10, json: bool = False) -> None:
    """The words of the largest cosine.

    Args:
        run: the folder of a run with word vectors.
        word: a word.
        top: how many.
        json: print JSON.
    """
    _print_near(_open(run).nearest(word, _at_least_one(top)), json)


def analogy(run: Path, terms: str, top: int = 10, rule: Literal["add", "mul"] = "add", json: bool = False) -> None:
    """Add and take away words: 왕 - 남자 + 여자. The words given are no answers.

    Args:
        run: the folder of a run with word vectors.
        terms: three words, such as 왕 - 남자 + 여자.
        top: how many answers.
        rule: add (3CosAdd) or mul (3CosMul).
        json: print JSON.
    """
    signs, sign = {"+": [], "-": []}, "+"
    for term in terms.split():
        if term in signs:
            sign = term
        else:
            signs[sign].append(term)
            sign = "+"
    if len(signs["+"]) != 2 or len(signs["-"]) != 1:
        raise ConfigError(f"{terms!r} is no analogy", expected="three words, such as 왕 - 남자 + 여자")
    _print_near(_open(run).analogy(signs["+"], signs["-"], _at_least_one(top), rule), json)


def _at_least_one(top: int) -> int:
    if top < 1:
        raise ConfigError(f"--top is {top}", expected="a whole number from 1")
    return top


def similarity(run: Path, one: str, other: str) -> None:
    """The cosine of two words.

    Args:
        run: the folder of a run with word vectors.
        one: a word.
        other: another.
    """
    print(f"{_open(run).similarity(one, other):.4f}")


def odd(run: Path, words: str, json: bool = False) -> None:
    """Words by their cosine with the mean of all: the first does not belong.

    Args:
        run: the folder of a run with word vectors.
        words: three words or more; quote one that has a blank.
        json: print JSON.
    """
    _print_near(_open(run).odd(words.split(JOINED["odd"]) if JOINED["odd"] in words else words.split()), json)


def export(
    run: Path,
    file: Path,
    format: Literal["word2vec", "word2vec-binary", "glove"] = "word2vec",
    most_words: int | None = None,
) -> None:
    """Write the vectors as a file.

    Args:
        run: the folder of a run with word vectors.
        file: the file to write.
        format: word2vec (text), word2vec-binary, or glove (text without a first line).
        most_words: only so many of the most frequent.
    """
    from qkv.weights.word_files import export_vectors

    export_vectors(_open(run), file, format, most_words)
    print(f"wrote {file}")


def import_(file: Path, *, out: Path, limit: int | None = None) -> None:
    """Turn a file of vectors (word2vec text or binary, GloVe, also packed) into a run.

    Args:
        file: the file.
        out: the run's folder.
        limit: read only so many words.
    """
    from qkv.weights.word_files import import_vectors

    print("\n".join(import_vectors(file, out, limit)))
    print(f"next: qkv vectors {out} nearest WORD")


def _open(run: Path):
    from qkv.tasks.load import load
    from qkv.tasks.word_start import refuse_other_runs

    refuse_other_runs(run)
    return load(run)


def _print_near(found, as_json: bool) -> None:
    from qkv.store import json_text

    if not found:
        raise ConfigError("no word is left to rank: all that the run has are given")
    for near in found:
        print(json_text(near._asdict()) if as_json else f"{near.score:.4f}  {near.word}")


def _evaluate(argv: Sequence[str]) -> int:
    from qkv.cli.evaluate_vectors import main

    return main(argv)


ACTIONS = {"nearest": nearest_words, "similarity": similarity, "export": export, "analogy": analogy, "odd": odd}
JOINED = {"analogy": " ", "odd": "\t"}  # several words are one argument, with this between them


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if not words or words[0] in ("-h", "--help"):
        print(EXAMPLES, end="")
        return 0
    if words[0] == "import":
        run_verb(import_, "vectors import", words[1:])
        return 0
    if len(words) < 2 or words[1].startswith("--"):
        raise ConfigError(
            "the action is missing", expected=f"qkv vectors RUN and one of {', '.join(ACTIONS)}, evaluate"
        )
    run, action, *rest = words
    if action == "evaluate":
        return _evaluate([run, *rest])
    if action not in ACTIONS:
        raise ConfigError(f"there is no action {action!r}", remedy=nearest(action, [*ACTIONS, "evaluate", "import"]))
    if action in JOINED:
        end = next((i for i, word in enumerate(rest) if word.startswith("--")), len(rest))
        rest = [*([JOINED[action].join(rest[:end])] if end else []), *rest[end:]]
    run_verb(ACTIONS[action], f"vectors RUN {action}", [run, *rest])
    return 0
