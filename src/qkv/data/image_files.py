"""The user's labelled pictures: where they are and how to read them (`ImageFiles`), and what is wrong with them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qkv.errors import refuse_wrong

if TYPE_CHECKING:  # the command line reads ImageFiles for its flags and must start without torch and numpy
    from qkv.data.report import Report

__all__ = ["Augment", "ImageFiles", "Interpolation", "check"]

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]


@dataclass(frozen=True)
class Augment:
    """How training pictures are changed; held-out ones never are.

    Args:
        scale: smallest share of the area that a random resized crop keeps (Szegedy et al. 2015); 1 is the centre crop.
        ratio: most that the crop is wider than high, or higher than wide.
        shift: most pixels by which the picture is moved each way, its border mirrored; for small pictures.
        flip: chance of left and right changing places.
        randaugment: operations drawn for each picture (Cubuk et al. 2020); 0 is none.
        magnitude: how strong they are, from 0 to 10.
        erasing: chance that a rectangle is replaced by noise (Zhong et al. 2020).
        mixup: the alpha of Mixup (Zhang et al. 2018), for the whole batch; 0 is none.
        cutmix: the alpha of CutMix (Yun et al. 2019); with mixup, each batch draws one of the two.
        mixed: share of the batches that are mixed.
    """

    scale: float = 0.5
    ratio: float = 4 / 3
    shift: int = 0
    flip: float = 0.5
    randaugment: int = 0
    magnitude: float = 9.0
    erasing: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mixed: float = 1.0

    def __post_init__(self):
        refuse_wrong(
            "data.augment",
            (not 0 < self.scale <= 1, "scale", self.scale, "more than 0, at most 1"),
            (self.ratio < 1, "ratio", self.ratio, "1 or more"),
            (self.shift < 0, "shift", self.shift, "0 or more"),
            (not 0 <= self.flip <= 1, "flip", self.flip, "a chance: from 0 to 1"),
            (self.randaugment < 0, "randaugment", self.randaugment, "0 or more"),
            (not 0 <= self.magnitude <= 10, "magnitude", self.magnitude, "from 0 to 10"),
            (not 0 <= self.erasing <= 1, "erasing", self.erasing, "a chance: from 0 to 1"),
            (self.mixup < 0, "mixup", self.mixup, "0 or more"),
            (self.cutmix < 0, "cutmix", self.cutmix, "0 or more"),
            (not 0 <= self.mixed <= 1, "mixed", self.mixed, "a share: from 0 to 1"),
        )


@dataclass(frozen=True)
class ImageFiles:
    """Which pictures to learn from, and how to read them.

    Args:
        folder: a folder of class folders, or of train, val (dev, valid, validation) and test with class folders in
            each; a .zip or .tar (.tar.gz ...) of such a folder; a .csv, .tsv, .jsonl or .parquet file of paths and
            labels, or a folder that holds one; or the name of a dataset (NAME or NAME:CONFIG).
        train: where the training pictures are, if not in ``folder``: a folder of class folders, an archive, a table.
        dev: held-out pictures that choose the best weights; without any, some of train are held out.
        test: pictures that training must not see; those that are also in train are dropped from train.
        labels: one class a picture, any number of classes a picture (several), or a number.
        path: column of a table that holds the path; by default path, file, filename, file_name or image.
        label: column that holds the label; by default label, labels, class, category or target.
        separator: what stands between several labels in one field of a .csv or .tsv.
        hold_out: share of train that is held out where no dev is named, of each class alike.
        keep_duplicates: keep pictures of train that occur more than once.
        size: height and width in pixels of what the model reads; 0 chooses by the pictures.
        crop: share of the shorter side that the centre crop of evaluation keeps.
        mean: of red, green and blue from 0 to 1; null measures train.
        std: deviation of red, green and blue; null measures train.
        interpolation: how pixels between pixels are made.
        antialias: average over what a pixel covers when a picture is made smaller.
        batch: pictures of a batch.
        keep_mb: most megabytes of decoded pictures kept in the run's folder; what is large or does not fit is decoded
            anew each time.
        augment: how training pictures are changed.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    labels: Literal["class", "several", "number"] = "class"
    path: str = ""
    label: str = ""
    separator: str = "|"
    hold_out: float = 0.1
    keep_duplicates: bool = False
    size: int = 0
    crop: float = 1.0
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    interpolation: Interpolation = "bicubic"
    antialias: bool = True
    batch: int = 64
    keep_mb: int = 4096
    augment: Augment = Augment()

    def __post_init__(self):
        refuse_wrong(
            "data",
            (self.labels not in ("class", "several", "number"), "labels", self.labels, "class, several or number"),
            (not self.separator, "separator", repr(self.separator), "at least one character"),
            (not 0 < self.hold_out < 1, "hold_out", self.hold_out, "more than 0, less than 1"),
            (self.size < 0, "size", self.size, "0 or more"),
            (not 0 < self.crop <= 1, "crop", self.crop, "more than 0, at most 1"),
            (self.batch < 1, "batch", self.batch, "1 or more"),
            (self.keep_mb < 0, "keep_mb", self.keep_mb, "0 or more"),
        )


def check(data: ImageFiles, every: bool = False) -> "Report":
    """The picture doctor: decode all once and report. Nothing is written; ``refused`` says what forbids training.

    Args:
        every: name every file, not only the first few of each kind.

    Raises:
        DataError, ConfigError: files are missing, so that there is nothing to check.
    """
    from qkv.data.image_doctor import examine_all

    with tempfile.TemporaryDirectory(prefix="qkv-check-") as scratch:
        report, _, _ = examine_all(data, Path(scratch), every=every)
    return report
