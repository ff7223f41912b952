"""Files inside a .zip or .tar, read where they lie: nothing in an archive is ever written under a name of its own.

A packed tar cannot be read at any place; it is unpacked into one plain tar file in a scratch folder.
"""

import hashlib
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from qkv.data.pictures import CUT_OFF, MOST_BYTES, OVERSIZE, PictureError
from qkv.errors import DataError

__all__ = ["ARCHIVES", "Archive", "Member", "Reader", "open_archive", "some_names"]

PACKED = {".tar.gz": "gz", ".tgz": "gz", ".tar.bz2": "bz2", ".tbz2": "bz2", ".tar.xz": "xz", ".txz": "xz"}
ARCHIVES = (".zip", ".tar", *PACKED)
OUTSIDE, NO_FILE = "names in an archive that lead out of it", "links and devices in an archive"
# What a damaged archive raises: of the file, of a packing's end, of its contents, of its table.
DAMAGE = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, tarfile.TarError)


class Reader(Protocol):
    """Whatever holds files: gives the bytes of the one under a key, from any thread."""

    def read(self, key: Any) -> bytes:
        """Raises PictureError: it cannot be read."""
        ...


@dataclass(frozen=True)
class Member:
    """A file in an archive: its name, and the key under which it is read."""

    name: str
    key: Any


@dataclass
class Archive:
    """What an archive holds. ``found`` are findings ready for `Report.add`, but for the part: (kind, where)."""

    reader: Reader
    members: list[Member] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    found: list[tuple[str, str]] = field(default_factory=list)


def open_archive(path: Path, scratch: Path) -> Archive:
    """List an archive.

    Raises:
        DataError: it is damaged, or locked with a password.
    """
    with _told(path):
        return _open_zip(path) if path.name.lower().endswith(".zip") else _open_tar(path, scratch)


def some_names(path: Path, most: int) -> list[str]:
    """The first names of files in an archive that lie inside it; of a packed tar no more is unpacked than that takes.

    Raises:
        DataError: it is damaged.
    """
    with _told(path):
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as file:
                names = [info.filename for info in file.infolist() if not info.is_dir()]
        else:
            with tarfile.open(path, "r:*") as file:
                names = [info.name for info in islice(file, most) if info.isreg()]
    return [inside for name in names[:most] if (inside := _inside(name))]


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except NotImplementedError as error:  # of zipfile: a way of packing, or a version, that it does not know
        raise DataError(f"the archive cannot be read ({error})", remedy="unpack it yourself", file=path) from error
    except DAMAGE as error:
        raise DataError(
            f"the archive cannot be read ({error})", remedy="copy or download it again", file=path
        ) from error


def _inside(name: str) -> str | None:
    """A member's name below the root of the archive; None if it leads outside."""
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name.partition("/")[0]
    return None if outside else "/".join(path.parts)


@dataclass(frozen=True)
class ZipReader:
    path: Path
    file: zipfile.ZipFile

    def read(self, key: zipfile.ZipInfo) -> bytes:
        where = f"{self.path}:{key.filename}"
        if key.file_size > MOST_BYTES:
            raise PictureError(OVERSIZE, f"the file has {key.file_size:,} bytes unpacked", file=where)
        try:
            with self.file.open(key) as stream:
                return stream.read(MOST_BYTES)  # never more, whatever its header says
        except Exception as error:  # of zipfile and of each way of packing
            raise PictureError(CUT_OFF, f"cannot be unpacked ({error})", file=where) from error


def _open_zip(path: Path) -> Archive:
    archive = Archive(ZipReader(path, zipfile.ZipFile(path)))
    for info in archive.reader.file.infolist():
        name = _inside(info.filename)
        if name is None:
            archive.found.append((OUTSIDE, f"{path}:{info.filename}"))
        elif info.is_dir():
            archive.folders.append(name)
        elif stat.S_ISLNK(info.external_attr >> 16):
            archive.found.append((NO_FILE, f"{path}:{info.filename}"))
        elif info.flag_bits & 1:
            raise DataError("the archive is locked with a password", remedy="unpack it yourself", file=path)
        else:
            archive.members.append(Member(name, info))
    return archive


@dataclass(frozen=True)
class TarReader:
    path: Path
    plain: Path

    def read(self, key: tuple[int, int]) -> bytes:
        offset, size = key
        if size > MOST_BYTES:
            raise PictureError(OVERSIZE, f"a file in it has {size:,} bytes", file=self.path)
        with open(self.plain, "rb") as file:
            file.seek(offset)
            return file.read(size)


def _open_tar(path: Path, scratch: Path) -> Archive:
    packed = next((how for suffix, how in PACKED.items() if path.name.lower().endswith(suffix)), None)
    plain = _unpack(path, packed, scratch) if packed else path
    archive = Archive(TarReader(path, plain))
    with tarfile.open(plain, "r:") as file:
        for info in file:
            name = _inside(info.name)
            if name is None:
                archive.found.append((OUTSIDE, f"{path}:{info.name}"))
            elif info.isdir():
                archive.folders += [name] if name else []  # what is packed with "tar ." has its root as a member
            elif not info.isreg() or info.issparse():
                archive.found.append((NO_FILE, f"{path}:{info.name}"))
            else:
                archive.members.append(Member(name, (info.offset_data, info.size)))
    return archive


def _unpack(path: Path, how: str, scratch: Path) -> Path:
    """The plain tar of a packed one, under a name that depends on the file alone."""
    state = path.stat()
    name = hashlib.blake2b(f"{path.absolute()} {state.st_size} {state.st_mtime_ns}".encode(), digest_size=8).hexdigest()
    plain = scratch / f"unpacked-{name}.tar"
    if not plain.exists():
        import bz2
        import gzip
        import lzma

        scratch.mkdir(parents=True, exist_ok=True)
        partial = plain.with_suffix(f".partial-{os.getpid()}")
        try:
            opener = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}[how]
            with opener(path, "rb") as source, open(partial, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            partial.rename(plain)
        except lzma.LZMAError as error:
            raise ValueError(str(error)) from error
        finally:
            partial.unlink(missing_ok=True)
    return plain
