"""Labelled pictures of a dataset that the `datasets` library knows by name."""

from collections.abc import Callable, Iterator
from typing import Any

from qkv.data.formats import SPLITS, load_dataset, part_of
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import NO_LABEL, Example, as_label
from qkv.data.image_tables import LABEL, PATH, choose
from qkv.data.pictures import UNREADABLE, PictureError, read_file
from qkv.data.report import Report
from qkv.errors import DataError

__all__ = ["Records", "columns_of", "labels_of", "open_dataset", "parts_of_dataset"]


class Records:
    """Reads the encoded picture, or video, of a record; pixels are decoded by us, as everywhere."""

    def __init__(self, dataset: Any, column: str, where: str):
        self.dataset, self.column, self.where = dataset, column, where

    def read(self, key: int) -> bytes:
        picture = self.dataset[key][self.column] or {}
        if picture.get("bytes"):
            return picture["bytes"]
        if picture.get("path"):
            return read_file(picture["path"])
        raise PictureError(UNREADABLE, "the record holds no picture", file=f"{self.where}:{key + 1}")


def open_dataset(where: str, part: str | None, data: ImageFiles, report: Report) -> dict[str, list[Example]]:
    """The pictures of a dataset, NAME or NAME:CONFIG: of one part, or of all that it has.

    Raises:
        DataError: it cannot be loaded, or has no column of pictures, or none of labels.
    """
    return {own: _examples(dataset, name, own, data, report) for own, name, dataset in parts_of_dataset(where, part)}


def parts_of_dataset(where: str, part: str | None) -> Iterator[tuple[str, str, Any]]:
    """The parts of a dataset, or the one that is asked for: what it is, what messages call it, its records.

    Raises:
        DataError: it cannot be loaded, or has not the part.
    """
    remedy = "name a folder of class folders, an archive, a table, or a dataset"
    loaded = load_dataset(where, f"there is no file or folder {where}", remedy)
    for own in [part] if part else list(SPLITS):
        split = part_of(loaded, own)
        if split is not None:
            yield own, f"{where} ({split})", loaded[split]
        elif part:
            raise DataError(f"the dataset has no part {SPLITS[own]!r}", expected=", ".join(loaded), file=where)


def columns_of(
    dataset: Any, where: str, fits: Callable[[Any], bool], path: tuple[str, str], label: str, unit: str
) -> tuple[str, str]:
    """Which columns hold the examples (of a kind that fits) and which the labels.

    Args:
        path: usual names of the first, and the one that is asked for.
        label: the one that is asked for, of the labels.

    Raises:
        DataError: it is not clear.
    """
    some = [name for name, kind in dataset.features.items() if fits(kind)]
    column = choose(some, *path) or (some[0] if len(some) == 1 else None)
    labels = choose([name for name in dataset.features if name != column], LABEL, label)
    if column is None or labels is None:
        missing, option = (unit, "path") if column is None else ("labels", "label")
        columns = ", ".join(dataset.features)
        raise DataError(
            f"it is not clear which of the columns {columns} holds {missing}",
            remedy=f"say --data.{option} NAME",
            file=where,
        )
    return column, labels


def labels_of(dataset: Any, column: str) -> Iterator[Any]:
    """The labels of all records; classes by their names, and None where one is not known."""
    import datasets

    kind = dataset.features[column]
    kind = getattr(kind, "feature", kind)  # of a list of labels
    names = kind.names if isinstance(kind, datasets.ClassLabel) else None
    for value in dataset[column]:
        if names is not None:
            value = [names[i] for i in value] if isinstance(value, list) else _name(names, value)
        yield value


def _examples(dataset: Any, where: str, part: str, data: ImageFiles, report: Report) -> list[Example]:
    import datasets

    is_picture = lambda kind: isinstance(kind, datasets.Image)  # noqa: E731
    column, label = columns_of(dataset, where, is_picture, (PATH, data.path), data.label, "pictures")
    reader = Records(dataset.cast_column(column, datasets.Image(decode=False)), column, where)
    examples = []
    for row, value in enumerate(labels_of(dataset, label)):
        text = as_label(value, data)
        if text is None:
            report.add(part, NO_LABEL, "dropped", f"{where}:{row + 1}: {label} is {value!r}")
        else:
            examples.append(Example(str(row + 1), f"{where}:{row + 1}", text, reader, row))
    return examples


def _name(names: list[str], value: int | None) -> str | None:
    """-1 is how many datasets say that a label is not known."""
    return names[value] if value is not None and 0 <= value < len(names) else None
