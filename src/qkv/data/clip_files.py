"""The user's labelled clips: where they are and how to read them (`ClipFiles`), and what is wrong with them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qkv.data.image_files import Interpolation
from qkv.errors import refuse_wrong

if TYPE_CHECKING:  # the command line reads ClipFiles for its flags and must start without torch and numpy
    from qkv.data.report import Report

__all__ = ["ClipFiles", "check"]


@dataclass(frozen=True)
class ClipFiles:
    """Which clips to learn from, and how to read them.

    A clip is a folder of pictures, one a frame; an animated GIF, WebP or APNG; or a video file.

    Args:
        folder: a folder of class folders with clips in each, or of train, val (dev, valid, validation) and test with
            class folders in each; a .zip or .tar (.tar.gz ...) of such a folder; a .csv, .tsv, .jsonl or .parquet file
            of paths and labels, or a folder that holds one; or the name of a dataset (NAME or NAME:CONFIG).
        train: where the training clips are, if not in ``folder``: a folder of class folders, an archive, a table.
        dev: held-out clips that choose the best weights; without any, some of train are held out.
        test: clips that training must not see; those that are also in train are dropped from train.
        labels: one class a clip, or a number.
        path: column of a table that holds the path; by default path, file, filename, clip or video.
        label: column that holds the label; by default label, labels, class, category or target.
        hold_out: share of train that is held out where no dev is named, of each class alike.
        keep_duplicates: keep clips of train that occur more than once.
        frames: frames that the model reads of a clip, evenly spread over it; a shorter clip is read whole.
        rate: frames a second of clips that are folders of pictures, which do not say; 1 counts frames as seconds.
        size: height and width in pixels of what the model reads; 0 chooses by the frames.
        crop: share of the shorter side that the centre crop of a frame keeps.
        mean: of red, green and blue from 0 to 1; null measures train.
        std: deviation of red, green and blue; null measures train.
        interpolation: how pixels between pixels are made.
        antialias: average over what a pixel covers when a frame is made smaller.
        batch: clips of a batch.
        keep_mb: most megabytes of decoded frames kept in the run's folder; what does not fit is decoded anew each time.
        shift: most pixels by which a training clip is moved each way, all frames alike, its border mirrored.
        flip: chance of left and right changing places in a training clip; for clips where they mean nothing.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    labels: Literal["class", "number"] = "class"
    path: str = ""
    label: str = ""
    hold_out: float = 0.1
    keep_duplicates: bool = False
    frames: int = 16
    rate: float = 1.0
    size: int = 0
    crop: float = 1.0
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    interpolation: Interpolation = "bicubic"
    antialias: bool = True
    batch: int = 16
    keep_mb: int = 4096
    shift: int = 0
    flip: float = 0.0

    def __post_init__(self):
        refuse_wrong(
            "data",
            (self.labels not in ("class", "number"), "labels", self.labels, "class or number"),
            (not 0 < self.hold_out < 1, "hold_out", self.hold_out, "more than 0, less than 1"),
            (self.frames < 1, "frames", self.frames, "1 or more"),
            (not 0 < self.rate <= 1e4, "rate", self.rate, "frames a second, more than 0"),
            (self.size < 0, "size", self.size, "0 or more"),
            (not 0 < self.crop <= 1, "crop", self.crop, "more than 0, at most 1"),
            (self.batch < 1, "batch", self.batch, "1 or more"),
            (self.keep_mb < 0, "keep_mb", self.keep_mb, "0 or more"),
            (self.shift < 0, "shift", self.shift, "0 or more"),
            (not 0 <= self.flip <= 1, "flip", self.flip, "a chance: from 0 to 1"),
        )


def check(data: ClipFiles, every: bool = False) -> "Report":
    """The clip doctor: decode every frame once and report. Nothing is written; ``refused`` says what forbids training.

    Args:
        every: name every clip, not only the first few of each kind.

    Raises:
        DataError, ConfigError: files are missing, so that there is nothing to check.
    """
    from qkv.data.clip_doctor import examine_all

    with tempfile.TemporaryDirectory(prefix="qkv-check-") as scratch:
        report, _ = examine_all(data, Path(scratch), every=every)
    return report
