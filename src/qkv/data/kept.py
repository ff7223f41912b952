"""What is derived from the user's data, in a run's folder: whole or not there, though several processes make it."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["put", "scratch_in", "tidy"]


@contextmanager
def scratch_in(kept: Path) -> Iterator[Path]:
    """A folder under ``kept`` to work in, gone afterwards; `tidy` finds it if the process is killed."""
    prefix = f".partial-{socket.gethostname()}-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=kept) as scratch:
        yield Path(scratch)


def put(whole: Path, where: Path) -> None:
    """Give a finished folder its name, unless another process was faster; its result is the same."""
    try:
        whole.rename(where)
    except OSError:
        if not where.is_dir():
            raise


def tidy(kept: Path, where: Path) -> None:
    """Remove what earlier data left, and what a killed process on this machine left half-made."""
    for folder in kept.iterdir():
        if folder.name.startswith(".partial-"):
            host, _, process = folder.name.removeprefix(".partial-").rpartition("-")[0].rpartition("-")
            if host == socket.gethostname() and process.isdigit() and not _alive(int(process)):
                shutil.rmtree(folder, ignore_errors=True)
        elif folder != where and (folder / "report.json").is_file():
            shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
