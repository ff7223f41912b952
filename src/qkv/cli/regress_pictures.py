"""``qkv regress`` of pictures: a row each."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv regress runs/age face.jpg
  qkv regress runs/age faces/ --out ages.csv       # stopped or killed: give it again, and it goes on
exit code: 0 where every picture was answered, 1 where some could not be read (they are marked), 2 for a mistake
"""


def regress(
    run: Path,
    pictures: list[str],
    *,
    out: Path | None = None,
    json: bool = False,
    batch: int = 64,
    device: str | None = None,
    threads: int | None = None,
) -> bool:
    """Tell the numbers of pictures, in the unit of the training targets; one that cannot be read gets a marked row.

    Args:
        run: the folder of a trained run.
        pictures: files, and folders of them; - reads their names from standard input.
        out: a .csv or .jsonl file to write instead of printing; until it is whole it is called OUT.partial.
        json: print lines of JSON.
        batch: pictures at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.answers import answer_all
    from qkv.cli.devices import prepare_device
    from qkv.tasks.load import load

    return answer_all("pictures", load(run, prepare_device(device, threads)), pictures, None, out, batch, json)


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(regress, "regress", argv, EXAMPLES) else 1
