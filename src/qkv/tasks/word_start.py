"""Starting a new model's token vectors from word vectors, as the lectures do with texts."""

from pathlib import Path

import torch
from torch import nn

from qkv.data.codec import Vocabulary
from qkv.data.piece_vectors import cover
from qkv.errors import RunError
from qkv.tasks.settings import family

__all__ = ["refuse_other_runs", "start_from_vectors"]


def refuse_other_runs(place: Path | str) -> None:
    """RunError if what is named for its word vectors is a trained run of another kind."""
    if place and (Path(place).expanduser() / "model.json").is_file() and family(place) != "vectors":
        raise RunError(f"is a run of {family(place)!r}", expected="one of word vectors", file=Path(place))


def start_from_vectors(table: nn.Embedding, vocabulary: Vocabulary, file: str) -> list[str]:
    """Give the pieces that are words the directions of their word vectors; lines for the user, none without a file.

    They become as long as new vectors are on average: only directions are taken over.

    Raises:
        DataError: the vectors are of another width, or cover nothing.
    """
    if not file:
        return []
    rows = table.weight
    vectors, told = cover(Path(file), vocabulary, rows.shape[1])
    with torch.no_grad():
        known = torch.tensor(sorted(vectors))
        given = torch.stack([vectors[i] for i in known.tolist()])
        rows[known] = (given * (rows.norm(dim=1).mean() / given.norm(dim=1).mean())).to(rows)
    return [told]
