"""What listing labelled pictures and listing labelled clips have in common: places and parts, and tables of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from qkv.data.archives import ARCHIVES
from qkv.data.class_folders import part_of
from qkv.data.formats import TABLES
from qkv.data.image_tables import PART, choose, column_names, is_table, read_rows
from qkv.data.pairs import PARTS
from qkv.data.report import Report
from qkv.errors import ConfigError, DataError

__all__ = ["BROKEN", "list_parts", "note_packed_tables", "refuse", "table_rows", "tables_in", "what_lies"]

BROKEN = "broken records"
Example = TypeVar("Example")


def list_parts(
    data: Any, place: Callable[[str, str | None], Mapping[str, list[Example]]], report: Report, expected: str
) -> dict[str, list[Example]]:
    """All examples of train, dev and test of what ``data`` names: its ``folder``, ``train``, ``dev`` and ``test``.

    Args:
        place: the examples at one place, by part; all are of the part that it is given, if it is given one.
        expected: what should have been there, for the message where nothing is.

    Raises:
        ConfigError, DataError: nothing is named, nothing is there, or it cannot be understood.
    """
    named = [(data.folder, None), *((getattr(data, part), part) for part in PARTS)]
    if not any(where for where, _ in named):
        raise ConfigError("no data is named", remedy="say --data FOLDER")
    found: dict[str, list[Example]] = {}
    for where, part in named:
        if where:
            some = place(where, part)
            found |= some if part is None else {part: some.get(part, [])}
            report.files |= {name: [where] for name in (some if part is None else (part,))}
    if not any(found.values()):
        why = "; ".join(map(str, report.findings))
        raise DataError(
            f"no labelled {report.unit.removesuffix('s')} was found" + (f" ({why})" if why else ""),
            expected=expected,
            file=next(where for where, _ in named if where),
        )
    told = [part for part in PARTS if part in found or any(finding.part == part for finding in report.findings)]
    report.read = {part: len(found.get(part, ())) for part in told}
    return {part: found[part] for part in PARTS if part in found}


def what_lies(where: str) -> Literal["folder", "archive", "table", "dataset"]:
    """What a place is, by its name; what is no path may be the name of a dataset.

    Raises:
        DataError: it is nothing of these, or a path to nothing.
    """
    path = Path(where).expanduser()
    if path.is_dir():
        return "folder"
    if path.is_file() and path.name.lower().endswith(ARCHIVES):
        return "archive"
    if is_table(path):
        return "table"
    if path.exists() or path.suffix or where.startswith((".", "/", "~")) or where.count("/") > 1:
        what = "this is no folder, archive or table" if path.exists() else "there is no such file or folder"
        raise DataError(what, expected="a folder, " + ", ".join((*ARCHIVES, ".csv, .tsv, .jsonl, .parquet")), file=path)
    return "dataset"


def tables_in(folder: Path, fits: Callable[[list[str]], Any], unit: str) -> dict[str | None, Path]:
    """The tables in a folder whose columns fit, by part; under None one that holds all."""
    fitting: dict[str | None, Path] = {}
    for file in sorted(folder.iterdir()):
        if is_table(file) and not file.name.startswith(".") and fits(column_names(file)):
            part = part_of(file.name.partition(".")[0])
            if part in fitting:
                raise DataError(
                    f"{fitting[part].name} and {file.name} both name {unit} and labels",
                    remedy="say which with --data.train and --data.dev",
                    file=folder,
                )
            fitting[part] = file
    if None in fitting and len(fitting) > 1:
        del fitting[None]
    return fitting


def table_rows(
    table: Path, part: str | None, columns: Sequence[str], report: Report
) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Of each good row its part, where it stands, its path (the first of ``columns``) and its fields; others are told.

    Args:
        part: to which all belong; None reads it in a column of the table, if there is one.
    """
    path, split = columns[0], choose(column_names(table), PART) if part is None else None
    for row in read_rows(table, tuple(columns)):
        belongs, where = part or "train", f"{table}:{row.line}"
        if not row.broken and split:
            value = str(row.fields.get(split) or "").strip()
            if (belongs := part_of(value)) is None:
                report.add("train", BROKEN, "dropped", f"{where}: {split} is {value!r}, no part of the data")
                continue
        if row.broken or not isinstance(name := row.fields.get(path), str) or not name.strip():
            held = not row.broken and isinstance(name, dict)  # as data sets of the datasets library hold them
            why = f"{path} holds the {report.unit.removesuffix('s')} itself, not a path" if held else "no path"
            report.add(belongs, BROKEN, "dropped", f"{where}: {row.broken or why}")
            continue
        yield belongs, where, name, row.fields


def note_packed_tables(names: Iterable[str], archive: Path, report: Report) -> None:
    """Say that tables in an archive are not read: the same folder, unpacked, might have other labels."""
    tables = sorted(name for name in names if name.removesuffix(".gz").endswith(TABLES))
    if tables:
        report.remarks.append(
            f"{archive} holds tables ({', '.join(tables[:3])}{' ...' * (len(tables) > 3)}), which are not read there: "
            "classes are its folders; if the labels are in a table, unpack it"
        )


def refuse(error: OSError) -> None:
    """A folder that cannot be read would be a class that is missing."""
    raise DataError(f"the folder cannot be read ({error.strerror})", file=error.filename) from error
