"""``qkv look`` of a captioner."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb, whole_numbers

__all__ = ["main"]

EXAMPLES = """examples:
  qkv look runs/tell photo.jpg                       # writes look.html, one offline page
  qkv look runs/tell photo.jpg --faithful            # does each word hang on what it looked at?
  qkv look runs/tell photo.jpg --out look.png        # the figure of the paper; look.gif and look.webp play it
  qkv look runs/tell photo.jpg --out look.npz        # heat by word, boxes of the cells; .safetensors is the record
  qkv look runs/tell photo.jpg --caption 'a dog'     # another caption than the model's own
"""


def look(
    run: Path,
    picture: Path,
    out: Path = Path("look.html"),
    layers: str = "*",
    heads: str | None = None,
    caption: str | None = None,
    beam: int | None = None,
    faithful: bool = False,
    cells: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tell about a picture and show what the model looked at while it said each word.

    Args:
        run: the folder of a trained run.
        picture: the picture.
        out: what to write: .html (a page), .png (a sheet), .gif or .webp (an animation), .npz (numbers), .safetensors
            or .json (the record).
        layers: names of the layers to keep, * matching anything.
        heads: heads to keep, such as 0,3.
        caption: look at this caption instead of the model's own.
        beam: hypotheses of the search whose answer is looked at; the run's own setting if not given.
        faithful: also measure for each word whether it hangs on what it looked at: parts of the picture are taken away,
            in that order and in random ones (takes some seconds, with a large encoder a minute).
        cells: draw each cell as a square of one heat, instead of smoothly (sheet and animation).
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from dataclasses import replace

    from qkv.cli.devices import prepare_device
    from qkv.errors import ConfigError
    from qkv.look.told import look_at_picture
    from qkv.look.told_draw import save_look
    from qkv.tasks.load import load

    if caption is not None and not caption.strip():
        raise ConfigError("--caption is empty", expected="a caption to look at")
    captioner = load(run, prepare_device(device, threads))
    how = replace(captioner.search, **({} if beam is None else {"beam": beam}))
    seen = look_at_picture(
        captioner, picture, how=how, caption=caption, faithful=faithful,
        layers=layers, heads=whole_numbers("heads", heads),
    )  # fmt: skip
    save_look(seen, out, smooth=not cells)
    print(seen.notes["caption"] + ("" if seen.notes["ended"] else " [cut off]"))
    if faithful:
        print(seen.notes["faithfulness"]["sentence"])
    print(f"wrote {out}")


def main(argv: Sequence[str]) -> int:
    run_verb(look, "look", argv, EXAMPLES)
    return 0
