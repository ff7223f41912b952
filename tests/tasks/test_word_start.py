"""New models start from word vectors: translators, BERT in pretraining and on texts."""

import numpy as np
import pytest
import torch

from qkv.data.word_files import write_vectors
from qkv.errors import DataError
from qkv.tasks.word_start import start_from_vectors


class Words:
    """A vocabulary of whole words and one piece that is none."""

    names = ("", "king", "queen", "ing")
    size = len(names)

    def opens_word(self, i: int) -> bool:
        return i != 3

    def decode(self, ids) -> str:
        return " ".join(self.names[i] for i in ids)


@pytest.fixture
def file(tmp_path):
    write_vectors(tmp_path / "v.txt", ["king", "QUEEN", "ing", "other"], np.eye(4, dtype=np.float32) * 9, "glove")
    return str(tmp_path / "v.txt")


def test_words_take_over_directions_and_other_pieces_stay(file):
    torch.manual_seed(0)
    table = torch.nn.Embedding(4, 4)
    before = table.weight.detach().clone()
    (told,) = start_from_vectors(table, Words(), file)
    assert told.startswith("2 of 2 pieces that begin a word (100%) start from the vectors of")
    assert torch.equal(table.weight[[0, 3]], before[[0, 3]])
    length = before.norm(dim=1).mean()
    assert torch.allclose(table.weight[1], torch.tensor([1.0, 0, 0, 0]) * length)
    assert torch.allclose(table.weight[2], torch.tensor([0, 1.0, 0, 0]) * length)


def test_nothing_is_named_or_nothing_fits(file):
    assert start_from_vectors(torch.nn.Embedding(4, 4), Words(), "") == []
    with pytest.raises(DataError, match=r"the vectors have 4 numbers, and the model's tokens 8. Say --size.dim 4"):
        start_from_vectors(torch.nn.Embedding(4, 8), Words(), file)
