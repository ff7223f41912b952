"""``qkv evaluate`` of a classifier of texts, or of a model of numbers."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/reviews --data test.tsv
  qkv evaluate runs/reviews --data reviews/ --page worst.html     # the part test of a folder
  qkv evaluate runs/entail --data test.csv --text premise --pair hypothesis --label gold --json
"""


def evaluate(
    run: Path,
    *,
    data: str,
    text: str = "",
    pair: str = "",
    label: str = "",
    separator: str = "|",
    page: Path | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Answer a test set of texts and score it: accuracy, macro F1, calibration and what is taken for what (of numbers:
    errors and correlations), with 95 % intervals.

    Args:
        run: the folder of a trained run.
        data: a table, a folder with one, class folders, or the name of a dataset.
        text: column of the text, if not a usual name.
        pair: column of the second text, if not a usual name.
        label: column of the label, if not a usual name.
        separator: what stands between several labels in one field.
        page: also write the worst mistakes here, each with what was looked at.
        json: print JSON.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.look.text_mistakes import write_mistakes
    from qkv.tasks.evaluate_texts import evaluate_texts
    from qkv.tasks.load import load

    classifier = load(run, prepare_device(device, threads))
    result = evaluate_texts(classifier, data, {"text": text, "pair": pair, "label": label}, separator)
    print(result.to_json() if json else result)
    if page is not None:
        count = write_mistakes(classifier, result, page)
        if not json:
            print(f"wrote {page}: {count} mistakes")


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
