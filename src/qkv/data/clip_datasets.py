"""Labelled clips of a dataset that the `datasets` library knows by name: columns of videos, or of lists of pictures."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from qkv.data.clip_files import ClipFiles
from qkv.data.clip_listing import FRAMES, NO_LABEL, PATH, ClipExample, as_clip_label
from qkv.data.clip_sources import File, Frame, Video
from qkv.data.image_datasets import Records, columns_of, labels_of, parts_of_dataset
from qkv.data.image_tables import choose
from qkv.data.pictures import decode
from qkv.data.report import Report

__all__ = ["open_dataset"]


@dataclass(frozen=True)
class FrameList:
    """A record with a list of encoded pictures, one a frame; it is read anew each time."""

    path: Path
    rate: float
    dataset: Any
    column: str
    row: int

    @cached_property
    def times(self) -> list[float]:
        return [round(number / self.rate, 6) for number in range(len(self._record()))]

    def frames(self, wanted: Collection[int]) -> Iterator[Frame]:
        files = list(self.files())
        for number in sorted(wanted):
            yield decode(files[number].read(), files[number].where).pixels

    def files(self) -> Iterator[File]:
        record = [{self.column: frame} for frame in self._record()]
        reader = Records(record, self.column, str(self.path))
        yield from (File(f"{self.path}:{number + 1}", reader, number) for number in range(len(record)))

    def _record(self) -> list[dict]:
        return self.dataset[self.row][self.column] or []


def open_dataset(where: str, part: str | None, data: ClipFiles, report: Report) -> dict[str, list[ClipExample]]:
    """The clips of a dataset, NAME or NAME:CONFIG: of one part, or of all that it has.

    Raises:
        DataError: it cannot be loaded, or has no column of clips, or none of labels.
    """
    return {own: _examples(some, name, own, data, report) for own, name, some in parts_of_dataset(where, part)}


def _examples(dataset: Any, where: str, part: str, data: ClipFiles, report: Report) -> list[ClipExample]:
    import datasets

    def fits(kind: Any) -> bool:
        return isinstance(kind, datasets.Video) or isinstance(getattr(kind, "feature", None), datasets.Image)

    column, label = columns_of(dataset, where, fits, ((*PATH, *FRAMES), data.path), data.label, "clips")
    video = isinstance(dataset.features[column], datasets.Video)
    encoded = datasets.Video(decode=False) if video else datasets.List(datasets.Image(decode=False))
    records = dataset.cast_column(column, encoded)
    marks = choose([name for name in dataset.features if name not in (column, label)], FRAMES)
    told = dataset[marks] if marks else [None] * len(dataset)
    examples = []
    for row, (value, frames) in enumerate(zip(labels_of(dataset, label), told, strict=True)):
        path, known = Path(f"{where}:{row + 1}"), as_clip_label(value, data)
        if known is None:
            report.add(part, NO_LABEL, "dropped", f"{path}: {label} is {value!r}")
            continue
        if video:
            clip = Video(path, File(str(path), Records(records, column, where), row))
        else:
            clip = FrameList(path, data.rate, records, column, row)
        examples.append(ClipExample(str(row + 1), str(path), known, clip, frames or None))
    return examples
