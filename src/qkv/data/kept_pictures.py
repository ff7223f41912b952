"""Decoded pictures, or frames of clips, kept in a run's folder under a key of what they were made of.

What is kept is whole or not there: it is made beside, sealed with checksums, and renamed into place. A run that goes on
finds it, a run whose data has changed does not, and what is damaged is made again.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.classes import Label
from qkv.data.image_doctor import Keep
from qkv.data.image_listing import Example
from qkv.data.image_split import hold_out
from qkv.data.image_store import ImageStore, ImageStoreWriter
from qkv.data.kept import put, scratch_in
from qkv.data.notes import HELD_OUT, KEPT
from qkv.data.report import Report
from qkv.data.store import checksum
from qkv.errors import DataError

__all__ = ["KeptPictures", "hold_out_some", "keep_pictures", "key_of", "seal", "sealed", "settle", "writing_told"]

Examined = tuple[Report, dict[str, list[Example]], dict[str, np.ndarray]]


@dataclass(frozen=True)
class KeptPictures:
    """What the doctor saw of each picture, the pictures themselves, by part, and the report."""

    looks: dict[str, np.ndarray]
    stores: dict[str, ImageStore]
    report: Report

    def rows(self) -> dict[str, np.ndarray]:
        """Which of the listed pictures are train and dev."""
        state = {part: look["state"] for part, look in self.looks.items()}
        dev = np.flatnonzero(state["dev"] == KEPT) if "dev" in state else np.flatnonzero(state["train"] == HELD_OUT)
        return {"train": np.flatnonzero(state["train"] == KEPT), "dev": dev}


def keep_pictures(
    kept: Path,
    key: str,
    examples: Mapping[str, Sequence[Example]],
    room: Mapping[str, int],
    examine: Callable[[Callable[[str], Keep | None]], Examined],
    split: Callable[[Examined], None],
) -> KeptPictures:
    """What lies under ``key``, which is made first if it is not there or not whole.

    Args:
        room: bytes that the pictures of each part may take; other parts are looked at and not kept.
        examine: decodes all pictures once, given who keeps those of a part.
        split: holds out some of train, where there is no dev.

    Raises:
        DataError: the data cannot be used, or the pictures cannot be written or read back.
    """
    where = kept / key
    opened = _open(where, examples)
    if opened is None:
        with writing_told(kept, "pictures"):
            _make(kept, where, examples, room, examine, split)
        opened = _open(where, examples)
        if opened is None:
            raise DataError("the decoded pictures cannot be read back", remedy="look for a failing disk", file=where)
    return opened


def key_of(data: Any, settings: Sequence[str], files: Mapping[str, str], *more: str) -> str:
    """Of the files' content, of the settings that decide what is kept, and of what else does."""
    chosen = {name: getattr(data, name) for name in settings}
    return hashlib.blake2b(json.dumps([1, files, chosen, *more], sort_keys=True).encode(), digest_size=12).hexdigest()


@contextmanager
def writing_told(kept: Path, what: str) -> Iterator[None]:
    """A full disk as a DataError that says how much room there is."""
    try:
        yield
    except OSError as error:  # of writing: what cannot be read is a DataError already
        room = f"{shutil.disk_usage(kept).free / 1e6:,.0f} MB are free"
        raise DataError(
            f"the decoded {what} cannot be written ({error}; {room})", remedy="lower --data.keep_mb", file=kept
        ) from error


def hold_out_some(look: np.ndarray, labels: Sequence[Label] | None, share: float, report: Report) -> None:
    """Some of train become dev, of each class alike where labels are given; copies go together.

    Raises:
        DataError: there are too few.
    """
    kept, what = np.flatnonzero(look["state"] == KEPT), report.unit
    strata = [""] * len(kept) if labels is None else [labels[i] for i in kept]
    chosen = kept[hold_out(look["content"][kept], strata, share)]
    if not len(chosen):
        raise DataError(
            f"{len(kept)} {what} are too few to hold some out", remedy=f"name held-out {what} with --data.dev"
        )
    look["state"][chosen] = HELD_OUT
    report.kept["train"] -= len(chosen)
    alike = "" if labels is None else ", of each class alike,"
    report.remarks.append(f"dev: none is named, so {len(chosen):,} {what} of train{alike} are held out as dev")


def seal(whole: Path, report: Report) -> None:
    """Write the report into a folder, with a checksum of every file that lies in it."""
    sums = {file.name: checksum(file) for file in sorted(whole.iterdir()) if file.is_file()}
    plain = report.summary() | {"checksums": sums}
    text = json.dumps(plain, ensure_ascii=False, indent=1) + "\n"
    # Names of files need not be UTF-8: what is not becomes \udcff, which JSON reads back as it was.
    (whole / "report.json").write_text(text, encoding="utf-8", errors="backslashreplace")


def sealed(where: Path) -> dict[str, Any] | None:
    """What `seal` wrote; None if a file is damaged.

    Raises:
        OSError, ValueError, KeyError: it is not there, or no such record.
    """
    plain = json.loads((where / "report.json").read_text(encoding="utf-8"))
    return plain if all(checksum(where / name) == known for name, known in plain["checksums"].items()) else None


def settle(whole: Path, where: Path, is_whole: Callable[[], bool]) -> None:
    """Rename into place; what lies there already stays if it is whole: it is another process's, and as good."""
    if where.exists() and not is_whole():
        shutil.rmtree(where)
    put(whole, where)


def _make(kept: Path, where: Path, examples, room, examine, split) -> None:
    with scratch_in(kept) as scratch:
        whole = scratch / "whole"
        whole.mkdir()
        with ExitStack() as stack:

            def keep(part: str) -> Keep | None:
                if part not in room:
                    return None
                return stack.enter_context(ImageStoreWriter(whole / part, room[part])).add

            examined = examine(keep)
        report, _, looks = examined
        report.raise_if_refused()
        if "dev" not in looks:
            split(examined)
        for part in looks.keys() & room.keys():
            np.save(whole / f"{part}.npy", looks[part])
        seal(whole, report)
        settle(whole, where, lambda: _open(where, examples) is not None)


def _open(where: Path, examples: Mapping[str, Sequence[Example]]) -> KeptPictures | None:
    """What `_make` wrote, or None if it is not there or not whole."""
    try:
        if (plain := sealed(where)) is None:
            return None
        parts = [name.removesuffix(".npy") for name in plain["checksums"]]
        looks = {part: np.load(where / f"{part}.npy") for part in parts}
        stores = {part: ImageStore(where / part) for part in parts}
        if any(not len(looks[part]) == len(stores[part]) == len(examples[part]) for part in parts):
            return None
        return KeptPictures(looks, stores, Report.from_summary(plain))
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return None
