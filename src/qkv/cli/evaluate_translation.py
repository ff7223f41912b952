"""``qkv evaluate`` of a translator."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/ko-en --source test.ko --reference test.en
  qkv evaluate runs/ko-en --source test.ko --reference test.en --beam 5 --length-penalty 0.6 --output out.txt
  qkv evaluate runs/ko-en --source test.ko --reference test.en --gold-align test.align
"""


def evaluate(
    run: Path,
    *,
    source: Path,
    reference: Path,
    gold_align: Path | None = None,
    beam: int | None = None,
    length_penalty: float | None = None,
    output: Path | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Translate a test set and score it: BLEU and chrF with signatures, and the alignment error rate.

    Args:
        run: the folder of a trained run.
        source: a file of lines to translate.
        reference: their right translations, line by line.
        gold_align: gold alignments of the pairs, such as `0-0 1p2`: sure and possible links, words counted from 0.
        beam: hypotheses kept a sentence; the run's own setting if not given.
        length_penalty: alpha of the run's length-penalty rule.
        output: also write the translations here.
        json: print JSON.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from dataclasses import replace

    from qkv.cli.devices import prepare_device
    from qkv.tasks.evaluate import evaluate_files
    from qkv.tasks.load import load

    translator = load(run, prepare_device(device, threads))
    asked = {"beam": beam, "length_penalty": length_penalty}
    how = replace(translator.search, **{key: value for key, value in asked.items() if value is not None})
    result = evaluate_files(translator, source, reference, gold_align, how, output)
    print(result.to_json() if json else result)


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
