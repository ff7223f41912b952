"""What a frozen encoder saw at each cell of each picture, on disk and mapped into memory.

A folder holds ``cells`` (float16, one picture after the other) and ``cells.json`` with its shape and a checksum. It is
filled picture by picture: ``progress.json`` says how many are flushed to the disk, and after a kill the filling goes on
from there.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from qkv.data.store import checksum
from qkv.errors import DataError

__all__ = ["CellStore", "fill_cells"]

See = Callable[[Sequence[int]], Float[Tensor, "picture cell width"]]


class CellStore:
    """Cells of pictures numbered from 0; ``store[ids]`` is float32[picture, cell, width]."""

    def __init__(self, folder: Path):
        """Open what `fill_cells` wrote.

        Raises:
            DataError: the folder is not whole.
        """
        try:
            header = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
            if checksum(folder / "cells") != header["checksum"]:
                raise ValueError("cells has changed")
            self._cells = np.memmap(folder / "cells", "<f2", "r", shape=tuple(header["shape"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"the stored features are damaged ({error})", remedy=f"remove {folder}", file=folder
            ) from error

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, ids: np.ndarray) -> Float[Tensor, "picture cell width"]:
        return torch.from_numpy(self._cells[ids].astype(np.float32))


def fill_cells(folder: Path, count: int, shape: tuple[int, int], see: See, chunk: int = 32) -> CellStore:
    """The store in ``folder``: opened if it is whole, gone on with if it is begun, made if it is not there.

    Args:
        count: how many pictures.
        shape: cells of a picture, and width of a cell.
        see: what the encoder sees of the pictures of some numbers.
    """
    if (folder / "cells.json").exists():
        try:
            return CellStore(folder)
        except DataError:
            (folder / "cells.json").unlink()
            (folder / "progress.json").unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    row, done = 2 * shape[0] * shape[1], _done(folder)
    with open(folder / "cells", "r+b" if done else "wb") as file:
        file.truncate(done * row)  # what was written after the last flush may be half a picture
        file.seek(done * row)
        for begin in range(done, count, chunk):
            ids = range(begin, min(begin + chunk, count))
            see(ids).to(torch.float16).contiguous().cpu().numpy().tofile(file)
            file.flush()
            os.fsync(file.fileno())
            _write(folder / "progress.json", {"done": ids.stop})
    _write(folder / "cells.json", {"shape": [count, *shape], "checksum": checksum(folder / "cells")})
    return CellStore(folder)


def _done(folder: Path) -> int:
    try:
        return int(json.loads((folder / "progress.json").read_text(encoding="utf-8"))["done"])
    except (OSError, ValueError, KeyError):
        return 0


def _write(file: Path, value: dict) -> None:
    """Whole or not there."""
    beside = file.with_name(f".{file.name}.partial-{os.getpid()}")
    beside.write_text(json.dumps(value) + "\n", encoding="utf-8")
    os.replace(beside, file)
