"""``qkv regress`` of clips: a row each."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv regress runs/speed clip.gif frames/
  qkv regress runs/speed archive/ --out numbers.csv
"""


def regress(
    run: Path,
    clips: list[str],
    *,
    out: Path | None = None,
    batch: int = 8,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tell the numbers of clips; one that cannot be read gets a marked row.

    Args:
        run: the folder of a trained run.
        clips: folders of frames, animations, videos, and folders of those.
        out: a .csv or .jsonl file to write instead of printing.
        batch: clips at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.tasks.clips_out import answer_clips
    from qkv.tasks.load import load

    answer_clips(load(run, prepare_device(device, threads)), clips, 1, out, batch)


def main(argv: Sequence[str]) -> int:
    run_verb(regress, "regress", argv, EXAMPLES)
    return 0
