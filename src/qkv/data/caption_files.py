"""The user's pictures with captions: where they are and how to read them (`CaptionFiles`), and what is wrong there."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from qkv.data.image_files import Augment, Interpolation
from qkv.errors import refuse_wrong

if TYPE_CHECKING:  # the command line reads CaptionFiles for its flags and must start without torch and numpy
    from qkv.data.report import Report

__all__ = ["CaptionFiles", "check"]


@dataclass(frozen=True)
class CaptionFiles:
    """Which pictures and captions to learn from, and how to read them.

    Args:
        folder: a .jsonl, .csv, .tsv or .parquet file of paths and captions, a .json file of COCO annotations, or a
            folder with train, dev (val, valid, validation) and test of these.
        train: where the training captions are, if not in ``folder``.
        dev: held-out captions that choose the best weights; without any, some pictures of train are held out.
        test: captions that training must not see; pictures that are also in train are dropped from train.
        path: column that holds the path, or a list of paths; by default path, file, filename, file_name or image.
        caption: column that holds the caption, or a list of captions; by default caption, captions, text or sentence.
        images: folder that paths are in, if it is not the table's own.
        hold_out: share of the pictures of train that is held out where no dev is named.
        max_length: most pieces of a caption; longer ones are dropped.
        vocabulary: what captions are cut into: word, bpe, unigram or character.
        words: pieces of the vocabulary; 0 chooses by the number of captions.
        lowercase: capitals mean nothing.
        size: height and width in pixels of what the model reads; 0 chooses by the pictures, or as the encoder's run has
            it.
        crop: share of the shorter side that the centre crop of evaluation keeps.
        mean: of red, green and blue from 0 to 1; null measures train.
        std: deviation of red, green and blue; null measures train.
        interpolation: how pixels between pixels are made.
        antialias: average over what a pixel covers when a picture is made smaller.
        batch: captions of a batch.
        keep_mb: most megabytes of decoded pictures kept in the run's folder; what is large or does not fit is decoded
            anew each time.
        augment: how training pictures are changed. Not at all, if nothing is said: a mirrored picture makes a lie of
            "left", and features that are computed once are of the picture as it is.
    """

    folder: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    path: str = ""
    caption: str = ""
    images: str = ""
    hold_out: float = 0.05
    max_length: int = 64
    vocabulary: Literal["word", "bpe", "unigram", "character"] = "word"
    words: int = 0
    lowercase: bool = True
    size: int = 0
    crop: float = 1.0
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    interpolation: Interpolation = "bicubic"
    antialias: bool = True
    batch: int = 64
    keep_mb: int = 4096
    augment: Augment = field(default_factory=lambda: Augment(scale=1.0, flip=0.0))

    def __post_init__(self):
        refuse_wrong(
            "data",
            (not 0 < self.hold_out < 1, "hold_out", self.hold_out, "more than 0, less than 1"),
            (self.max_length < 1, "max_length", self.max_length, "1 or more"),
            (self.words < 0, "words", self.words, "0 or more"),
            (self.size < 0, "size", self.size, "0 or more"),
            (not 0 < self.crop <= 1, "crop", self.crop, "more than 0, at most 1"),
            (self.batch < 1, "batch", self.batch, "1 or more"),
            (self.keep_mb < 0, "keep_mb", self.keep_mb, "0 or more"),
            (
                bool(self.augment.mixup or self.augment.cutmix),
                "augment",
                "a mixture",
                "one picture for one caption",
            ),
        )


def check(data: CaptionFiles, every: bool = False) -> "Report":
    """The caption doctor: decode all pictures and read all captions once, and report. Nothing is written.

    Args:
        every: name every picture and caption, not only the first few of each kind.

    Raises:
        DataError, ConfigError: files are missing, so that there is nothing to check.
    """
    from qkv.data.caption_doctor import examine_all

    report, _, _ = examine_all(data, every=every)
    return report
