"""Labelled pictures of a dataset that the `datasets` library knows by name."""

from typing import Any

from qkv.data.formats import SPLITS, load_dataset, part_of
from qkv.data.image_files import ImageFiles
from qkv.data.image_listing import NO_LABEL, Example, as_label
from qkv.data.image_tables import LABEL, PATH, choose
from qkv.data.pictures import UNREADABLE, PictureError, read_file
from qkv.data.report import Report
from qkv.errors import DataError

__all__ = ["open_dataset"]


class Records:
    """Reads the encoded picture of a record; pixels are decoded by us, as everywhere."""

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
    remedy = "name a folder of class folders, an archive, a table, or a dataset"
    loaded = load_dataset(where, f"there is no file or folder {where}", remedy)
    found = {}
    for own in [part] if part else list(SPLITS):
        split = part_of(loaded, own)
        if split is None:
            if part:
                raise DataError(f"the dataset has no part {SPLITS[own]!r}", expected=", ".join(loaded), file=where)
            continue
        found[own] = _examples(loaded[split], f"{where} ({split})", own, data, report)
    return found


def _examples(dataset: Any, where: str, part: str, data: ImageFiles, report: Report) -> list[Example]:
    import datasets

    pictures = [name for name, kind in dataset.features.items() if isinstance(kind, datasets.Image)]
    column = choose(pictures, PATH, data.path) or (pictures[0] if len(pictures) == 1 else None)
    label = choose(list(dataset.features), LABEL, data.label)
    if column is None or label is None:
        missing, option = ("pictures", "path") if column is None else ("labels", "label")
        columns = ", ".join(dataset.features)
        raise DataError(
            f"it is not clear which of the columns {columns} holds {missing}",
            remedy=f"say --data.{option} NAME",
            file=where,
        )
    reader = Records(dataset.cast_column(column, datasets.Image(decode=False)), column, where)
    kind = dataset.features[label]
    kind = getattr(kind, "feature", kind)  # of a list of labels
    names = kind.names if isinstance(kind, datasets.ClassLabel) else None
    examples = []
    for row, value in enumerate(dataset[label]):
        if names is not None:
            value = [names[i] for i in value] if isinstance(value, list) else _name(names, value)
        text = as_label(value, data)
        if text is None:
            report.add(part, NO_LABEL, "dropped", f"{where}:{row + 1}: {label} is {value!r}")
        else:
            examples.append(Example(str(row + 1), f"{where}:{row + 1}", text, reader, row))
    return examples


def _name(names: list[str], value: int | None) -> str | None:
    """-1 is how many datasets say that a label is not known."""
    return names[value] if value is not None and 0 <= value < len(names) else None
