"""``qkv look`` of a model of clips."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb, whole_numbers

__all__ = ["main"]

EXAMPLES = """examples:
  qkv look runs/scenes clip.gif                          # writes film.html, one offline page
  qkv look runs/scenes frames/ --out film.png            # the strip, by the rollout of all blocks; .svg too
  qkv look runs/scenes clip.mp4 --out film.svg --layer 1 --head 0
  qkv look runs/scenes clip.gif --out film.safetensors   # the record itself; .json too
  qkv look runs/scenes clip.gif --layers '*' --out all.safetensors   # inside each frame too
"""


def look(
    run: Path,
    clip: Path,
    out: Path = Path("film.html"),
    layer: str = "",
    head: int | None = None,
    layers: str = "blocks.*",
    heads: str | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Show a clip as a film strip: what the model says of it and of each frame, and which frames it looked at.

    Args:
        run: the folder of a trained run.
        clip: a folder of frames, an animation or a video file.
        out: what to write: .html (a page), .svg or .png (a strip), .safetensors or .json (the record).
        layer: what a picture's strip shows: a block over frames by its number from 0, last, or rollout (what all blocks
            come to, if not given).
        head: of that block; the mean over heads if not given.
        layers: names of the layers to keep in the record, * matching anything.
        heads: heads to keep, such as 0,3.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.tasks.load import load

    classifier = load(run, prepare_device(device, threads))
    seen = classifier.look(clip, layers, heads=whole_numbers("heads", heads))
    if out.suffix in (".svg", ".png"):
        from qkv.look.film_draw import draw_film

        draw_film(seen, out, layer, head)
    else:
        seen.save(out)
    print(classifier(clip))
    print(f"wrote {out}: {len(seen)} {'layer' if len(seen) == 1 else 'layers'}")


def main(argv: Sequence[str]) -> int:
    run_verb(look, "look", argv, EXAMPLES)
    return 0
