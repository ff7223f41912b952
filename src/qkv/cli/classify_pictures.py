"""``qkv classify`` of pictures: a row each."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv classify runs/birds photo.jpg
  qkv classify runs/birds photo.jpg more/ --top 3
  qkv classify runs/birds archive/ --out classes.csv       # stopped or killed: give it again, and it goes on
  qkv classify runs/birds archive/ --out classes.jsonl --top 5
  find . -name '*.jpg' | qkv classify runs/birds - --json
exit code: 0 where every picture was answered, 1 where some could not be read (they are marked), 2 for a mistake
"""


def classify(
    run: Path,
    pictures: list[str],
    *,
    top: int | None = None,
    out: Path | None = None,
    json: bool = False,
    batch: int = 64,
    device: str | None = None,
    threads: int | None = None,
) -> bool:
    """Tell the classes of pictures, with their probabilities; one that cannot be read gets a marked row.

    Args:
        run: the folder of a trained run.
        pictures: files, and folders of them; - reads their names from standard input.
        top: likeliest classes to tell of a picture: 5 on the terminal and all in a .jsonl if not given. A .csv has a
            column for each class.
        out: a .csv or .jsonl file to write instead of printing; until it is whole it is called OUT.partial.
        json: print lines of JSON.
        batch: pictures at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.answers import answer_all
    from qkv.cli.devices import prepare_device
    from qkv.tasks.load import load

    return answer_all("pictures", load(run, prepare_device(device, threads)), pictures, top, out, batch, json)


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(classify, "classify", argv, EXAMPLES) else 1
