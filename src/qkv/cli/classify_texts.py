"""``qkv classify`` of texts: line in, class out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv classify runs/reviews < lines.txt > classes.tsv      # class, tab, probability
  qkv classify runs/reviews --text 'a fine film' --top 5
  qkv classify runs/entail --text 'it rains' --pair 'it is wet'
  qkv classify runs/entail --input pairs.txt --json        # of a model of pairs: a tab between the two texts
"""


def classify(
    run: Path,
    text: str | None = None,
    pair: str | None = None,
    input: Path | None = None,
    output: Path | None = None,
    top: int = 1,
    json: bool = False,
    stream: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tell the class of each line of a text, with its probability; a line that cannot be read gives a marked line.

    Args:
        run: the folder of a trained run.
        text: one text, instead of lines.
        pair: the text beside it, for a model of pairs.
        input: a file of lines; standard input if not given.
        output: where to write; standard output if not given.
        top: likeliest classes to tell, each with its probability.
        json: one line of JSON each, with all probabilities unless --top says how many.
        stream: answer each line at once, instead of some thousand lines together.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.text_lines import answer_texts
    from qkv.tasks.texts_out import json_line, text_line

    def shown(answer: Any) -> str:
        return json_line(answer, top if top > 1 else None) if json else text_line(answer, top)

    answer_texts(run, shown, text, pair, input, output, stream, device, threads)


def main(argv: Sequence[str]) -> int:
    run_verb(classify, "classify", argv, EXAMPLES)
    return 0
