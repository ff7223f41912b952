"""``qkv classify`` of clips: a row each."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv classify runs/scenes clip.gif
  qkv classify runs/scenes frames/ clip.mp4 more/ --top 2     # a folder of frames is one clip
  qkv classify runs/scenes archive/ --out classes.csv         # .jsonl too, with the class of each frame
"""


def classify(
    run: Path,
    clips: list[str],
    *,
    top: int = 3,
    out: Path | None = None,
    batch: int = 8,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tell the classes of clips and their marked frames; one that cannot be read gets a marked row.

    Args:
        run: the folder of a trained run.
        clips: folders of frames, animations, videos, and folders of those.
        top: likeliest classes to tell of a clip on the terminal.
        out: a .csv or .jsonl file to write instead of printing.
        batch: clips at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.tasks.clips_out import answer_clips
    from qkv.tasks.load import load

    answer_clips(load(run, prepare_device(device, threads)), clips, top, out, batch)


def main(argv: Sequence[str]) -> int:
    run_verb(classify, "classify", argv, EXAMPLES)
    return 0
