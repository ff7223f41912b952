"""``qkv evaluate`` of word vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/words --questions questions-words.txt
  qkv evaluate runs/words --pairs wordsim353.tsv --questions questions-words.txt --rule mul --json
"""


def evaluate(
    run: Path,
    *,
    questions: Path | None = None,
    pairs: Path | None = None,
    rule: Literal["add", "mul"] = "add",
    most_words: int | None = None,
    json: bool = False,
) -> None:
    """Analogies and rated pairs of words; how many were out of vocabulary is always told.

    Args:
        run: the folder of a run with word vectors.
        questions: a file of analogies, as questions-words.txt.
        pairs: a file of rated pairs, as WordSim-353 and SimLex-999 are.
        rule: add (3CosAdd) or mul (3CosMul).
        most_words: ask about and answer with only so many of the most frequent words.
        json: print JSON.
    """
    from qkv.errors import ConfigError
    from qkv.store import json_text
    from qkv.tasks.load import load
    from qkv.tasks.word_scores import score_analogies, score_pairs

    if questions is None and pairs is None:
        raise ConfigError("there is nothing to score", remedy="name --questions or --pairs")
    vectors = load(run)
    found = []
    if questions is not None:
        found.append(score_analogies(vectors, questions, rule, most_words))
    if pairs is not None:
        found.append(score_pairs(vectors, pairs))
    for result in found:
        print(json_text(result.to_json()) if json else result)


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
