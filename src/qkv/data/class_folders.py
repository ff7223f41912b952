"""Which class and which part of the data each file of a folder or an archive belongs to, by its name alone.

A class is a folder; ``train/``, ``val/`` and ``test/`` above the class folders are parts. Hidden and system folders
are no classes, whatever lies in them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from qkv.data.discover import NAMES
from qkv.errors import DataError

__all__ = ["SUFFIXES", "SYSTEM_FILES", "Layout", "arrange", "is_hidden", "part_of"]

# fmt: off
SUFFIXES = frozenset((
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".ppm", ".pgm",
    ".pbm", ".pnm", ".avif", ".jp2", ".tga", ".ico", ".mpo",
))
# fmt: on
SYSTEM_FOLDERS = frozenset(("$recycle.bin", "system volume information", "@eadir", "lost+found"))
SYSTEM_FILES = frozenset(("thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"))
HIDDEN_FOLDERS, HIDDEN_FILES = "hidden or system folders", "hidden or system files"
OTHER, LOOSE, NESTED = "files that are no pictures", "pictures in no class folder", "pictures deeper in a class folder"
EMPTY = "class folders without a picture"


@dataclass
class Layout:
    """Where each name belongs: ``places[i]`` is the part and the class of ``names[i]``, or None.

    ``found`` are findings ready for `Report.add`: (part, kind, action, where).
    """

    places: list[tuple[str, str] | None]
    found: list[tuple[str, str, str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def part_of(name: str) -> str | None:
    """The part that a folder, a table or a value of a column names: ``Validation`` is dev."""
    return next((part for part, names in NAMES.items() if name.lower() in names), None)


def is_hidden(name: str) -> bool:
    """Whether a folder (one step of a path) is none of the user's."""
    return name.startswith((".", "__")) or name.lower() in SYSTEM_FOLDERS


def arrange(
    names: Sequence[str],
    folders: Iterable[str],
    root: str,
    part: str | None = None,
    places: Sequence[int] | None = None,
) -> Layout:
    """Sort out the files of a folder.

    Args:
        names: paths below the root, ``/`` between: ``train/cat/1.jpg``.
        folders: all folders below the root, empty ones too.
        root: what messages call it.
        part: to which all belongs; None looks for folders named as parts.
        places: which of ``names`` are the user's; those of pictures if not given.

    Raises:
        DataError: folders named as parts and others stand side by side.
    """
    layout = Layout([None] * len(names))
    pictures = _pictures(names, layout, root, part or "train") if places is None else places
    wrapper = _wrapper([names[i] for i in pictures], part)
    if wrapper:
        layout.remarks.append(f"all pictures of {root} lie in {wrapper}: classes are looked for there")
    paths = {i: names[i].removeprefix(wrapper).split("/") for i in pictures}
    parts = _parts(paths.values(), root) if part is None else {}
    with_pictures = set()
    for i, path in paths.items():
        belongs = parts[path[0]] if parts and len(path) > 1 else part or "train"
        inner = path[1:] if parts else path
        if len(inner) < 2:
            layout.found.append((belongs, LOOSE, "dropped", f"{root}/{names[i]}"))
            continue
        if len(inner) > 2:
            layout.found.append((belongs, NESTED, "noted", f"{root}/{names[i]}"))
        layout.places[i] = (belongs, inner[0])
        with_pictures.add("/".join(path[: 2 if parts else 1]))
    for folder in sorted(folders):
        inner = folder.removeprefix(wrapper).split("/")
        is_class = folder.startswith(wrapper) and len(inner) == (2 if parts else 1) and (not parts or inner[0] in parts)
        if is_class and not any(map(is_hidden, folder.split("/"))) and "/".join(inner) not in with_pictures:
            belongs = parts[inner[0]] if parts else part or "train"
            layout.found.append((belongs, EMPTY, "ignored", f"{root}/{folder}"))
    return layout


def _pictures(names: Sequence[str], layout: Layout, root: str, part: str) -> list[int]:
    """Which names are pictures of the user; the others are found and told."""
    pictures, hidden = [], set()
    for i, name in enumerate(names):
        *above, file = name.split("/")
        first = next((depth for depth, folder in enumerate(above, start=1) if is_hidden(folder)), None)
        if first:
            folder = "/".join(above[:first])
            if folder not in hidden:
                hidden.add(folder)
                layout.found.append((part, HIDDEN_FOLDERS, "ignored", f"{root}/{folder}"))
        elif file.startswith(".") or file.lower() in SYSTEM_FILES:
            layout.found.append((part, HIDDEN_FILES, "ignored", f"{root}/{name}"))
        elif "." + file.lower().rpartition(".")[2] in SUFFIXES:
            pictures.append(i)
        else:
            layout.found.append((part, OTHER, "ignored", f"{root}/{name}"))
    return pictures


def _wrapper(names: Sequence[str], part: str | None) -> str:
    """The one folder around all class folders, with its slash (an archive often has one); "" if there is none."""
    wrapper = ""
    while True:
        inner = [name.removeprefix(wrapper).split("/") for name in names]
        first = {path[0] for path in inner}
        if len(first) != 1 or any(len(path) < 3 for path in inner):
            return wrapper
        if part is None and part_of(*first):
            return wrapper
        if len({path[1] for path in inner}) < 2 and not part_of(inner[0][1]):
            return wrapper  # one class with a folder in it
        wrapper += first.pop() + "/"


def _parts(paths: Iterable[list[str]], root: str) -> dict[str, str]:
    """Folder -> part, if the folders at the top are parts. A folder ``train`` of pictures of trains is a class."""
    above: dict[str, bool] = {}  # folder -> whether its pictures all lie in folders of it
    for path in paths:
        if len(path) > 1:
            above[path[0]] = above.get(path[0], True) and len(path) > 2
    parts = {name: part for name, deep in above.items() if deep and (part := part_of(name))}
    others = sorted(set(above) - set(parts))
    if parts and others:
        raise DataError(
            f"{min(parts)} and {others[0]} lie side by side, one a part of the data, the other a class by its name",
            expected="class folders only, or train, val and test only with class folders in each",
            remedy="name the parts with --data.train and --data.dev",
            file=root,
        )
    if len(set(parts.values())) < len(parts):
        raise DataError(
            f"{' and '.join(sorted(parts))} hold the same part twice", remedy="say which with --data.dev", file=root
        )
    return parts
