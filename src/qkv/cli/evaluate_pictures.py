"""``qkv evaluate`` of a picture model."""

import sys
from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import check_positive, run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/birds --data photos/test
  qkv evaluate runs/birds --data photos/ --page worst.html      # test of it, or else val
  qkv evaluate runs/age --data faces.csv --path file --label age --json
"""


def evaluate(
    run: Path,
    *,
    data: str,
    path: str = "",
    label: str = "",
    separator: str = "|",
    page: Path | None = None,
    json: bool = False,
    batch: int = 64,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Score a picture model on labelled pictures, with intervals, a table of classes, what is taken for what, and how
    well its probabilities are calibrated.

    Args:
        run: the folder of a trained run.
        data: a folder of class folders, an archive of it, a table of paths and labels, or the name of a dataset.
        path: column of a table that holds the paths.
        label: column of a table that holds the labels.
        separator: what stands between several labels in one field of a .csv or .tsv.
        page: also write the worst mistakes as a page, with the pictures and what the model looked at.
        json: print JSON.
        batch: pictures at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.data.image_files import ImageFiles
    from qkv.look.mistakes import looked_by, write_mistakes
    from qkv.tasks.evaluate_pictures import evaluate_pictures
    from qkv.tasks.load import load

    check_positive(batch=batch)
    classifier = load(run, prepare_device(device, threads))
    result = evaluate_pictures(classifier, ImageFiles(data, path=path, label=label, separator=separator), batch)
    if page is not None:
        write_mistakes(page, result, looked_by(classifier))
        print(f"wrote {page}", file=sys.stderr)
    print(result.to_json() if json else result)


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
