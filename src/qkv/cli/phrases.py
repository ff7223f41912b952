"""``qkv phrases``: the built-in Korean-English sentence pairs, to train and study on."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb
from qkv.errors import ConfigError

__all__ = ["main"]

ENOUGH = 2000  # training pairs, of which the default --dev and --test can be made
EXAMPLES = """examples:
  qkv phrases --out phrases                                # short sentences, as in qkv demo
  qkv phrases --out long --clauses 6 --train 20000         # sentences of two to six clauses, up to 40 words
"""


def phrases(
    *, out: Path, train: int = 8000, dev: int = 200, test: int = 300, clauses: int = 1, fewest: int = 2, seed: int = 0
) -> None:
    """Write Korean-English sentence pairs of the built-in grammar, with their gold word alignments.

    Args:
        out: the folder for {train,dev,test}.{ko,en,align}.
        train: training pairs.
        dev: held-out pairs to choose weights by.
        test: held-out pairs to report on; every word in them is in the training pairs, their combinations are not.
        clauses: the most clauses of a sentence.
        fewest: the fewest, where there may be several.
        seed: of the sentences.
    """
    from qkv.data import phrases as grammar

    for name, value in (("train", train), ("dev", dev), ("test", test), ("clauses", clauses), ("fewest", fewest)):
        if value < 1:
            raise ConfigError(f"--{name} is {value}", expected="a whole number from 1")
    try:
        splits = grammar.split(train, dev, test, seed, clauses, fewest)
    except ValueError as error:
        raise ConfigError(
            f"--train is {train}, and {error}",
            expected=f"--train {max(ENOUGH, 2 * train)} or more",
            remedy="or ask for fewer with --dev and --test",
        ) from None
    grammar.write(splits, out)
    words = [len(phrase.english.split()) for phrase in splits.train]
    print(f"wrote {train:,} + {dev:,} + {test:,} pairs into {out}; English has {min(words)} to {max(words)} words")


def main(argv: Sequence[str]) -> int:
    run_verb(phrases, "phrases", argv, EXAMPLES)
    return 0
