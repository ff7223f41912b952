"""``qkv look`` of a run that answers pictures: classes or numbers."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import check_positive, run_verb, whole_numbers

__all__ = ["main"]

LONGEST = 2048  # pixels of a side: each layer of a ViT looks from every patch at every other
EXAMPLES = """examples:
  qkv look runs/birds photo.jpg                              # writes look.html, one offline page
  qkv look runs/birds photo.jpg --out look.png               # the picture, with what it looked at over it; .svg too
  qkv look runs/birds photo.jpg --classes wren,robin         # what these two classes hang on
  qkv look runs/birds photo.jpg --faithful                   # does the answer hang on it? Patches are taken away
  qkv look runs/birds photo.jpg --faithful --by grad-cam     # the same of another map
  qkv look runs/birds photo.jpg --rollout max --discard 0.9  # heads fused by their largest, small weights left out
  qkv look runs/birds photo.jpg --size 384x512               # read at another size than trained
  qkv look runs/birds photo.jpg --out maps.npz --layers 'blocks.11.*' --heads 0,3   # the record; .safetensors too
"""


def look(
    run: Path,
    picture: Path,
    out: Path = Path("look.html"),
    layers: str = "*",
    heads: str | None = None,
    classes: str | None = None,
    top: int = 3,
    rollout: str = "mean",
    residual: float = 0.5,
    discard: float = 0.0,
    size: str | None = None,
    gradient: bool = False,
    faithful: bool = False,
    by: str | None = None,
    samples: int = 49,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Answer a picture and show what every layer and head looked at, and what each class hangs on.

    Args:
        run: the folder of a trained run.
        picture: the file.
        out: what to write: .html (a page), .svg or .png (a picture), .safetensors, .npz or .json (the record).
        layers: names of the layers whose maps are kept, * matching anything.
        heads: heads to keep, such as 0,3.
        classes: explain these classes, such as cat,dog, and the first of them above all.
        top: how many of the likeliest classes to explain.
        rollout: how heads are fused in the rollout: mean, max, min; none leaves it out.
        residual: the share of its own stream that each position keeps in the rollout.
        discard: the share of each row's weights that the rollout leaves out, the smallest first.
        size: read the picture at this height and width in pixels, such as 384 or 384x512, instead of the run's own.
        gradient: what each class hangs on by its gradient is always shown, with this or without.
        faithful: also measure whether the answer hangs on what was pointed at: patches are taken away, in that order
            and in random ones (takes some seconds, for large models minutes).
        by: what points: rollout, gradient-rollout, grad-cam, gradient or the name of a layer; the rollout, or grad-cam
            where there is none, if not given.
        samples: random orders to compare with.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.look.pictures import look_at
    from qkv.tasks.load import load

    check_positive(top=top, samples=samples)
    seen = look_at(
        load(run, prepare_device(device, threads)),
        picture,
        layers=layers,
        heads=whole_numbers("heads", heads),
        classes=[name.strip() for name in classes.split(",")] if classes else (),
        top=top,
        rollout=rollout,
        residual=residual,
        discard=discard,
        size=height_and_width(size),
        faithful=faithful,
        by=by,
        samples=samples,
    )
    seen.save(out)
    answer = seen.notes["answer"]
    for found in answer.get("top", []):
        print(f"{found['probability']:.3f}  {found['name']}")
    if "value" in answer:
        print(answer["value"])
    if "remark" in seen.notes:
        print(seen.notes["remark"])
    if faithful:
        print(seen.notes["faithfulness"]["sentence"])
    print(f"wrote {out}: {len(seen)} {'map' if len(seen) == 1 else 'maps'}")


def height_and_width(text: str | None) -> tuple[int, int] | None:
    """``"384"`` or ``"384x512"`` as a height and a width; None if it was not given."""
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if not 1 <= len(sides) <= 2 or not all(side.strip().isdecimal() and 0 < int(side) <= LONGEST for side in sides):
        from qkv.errors import ConfigError

        raise ConfigError(
            f"--size is {text!r}",
            expected=f"pixels, such as 384 or 384x512 (height x width), {LONGEST} a side at most",
        )
    return int(sides[0]), int(sides[-1])


def main(argv: Sequence[str]) -> int:
    run_verb(look, "look", argv, EXAMPLES)
    return 0
