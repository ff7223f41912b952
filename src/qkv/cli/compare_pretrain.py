"""``qkv compare pretrain``: what pretraining is worth to a classifier of texts, and what next sentences add to it."""

from collections.abc import Sequence

from qkv.cli.table import print_table
from qkv.cli.verb import whole_number
from qkv.errors import ConfigError

__all__ = ["main"]

OWN = ("config", "init", "kind", "model", "out", "resume", "seed")  # of classifying
EXAMPLES = """usage: qkv compare pretrain --data CORPUS --labelled TEXTS --out STUDY [...]

What a classifier of your texts starts from. A BERT is pretrained on a corpus with next sentences and without
(--learn.next 1 and 0), for as many steps over batches of as many tokens, with one vocabulary; a classifier then starts
from each, and from nothing. Writes study.html, results.csv, and the charts as .svg and .png.

  --data CORPUS       running text with documents, as `qkv train pretrain` takes it
  --labelled TEXTS    a folder with train and test (and dev) of labelled texts, as `qkv train classify` takes them
  --starts NAMES      which, with commas between: pairs,packed,scratch (all)
  --seeds N           how many times each is pretrained and trained (1)
  --then.KEY VALUE    any option of `qkv train classify`: --then.loop.epochs 3, --then.data.test test.tsv

Any option of `qkv train pretrain` may follow: size, optimiser, budget (--loop.steps 2000), seed.

examples:
  qkv compare pretrain --data corpus.txt --labelled reviews/ --out study --size tiny --loop.steps 2000 --seeds 3
The same command goes on where it was stopped, and trains only what is not there yet.
"""


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if not words or "--help" in words or "-h" in words:
        print(EXAMPLES, end="")
        return 0
    from qkv.train.options import from_flags, take

    then, rest = _parted(words)
    own = {name: take(rest, f"--{name}") for name in ("labelled", "starts", "seeds")}
    if not own["labelled"]:
        raise ConfigError("--labelled is missing", expected="a folder with train and test of labelled texts")
    if any(word.split("=")[0] == "--learn.next" for word in rest):
        raise ConfigError("--learn.next is what the study compares", remedy="leave it out, or choose --starts")
    for key in OWN:
        if any(word.split("=")[0] == f"--{key}" for word in then):
            raise ConfigError(f"--then.{key} is for the study to say", remedy="leave it out")
    run = from_flags(["pretrain", *rest])
    from qkv.studies.pretrained import chosen, compare
    from qkv.studies.pretrained_report import difference, rows, write_report

    flags = ["--data", own["labelled"], *then]
    study = compare(run, chosen(own["starts"]), flags, whole_number("seeds", own["seeds"], 1))
    if study.results:
        print_table(rows(study))
        print(difference(study))
        print(f"see it all: {write_report(study)}")
    if study.interrupted:
        print("stopped; the same command goes on from here")
    return 130 if study.interrupted else 0


def _parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options that begin with ``--then.`` with their values, as those of classifying, and the others."""
    parts: tuple[list[str], list[str]] = ([], [])
    rest = 1
    for word in words:
        if word.startswith("--"):
            rest = 0 if word.startswith("--then.") else 1
        parts[rest].append(word.replace("--then.", "--", 1) if word.startswith("--then.") else word)
    return parts
