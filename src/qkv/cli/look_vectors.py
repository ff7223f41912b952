"""``qkv look`` of word vectors."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb
from qkv.errors import ConfigError

__all__ = ["main"]

EXAMPLES = """examples:
  qkv look runs/words 왕 여왕 도시                        # writes look.html: maps, neighbours
  qkv look runs/words king --arrows man:king,woman:queen   # arrows of an analogy
  qkv look runs/words ice steam --ratio ice:steam --contexts solid,gas,water,fashion
"""


def look(
    run: Path,
    words: str,
    out: Path = Path("look.html"),
    around: int = 10,
    arrows: str = "",
    ratio: str = "",
    contexts: str = "",
) -> None:
    """Write a page of some words: maps, nearest words, arrows of analogies, and GloVe's table of ratios.

    Args:
        run: the folder of a run with word vectors.
        words: one word or more.
        out: the page.
        around: how many neighbours of each word.
        arrows: pairs of words with commas between, such as man:king,woman:queen.
        ratio: two words, such as ice:steam, whose neighbours in the run's text are compared.
        contexts: words to compare them by, with commas between; those that tell most if none are given.
    """
    from qkv.look.word_page import word_page
    from qkv.store import write_text
    from qkv.tasks.load import load
    from qkv.tasks.word_ratios import count_ratios

    if out.suffix != ".html":
        raise ConfigError(f"--out is {out}", expected="a name ending in .html")
    vectors = load(run)
    tables = [count_ratios(vectors, *pair, _split(contexts)) for pair in _pairs("ratio", ratio)]
    write_text(out, word_page(vectors, words.split(), around, _pairs("arrows", arrows), tables))
    for word in words.split():
        print(f"{word}: " + ", ".join(near.word for near in vectors.nearest(word, min(around, 5))))
    for table in tables:
        for row in table.rows:
            print(f"P({row.context}|{table.one}) / P({row.context}|{table.other}) = {row.ratio}")
    print(f"wrote {out}")


def _split(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    pairs = [tuple(pair.split(":")) for pair in _split(text)]
    if any(len(pair) != 2 for pair in pairs):
        raise ConfigError(f"--{option} is {text!r}", expected="pairs of words, such as man:king,woman:queen")
    return pairs


def main(argv: Sequence[str]) -> int:
    options = next((i for i, word in enumerate(argv) if word.startswith("--")), len(argv))
    given = list(argv[:options])  # several words are one argument
    run_verb(look, "look", [*given[:1], *([" ".join(given[1:])] if given[1:] else []), *argv[options:]], EXAMPLES)
    return 0
