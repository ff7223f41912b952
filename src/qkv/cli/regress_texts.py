"""``qkv regress`` of texts: line in, number out."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv regress runs/stars < lines.txt > numbers.txt
  qkv regress runs/alike --text 'it rains' --pair 'it is wet'
"""


def regress(
    run: Path,
    text: str | None = None,
    pair: str | None = None,
    input: Path | None = None,
    output: Path | None = None,
    json: bool = False,
    stream: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tell the number of each line of a text; a line that cannot be read gives a marked line.

    Args:
        run: the folder of a trained run.
        text: one text, instead of lines.
        pair: the text beside it, for a model of pairs.
        input: a file of lines; standard input if not given. Of a model of pairs: a tab between the two texts.
        output: where to write; standard output if not given.
        json: one line of JSON each.
        stream: answer each line at once, instead of some thousand lines together.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.text_lines import answer_texts
    from qkv.tasks.texts_out import json_line, text_line

    answer_texts(run, json_line if json else text_line, text, pair, input, output, stream, device, threads)


def main(argv: Sequence[str]) -> int:
    run_verb(regress, "regress", argv, EXAMPLES)
    return 0
