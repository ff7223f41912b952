"""``qkv regress`` of clips: a row each."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv regress runs/speed clip.gif frames/
  qkv regress runs/speed archive/ --out numbers.csv       # stopped or killed: give it again, and it goes on
exit code: 0 where every clip was answered, 1 where some could not be read (they are marked), 2 for a mistake
"""


def regress(
    run: Path,
    clips: list[str],
    *,
    out: Path | None = None,
    json: bool = False,
    batch: int = 8,
    device: str | None = None,
    threads: int | None = None,
) -> bool:
    """Tell the numbers of clips; one that cannot be read gets a marked row.

    Args:
        run: the folder of a trained run.
        clips: folders of frames, animations, videos, and folders of those; - reads their names from standard input.
        out: a .csv or .jsonl file to write instead of printing; until it is whole it is called OUT.partial.
        json: print lines of JSON.
        batch: clips at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.answers import answer_all
    from qkv.cli.devices import prepare_device
    from qkv.tasks.load import load

    return answer_all("clips", load(run, prepare_device(device, threads)), clips, None, out, batch, json)


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(regress, "regress", argv, EXAMPLES) else 1
