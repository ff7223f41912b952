"""Word vectors for the pieces of a vocabulary that they cover."""

from pathlib import Path

import torch
from torch import Tensor

from qkv.data.codec import Vocabulary
from qkv.data.word_vectors import load_vectors
from qkv.errors import DataError

__all__ = ["cover"]


def cover(path: Path, vocabulary: Vocabulary, dim: int) -> tuple[dict[int, Tensor], str]:
    """The vectors of pieces that are whole words, by id, and a sentence about how many there are.

    A word is looked for as it stands in the file, and without capitals if that is not there.

    Args:
        path: as for `load_vectors`: a run's folder, or a file of word2vec or GloVe.

    Raises:
        DataError: the vectors are not ``dim`` wide, or cover nothing.
    """
    pieces = {i: vocabulary.decode([i]).strip() for i in range(vocabulary.size) if vocabulary.opens_word(i)}
    wanted: dict[str, list[int]] = {}
    for i, piece in pieces.items():
        if piece:
            wanted.setdefault(piece, []).append(i)
    words, vectors = load_vectors(path)
    if vectors.shape[1] != dim:
        raise DataError(
            f"the vectors have {vectors.shape[1]} numbers, and the model's tokens {dim}",
            remedy=f"say --size.dim {vectors.shape[1]}",
            file=path,
        )
    exact: dict[int, Tensor] = {}
    lowered: dict[int, Tensor] = {}
    for place, word in enumerate(words):
        for found, name in ((exact, word), (lowered, word.lower())):
            for i in wanted.get(name, ()):
                found.setdefault(i, torch.tensor(vectors[place]))
    found = lowered | exact
    if not found:
        raise DataError("no piece of the vocabulary has a vector", remedy="is it of this language?", file=path)
    whole = sum(1 for piece in pieces.values() if piece)
    share = f"{len(found):,} of {whole:,} pieces that begin a word ({len(found) / whole:.0%})"
    return found, f"{share} start from the vectors of {path}"
