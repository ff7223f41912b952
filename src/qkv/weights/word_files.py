"""Published word vectors as a run, and a run's as a file that other programs read."""

from pathlib import Path

import numpy as np
import torch

from qkv.data.word_files import read_vectors, write_vectors
from qkv.data.words import Words
from qkv.errors import RunError
from qkv.models.saved import build, save_model
from qkv.models.word_table import WordTableConfig
from qkv.store import new_file, new_folder
from qkv.tasks.settings import write_settings
from qkv.tasks.word_vectors import WordVectors

__all__ = ["export_vectors", "import_vectors"]


def import_vectors(file: Path, out: Path, limit: int | None = None) -> list[str]:
    """Write a run with the vectors of a file (see `qkv.data.word_files`); returns lines for the user.

    Raises:
        RunError: something is in ``out`` already.
        DataError: the file holds no whole vectors.
    """
    if out.exists() and any(out.iterdir()):
        raise RunError("is not empty", file=out, expected="a new folder", remedy="choose another --out")
    words, rows, said = read_vectors(file, limit)
    if out.exists():
        out.rmdir()
    with new_folder(out, needs=rows.nbytes) as folder:
        with torch.device("meta"):
            model = build("word-table", WordTableConfig(*rows.shape))
        model.input.weight = torch.nn.Parameter(torch.from_numpy(rows))
        save_model(model, folder, "word-table")
        Words(words, np.zeros(len(words), np.int64)).save(folder / "codec")
        write_settings(folder, task="vectors")
    return [*said, f"{len(words):,} words of {rows.shape[1]} numbers"]


def export_vectors(vectors: WordVectors, file: Path, form: str, most_words: int | None = None) -> None:
    """Write a run's vectors as a file, the most frequent words first."""
    words = list(vectors.words.words)[:most_words]
    with new_file(file, vectors.rows.nbytes) as partial:
        write_vectors(partial, words, vectors.rows[: len(words)], form, file.suffix)
