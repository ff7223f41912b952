"""``qkv classify`` of clips: a row each."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv classify runs/scenes clip.gif
  qkv classify runs/scenes frames/ clip.mp4 more/ --top 2     # a folder of frames is one clip
  qkv classify runs/scenes archive/ --out classes.csv         # stopped or killed: give it again, and it goes on
  qkv classify runs/scenes archive/ --out classes.jsonl       # with the class of each frame
exit code: 0 where every clip was answered, 1 where some could not be read (they are marked), 2 for a mistake
"""


def classify(
    run: Path,
    clips: list[str],
    *,
    top: int | None = None,
    out: Path | None = None,
    json: bool = False,
    batch: int = 8,
    device: str | None = None,
    threads: int | None = None,
) -> bool:
    """Tell the classes of clips and their marked frames; one that cannot be read gets a marked row.

    Args:
        run: the folder of a trained run.
        clips: folders of frames, animations, videos, and folders of those; - reads their names from standard input.
        top: likeliest classes to tell of a clip: 3 on the terminal and all in a .jsonl if not given. A .csv has a
            column for each class.
        out: a .csv or .jsonl file to write instead of printing; until it is whole it is called OUT.partial.
        json: print lines of JSON.
        batch: clips at a time.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.answers import answer_all
    from qkv.cli.devices import prepare_device
    from qkv.tasks.load import load

    return answer_all("clips", load(run, prepare_device(device, threads)), clips, top, out, batch, json)


def main(argv: Sequence[str]) -> int:
    return 0 if run_verb(classify, "classify", argv, EXAMPLES) else 1
