"""Files that are whole or not there: written beside, flushed to the disk, then renamed. Tensors are safetensors only.

A reader never meets half a file, whatever kills the writer; a full disk leaves what was there before. Nothing that is
read here can run code.
"""

import errno
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from qkv.errors import RunError

__all__ = [
    "free_disk_told",
    "json_text",
    "new_file",
    "new_folder",
    "numbers",
    "read_json",
    "read_tensors",
    "refuse_pickle",
    "remove_folder",
    "sync",
    "write_json",
    "write_tensors",
    "write_text",
]


@contextmanager
def new_file(path: Path, needs: int = 0) -> Iterator[Path]:
    """A path to write to; when the block ends well, what was written becomes ``path`` in one step.

    The folder that it lies in is made if it is not there.

    Args:
        needs: bytes that will be written, for the message when the disk is full.

    Raises:
        RunError: the disk is full; ``path`` is as it was, and nothing is left beside it.
    """
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    with free_disk_told(path, needs), _removed_unless_whole(partial):
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)


@contextmanager
def new_folder(path: Path, needs: int = 0) -> Iterator[Path]:
    """A folder to fill; when the block ends well it becomes ``path``, where nothing was, in one step (`new_file`)."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    with free_disk_told(path, needs), _removed_unless_whole(partial):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        for file in partial.iterdir():
            sync(file)
        sync(partial)
        os.rename(partial, path)
        sync(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder so that no reader ever takes what is left of it for a whole one."""
    gone = path.with_name(f".{path.name}.gone-{os.getpid()}")
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    with new_file(path, len(text)) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json_text(value, indent=1) + "\n")


def json_text(value: Any, indent: int | None = None) -> str:
    """Plain data as JSON, which has no word for a number that is not finite: it is null."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Scores as they were before `json_text` wrote them."""
    return {name: math.nan if value is None else value for name, value in scores.items()}


def read_json(path: Path, damaged: str = "") -> Any:
    """The value in a JSON file; a clear error if it is missing or broken.

    Args:
        damaged: the remedy if it is broken, where there is one.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError("is missing", file=path, remedy="is this the folder of a run?") from None
    except ValueError as error:
        raise RunError(f"is not JSON ({error})", file=path, remedy=damaged) from None
    except OSError as error:
        raise RunError(f"cannot be read ({error.strerror})", file=path, remedy=damaged) from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Save tensors under their names; each must own its storage (see `qkv.models.saved` for tied ones)."""
    whole = {name: _own(tensor) for name, tensor in tensors.items()}
    with new_file(path, sum(tensor.nbytes for tensor in whole.values())) as partial:
        save_file(whole, partial, metadata)  # of one key at most, the same tensors make the same bytes
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)  # safetensors makes files that no one else can read


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and its metadata.

    Raises:
        RunError: the file is missing or broken, or is a pickle: reading one can run any code that its maker put in.
    """
    refuse_pickle(path)
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except SafetensorError as error:
        raise RunError(f"is not a whole safetensors file ({error})", file=path, remedy="use an earlier copy") from None


def refuse_pickle(path: Path) -> None:
    """Raise if a file is missing or holds a pickle (torch.save writes those, bare or inside a zip)."""
    try:
        with open(path, "rb") as file:
            first = file.read(9)
    except FileNotFoundError:
        raise RunError("is missing", file=path, remedy="is this the folder of a run?") from None
    # Safetensors begin with the length of their header, which may well be 0x0380 and look like a pickle's first bytes.
    if first[4:] == b"\0\0\0\0{":
        return
    if first[:2] == b"PK" or (first[:1] == b"\x80" and first[1:2] in b"\x02\x03\x04\x05"):
        raise RunError(
            "is a pickle, and loading a pickle can run code hidden in it, so it was not opened",
            file=path,
            expected="safetensors",
            remedy="if you trust its maker, open it with torch.load(file, weights_only=True) and save safetensors",
        )


def sync(path: Path) -> None:
    """Flush a file, or the list of names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def free_disk_told(path: Path, needs: int) -> Iterator[None]:
    """Turn the error of a full disk into one that says how many bytes are needed and how many are free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except (OSError, SafetensorError, RunError) as error:
        if not (_is_full_disk(error) or (isinstance(error, RunError) and _is_full_disk(error.__cause__))):
            raise
        raise RunError(
            f"the disk is full: saving needs {max(needs, 1)} bytes and {shutil.disk_usage(path.parent).free} are free",
            file=path,
            remedy="what was saved before is untouched; make room and run the same command again",
        ) from (error.__cause__ if isinstance(error, RunError) else error)


@contextmanager
def _removed_unless_whole(partial: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)
        raise


def _is_full_disk(error: BaseException | None) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    # safetensors writes from Rust and tells the system's number in words only.
    codes = [f"os error {number}" for number in (errno.ENOSPC, errno.EDQUOT)]
    return isinstance(error, SafetensorError) and any(code in str(error) for code in codes)


def _own(tensor: Tensor) -> Tensor:
    """On the CPU and with no storage that is larger than itself or shared: safetensors asks for it."""
    tensor = tensor.detach().cpu().contiguous()
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()
