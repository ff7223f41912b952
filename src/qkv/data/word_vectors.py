"""Word vectors for whoever needs them: of a run's folder, or of a published file."""

import json
from pathlib import Path

import numpy as np

from qkv.data.word_files import read_vectors
from qkv.data.words import Words
from qkv.errors import DataError

__all__ = ["load_vectors", "map_tensor", "vectors_in"]


def load_vectors(path: Path | str) -> tuple[list[str], np.ndarray]:
    """Words and float32[words, dim].

    Args:
        path: the folder of a run that has word vectors, or a file of word2vec (text, binary) or GloVe, also packed.

    Raises:
        DataError, RunError: there are none, or they are damaged.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return list(Words.load(path / "codec").words), np.asarray(vectors_in(path))
    return read_vectors(path)[:2]


def vectors_in(folder: Path) -> np.ndarray:
    """The vectors of a run, mapped from its file; of GloVe the sums of words' and contexts' (section 4.2)."""
    file = folder / "model.safetensors"
    input = map_tensor(file, "input.weight")
    if json.loads((folder / "model.json").read_text(encoding="utf-8"))["class"] == "glove":
        return input + map_tensor(file, "output.weight")
    return input


def map_tensor(file: Path, name: str) -> np.ndarray:
    """A float32 tensor of a safetensors file without reading it: pages come as they are touched."""
    try:
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            about = json.loads(stream.read(length))[name]
        if about["dtype"] != "F32":
            raise ValueError(f"{name} is {about['dtype']}")
        begin, end = about["data_offsets"]
        if file.stat().st_size < 8 + length + end:
            raise ValueError("it is cut off")
        return np.memmap(file, "<f4", "r", 8 + length + begin, tuple(about["shape"]))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"holds no vectors ({error})", remedy="copy the run's folder again", file=file) from error
