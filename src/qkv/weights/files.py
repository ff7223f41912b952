"""Published weights as files: found by path or by name on the hub, and read as plain tensors.

==================================  ==========================================================
file                                read as
==================================  ==========================================================
``.safetensors``                    what it is
``.npz``                            arrays (the original releases, of JAX)
``.pth``, ``.pt``, ``.bin``, ``.th``  a pickle of tensors only; one that wants more is refused
==================================  ==========================================================

Nothing that is read here can run code.
"""

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from torch import Tensor

from qkv.errors import RunError
from qkv.store import read_tensors

__all__ = ["find_published", "read_weights"]

WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # in a folder, the first that is there
INSIDE = ("state_dict", "model", "model_state_dict")  # where training programs keep the weights in a checkpoint


def find_published(name: str, files: tuple[str, ...]) -> Path:
    """The folder of this name here, or else a copy of ``files`` of the model of this name on the Hugging Face hub.

    Raises:
        RunError: there is no such folder, and the hub has no such model or cannot be reached.
    """
    if Path(name).is_dir():
        return Path(name)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise RunError(f"there is no folder {name}", remedy="give a folder, or a name on the hub: owner/name")
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(files)))
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise RunError(f"there is no folder {name}, and the Hugging Face hub has no such model") from None
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise RunError(
            f"there is no folder {name}, and the Hugging Face hub cannot be reached ({reason})",
            remedy="download the model's files on a machine that is online, and give their folder",
        ) from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, or of ``model.safetensors`` or else ``pytorch_model.bin`` in a folder."""
    if path.is_dir():
        found = [path / name for name in WEIGHTS if (path / name).is_file()]
        if not found:
            raise RunError("there is no model.safetensors and no pytorch_model.bin", file=path)
        path = found[0]
    if not path.is_file():
        raise RunError("is missing", file=path)
    if path.suffix == ".safetensors":
        return read_tensors(path)[0]
    return _read_arrays(path) if path.suffix == ".npz" else _read_pickle(path)


def _read_arrays(path: Path) -> dict[str, Tensor]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        reason = str(error).partition("\n")[0]
        raise RunError(f"holds more than arrays, or is broken, and was not read ({reason})", file=path) from None


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of old pickles, which are refused below in our words
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, IndexError):
        raise RunError(
            "holds more than tensors, or is broken, and was not read: what is more could run code",
            expected="a file of tensors alone",
            remedy="where you trust it, save its state dict as .safetensors with the library that it comes from",
            file=path,
        ) from None
    if isinstance(weights, Mapping):
        inside = [weights[key] for key in INSIDE if isinstance(weights.get(key), Mapping)]
        weights = inside[0] if inside else weights
    if not isinstance(weights, Mapping) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise RunError("is no table of tensors", file=path)
    return dict(weights)
