"""The pictures of the study of inductive biases: one size, one split; as they are, and with their pixels rearranged.

Tolstikhin et al. 2021 (section 3.3) ask what a model loses when all pictures, of training and test, are rearranged by
one and the same permutation: of patches and of the pixels inside them, or of all pixels. What loses nothing was not
told what is near what.
"""

import csv
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import list_examples
from qkv.data.image_split import hold_out
from qkv.data.pictures import PictureError, decode
from qkv.data.preprocess import Preprocess
from qkv.data.report import Report
from qkv.data.shapes import MARKS, shapes
from qkv.errors import ConfigError, DataError
from qkv.store import new_folder

__all__ = ["ORDERS", "lay_out", "rearrangement", "subset"]

ORDERS = ("plain", "patches", "pixels")
DRAWN = {"dev": 300, "test": 600}  # drawn pictures beside those of training
TEST = 0.2  # share of train that is held out as test, where the user names none
DEV = 0.1

Pixels = UInt8[np.ndarray, "row column 3"]


def lay_out(data: ImageFiles | None, folder: Path, size: int, most: int, seed: int = 0) -> None:
    """Write ``folder/ORDER/PART/CLASS/NUMBER.png`` once, and ``ORDER/PART.csv`` that name them.

    Args:
        data: the user's pictures; drawn shapes if None.
        size: height and width in pixels.
        most: pictures of training that are needed.

    Raises:
        DataError: there are fewer.
    """
    if (folder / "about.json").is_file():
        return
    with new_folder(folder) as partial:
        orders = {order: rearrangement(order, size, seed) for order in ORDERS}
        counts = dict.fromkeys(("train", "dev", "test"), 0)
        tables = {(order, part): [("path", "label")] for order in ORDERS for part in counts}
        for part, label, pixels in _drawn(size, most, seed) if data is None else _users(data, size):
            name = Path(part) / label / f"{counts[part]:06}.png"
            for order, rearranged in orders.items():
                file = partial / order / name
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(rearranged(pixels)).save(file)
                tables[order, part].append((str(name), label))
            counts[part] += 1
        if counts["train"] < most:
            raise DataError(
                f"there are {counts['train']:,} pictures to train on, and the study asks for {most:,}",
                remedy="ask for fewer with --pictures",
            )
        for (order, part), rows in tables.items():
            _write(partial / order / f"{part}.csv", rows)
        (partial / "about.json").write_text(json.dumps({"size": size, "pictures": counts}) + "\n", encoding="utf-8")


def subset(folder: Path, order: str, pictures: int, seed: int) -> Path:
    """A table of so many pictures of train, of each class alike; those of fewer pictures are among those of more."""
    file = folder / order / f"train-{pictures}-{seed}.csv"
    if not file.exists():
        with open(folder / order / "train.csv", encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))[1:]
        classes: dict[str, list[list[str]]] = {}
        for row in rows:
            classes.setdefault(row[1], []).append(row)
        chance = np.random.default_rng(seed)
        turns = [[rows[i] for i in chance.permutation(len(rows))] for _, rows in sorted(classes.items())]
        longest = max(map(len, turns))
        in_turn = [rows[i] for i in range(longest) for rows in turns if i < len(rows)]
        _write(file, [("path", "label"), *in_turn[:pictures]])
    return file


def rearrangement(order: str, size: int, seed: int) -> Callable[[Pixels], Pixels]:
    """The same for every picture: of nothing, of patches and of the pixels inside them, or of all pixels."""
    chance, patch = np.random.default_rng((seed, 7)), size // 8
    if order == "plain":
        return lambda pixels: pixels
    if order == "pixels":
        everywhere = chance.permutation(size * size)
        return lambda pixels: pixels.reshape(-1, 3)[everywhere].reshape(pixels.shape)
    patches, inside = chance.permutation(64), chance.permutation(patch * patch)

    def rearranged(pixels: Pixels) -> Pixels:
        cut = pixels.reshape(8, patch, 8, patch, 3).transpose(0, 2, 1, 3, 4).reshape(64, patch * patch, 3)
        cut = cut[patches][:, inside].reshape(8, 8, patch, patch, 3)
        return cut.transpose(0, 2, 1, 3, 4).reshape(pixels.shape)

    return rearranged


def _drawn(size: int, most: int, seed: int) -> Iterator[tuple[str, str, Pixels]]:
    drawing = shapes(seed, size=size, patch=max(8, size // 4))
    for part, count in {"train": most, **DRAWN}.items():
        for shape in islice(drawing, count):
            yield part, MARKS[shape.label], shape.pixels


def _users(data: ImageFiles, size: int) -> Iterator[tuple[str, str, Pixels]]:
    """The user's pictures of every part; test and dev are held out of train, by content, where there are none."""
    preprocess = Preprocess((size, size), interpolation=data.interpolation, antialias=data.antialias)
    with tempfile.TemporaryDirectory(prefix="qkv-study-") as scratch:
        examples = list_examples(data, Path(scratch), Report(unit="pictures"))
        for part, some in examples.items():
            if any(not isinstance(example.label, str) for example in some):
                raise ConfigError("the study is of one class a picture", remedy="choose pictures with one label each")
            shown = list(_shown(some, preprocess))
            labels = [label for label, _ in shown]
            parts = [part] * len(shown)
            if part == "train":
                content = np.array([_content(pixels) for _, pixels in shown], np.uint64)
                for missing, share in (("test", TEST), ("dev", DEV)):
                    if missing not in examples:
                        kept = [i for i, own in enumerate(parts) if own == "train"]
                        for i in np.flatnonzero(hold_out(content[kept], [labels[i] for i in kept], share)):
                            parts[kept[i]] = missing
            yield from ((own, label, pixels) for own, (label, pixels) in zip(parts, shown, strict=True))


def _shown(examples: Iterable, preprocess: Preprocess) -> Iterator[tuple[str, Pixels]]:
    for example in examples:
        try:
            yield example.label, preprocess.shown(decode(example.read(), example.where).pixels)
        except PictureError:  # `qkv check` names them
            continue


def _content(pixels: Pixels) -> int:
    return int.from_bytes(hashlib.blake2b(pixels.tobytes(), digest_size=8).digest(), "little")


def _write(file: Path, rows: Iterable[Iterable[str]]) -> None:
    with open(file, "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(rows)
