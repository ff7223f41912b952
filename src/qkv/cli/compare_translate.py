"""``qkv compare translate``: the ladder that led to the Transformer."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.table import print_table
from qkv.cli.verb import whole_number

__all__ = ["main"]

EXAMPLES = """usage: qkv compare translate --data DIR --data.source LANG --data.target LANG --out STUDY [...]

The ladder that led to the Transformer, on your own sentence pairs: no attention, no attention with the source
reversed (both with an encoder that reads one way, or there were nothing to reverse), dot, bilinear and additive
attention, and the Transformer. All see the same target tokens in the same order, share one vocabulary and have as many
parameters (within 10 %). Writes study.html, results.csv, and the charts as .svg and .png.

  --rungs NAMES       which, with commas between: none,none-reversed,dot,bilinear,additive,transformer (all)
  --seeds N           how many times each is trained (1)
  --gold-align FILE   gold alignments of the test pairs (test.align beside the test files, if it is there)
  --beam N            hypotheses of the search on the test sentences (1)

Any option of `qkv train translate --model seq2seq` may follow: size, optimiser, budget, seed. Each rung is evaluated
some ten times, unless --loop.evaluate_every says how often.

examples:
  qkv phrases --out long --clauses 6 --train 20000         # built-in sentences of up to 40 words
  qkv compare translate --data long/ --data.source ko --data.target en --out study --size tiny --loop.epochs 10
  qkv compare translate --data long/ ... --out study --rungs dot,transformer --seeds 3
The same command goes on where it was stopped, and climbs only what is not there yet.
"""


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if not words or "--help" in words or "-h" in words:
        print(EXAMPLES, end="")
        return 0
    from qkv.train.options import from_flags, take

    words = [word.replace("--gold-align", "--gold_align", 1) for word in words]
    own = {name: take(words, f"--{name}") for name in ("rungs", "seeds", "gold_align", "beam")}
    run = from_flags(["translate", "--model", "seq2seq", *words])
    from qkv.studies.ladder import chosen, compare
    from qkv.studies.report import rows, write_report

    gold = None if own["gold_align"] is None else Path(own["gold_align"])
    seeds, beam = (whole_number(name, own[name], 1) for name in ("seeds", "beam"))
    study = compare(run, chosen(own["rungs"]), seeds, gold, beam)
    if study.results:
        print_table(rows(study))
        print(f"see it all: {write_report(study)}")
    if study.interrupted:
        print("stopped; the same command goes on from here")
    return 130 if study.interrupted else 0
