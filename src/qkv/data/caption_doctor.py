"""The caption doctor: decodes every picture once, reads every caption, and says what is wrong with them by name."""

from collections.abc import Callable

import numpy as np

from qkv.data.caption_files import CaptionFiles
from qkv.data.caption_listing import list_captions
from qkv.data.image_doctor import Keep, examine
from qkv.data.image_listing import Example
from qkv.data.image_repeats import across
from qkv.data.notes import KEPT
from qkv.data.report import Report
from qkv.errors import DataError

__all__ = ["examine_all"]


def examine_all(
    data: CaptionFiles, keep: Callable[[str], Keep | None] | None = None, every: bool = False
) -> tuple[Report, dict[str, list[Example]], dict[str, np.ndarray]]:
    """The report, all pictures with their captions, and what was seen of each (`LOOK`), by part.

    Pictures of train that are also held out leave train, whatever their files are called.

    Args:
        keep: given the name of a part, a function that takes the pixels of each of its pictures in order, or None for
            one that cannot be used or is large.
        every: name every file in the report, not only the first few of each kind.
    """
    report = Report(unit="pictures", every=every)
    examples = list_captions(data, report)
    looks = {part: examine(part, some, report, keep(part) if keep else None) for part, some in examples.items()}
    for part, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        if part in looks and other in looks:
            across(part, other, examples, looks, report, drop=part == "train")
    for part, look in looks.items():
        kept = np.flatnonzero(look["state"] == KEPT)
        report.kept[part] = len(kept)
        captions = [caption for i in kept for caption in examples[part][i].label]
        report.remarks.append(f"{part}: {len(captions):,} captions of {len(kept):,} pictures")
        if not len(kept):
            reasons = "; ".join(str(finding) for finding in report.findings if finding.part == part)
            wrong = f"no picture of {part} is left" + (f" ({reasons})" if reasons else "")
            report.refused.append(DataError(wrong, remedy="mend them", file=report.files[part][0]))
    return report, examples, looks
