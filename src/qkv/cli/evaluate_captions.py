"""``qkv evaluate`` of a captioner."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv evaluate runs/tell --data test.jsonl
  qkv evaluate runs/tell --data photos/ --part test --beam 5 --output told.jsonl
  qkv evaluate runs/tell --data table.jsonl --path images --caption ko
"""


def evaluate(
    run: Path,
    *,
    data: str,
    part: Literal["", "train", "dev", "test"] = "",
    path: str = "",
    caption: str = "",
    images: str = "",
    beam: int | None = None,
    length_penalty: float | None = None,
    output: Path | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tell about a test set and score it: BLEU-1 to 4, ROUGE-L, CIDEr-D and chrF, each with its signature.

    Args:
        run: the folder of a trained run.
        data: a table of paths and captions, COCO annotations, or a folder of these.
        part: train, dev or test; test if there is one, else all that there is.
        path: column of a table that holds the path.
        caption: column of a table that holds the caption.
        images: folder that paths are in, if it is not the table's own.
        beam: hypotheses kept a picture; the run's own setting if not given.
        length_penalty: alpha of the run's length-penalty rule.
        output: also write the captions here, beside their references.
        json: print JSON.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from dataclasses import replace

    from qkv.cli.devices import prepare_device
    from qkv.data.caption_files import CaptionFiles
    from qkv.tasks.evaluate_captions import evaluate_captions
    from qkv.tasks.load import load

    captioner = load(run, prepare_device(device, threads))
    asked = {"beam": beam, "length_penalty": length_penalty}
    how = replace(captioner.search, **{key: value for key, value in asked.items() if value is not None})
    files = CaptionFiles(folder=data, path=path, caption=caption, images=images)
    result = evaluate_captions(captioner, files, part, how, output)
    print(result.to_json() if json else result)


def main(argv: Sequence[str]) -> int:
    run_verb(evaluate, "evaluate", argv, EXAMPLES)
    return 0
