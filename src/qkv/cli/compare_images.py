"""``qkv compare images``: models that were told more or less of what pictures are, side by side."""

from collections.abc import Sequence
from dataclasses import replace

from qkv.cli.table import print_table
from qkv.cli.verb import whole_number, whole_numbers
from qkv.errors import ConfigError

__all__ = ["main"]

EXAMPLES = """usage: qkv compare images --data PHOTOS|shapes --out STUDY [...]

What a model is told of pictures, and what it must learn from them: a CNN, the same with attention between its stages
or in place of its convolutions, Swin, MLP-Mixer and ViT. All have about as many parameters, make the same number of
steps and see no augmentation. Each learns from few pictures and from many; from pictures whose patches, or all of whose
pixels, are rearranged, in training and test alike; and is tested on moved ones. Writes study.html, results.csv, and the
charts as .svg and .png.

  --data WHAT         your labelled pictures, as `qkv train classify` takes them (also with --data.train, --data.test,
                      --data.path ...); or shapes, which are drawn (shapes)
  --models NAMES      which, with commas between: resnet,resnet-attention,local-attention,swin,mixer,vit (these), and
                      pixels, a ViT with every pixel a token, which takes its time
  --pictures NUMBERS  how many to train on, with commas between (300,1000,3000)
  --side PIXELS       height and width of the pictures, a multiple of 16 (32)
  --seeds N           how many times each is trained (1)

Any option of `qkv train classify` may follow: optimiser, budget (--loop.steps 600), batches, seed.

examples:
  qkv compare images --data shapes --out study --loop.steps 300
  qkv compare images --data photos/ --out study --models resnet,vit --pictures 500,5000 --seeds 3
The same command goes on where it was stopped, and trains only what is not there yet.
"""
NO_AUGMENTATION = ("scale=1", "shift=0", "flip=0", "randaugment=0", "erasing=0", "mixup=0", "cutmix=0")
OWN = ("data", "models", "pictures", "side", "seeds", "out")
# Where the user's pictures are and how their tables are read: the study has tables of its own.
WHERE = ("train", "dev", "test", "path", "label", "labels", "separator", "hold_out")


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if not words or "--help" in words or "-h" in words:
        print(EXAMPLES, end="")
        return 0
    from qkv.train.options import from_flags, take

    own = {name: take(words, f"--{name}") for name in OWN}
    where = [f"--data.{key}={value}" for key in WHERE if (value := take(words, f"--data.{key}")) is not None]
    side, seeds = whole_number("side", own["side"], 32), whole_number("seeds", own["seeds"], 1)
    counts = whole_numbers("pictures", own["pictures"]) or [300, 1000, 3000]
    if side % 16 or min(counts) < 1:
        wrong = f"--side is {side}" if side % 16 else f"--pictures has {min(counts)}"
        raise ConfigError(wrong, expected="a multiple of 16" if side % 16 else "whole numbers from 1")
    if not own["out"]:
        raise ConfigError("--out is missing", expected="the study's folder")

    from pathlib import Path

    from qkv.studies.bias import chosen, compare
    from qkv.studies.bias_data import lay_out
    from qkv.studies.bias_report import rows, write_report

    names, out = chosen(own["models"]), Path(own["out"])
    flags = ["classify", "--kind", "pictures", "--model", "resnet", "--out", own["out"], "--loop.steps", "600"]
    flags += [f"--data.augment.{setting}" for setting in NO_AUGMENTATION]
    if own["data"] == "shapes" and where:
        raise ConfigError(f"--data is shapes, which are drawn, and {where[0]} is given too", remedy="leave one out")
    where += [f"--data={own['data']}"] if own["data"] not in (None, "shapes") else []
    users = from_flags([*flags, *where, *words]).data if where else None
    lay_out(users, out / "data", side, max(counts))
    plain = out / "data" / "plain"
    tables = ["--data.train", str(plain / "train.csv"), "--data.dev", str(plain / "dev.csv")]
    run = from_flags([*flags, *tables, *words])
    study = compare(replace(run, init=None), names, counts, side, seeds)
    if study.results:
        print_table(rows(study))
        print(f"see it all: {write_report(study)}")
    if study.interrupted:
        print("stopped; the same command goes on from here")
    return 130 if study.interrupted else 0
