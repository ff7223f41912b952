"""``qkv evaluate`` of a tagger."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/names --data test.conll
  qkv evaluate runs/names --data names/ --page worst.html         # the part test of a folder
  qkv evaluate runs/pos --data test.conllu --json
"""


def evaluate(
    run: Path,
    *,
    data: str,
    word: str = "",
    tag: str = "",
    page: Path | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tag the words of a test file and score them: F1 of spans as seqeval counts it (of plain tags, accuracy and macro
    F1), calibration, what is taken for what, with 95 % intervals.

    Args:
        run: the folder of a trained run.
        data: a file of words and tags, or a folder with one.
        word: column of the word, as in training.
        tag: column of the tag, as in training.
        page: also write the worst mistakes here, each with what was looked at.
        json: print JSON.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.look.text_mistakes import write_mistakes
    from qkv.tasks.evaluate_tags import evaluate_tags
    from qkv.tasks.load import load

    tagger = load(run, prepare_device(device, threads))
    result = evaluate_tags(tagger, data, word, tag)
    print(result.to_json() if json else result)
    if page is not None:
        count = write_mistakes(tagger, result, page)
        if not json:
            print(f"wrote {page}: {count} mistakes")


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
