"""Words and one vector each, and no more: what published vectors are."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from qkv.models.checks import check_config

__all__ = ["WordTable", "WordTableConfig"]


@dataclass(frozen=True)
class WordTableConfig:
    """How large a table is."""

    words: int = 1
    dim: int = 100

    def __post_init__(self):
        check_config(self, "words", "dim")


class WordTable(nn.Module):
    """A row for each word."""

    Config = WordTableConfig

    def __init__(self, config: WordTableConfig):
        super().__init__()
        self.input = nn.Embedding(config.words, config.dim)

    def forward(self, words: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dim"]:
        return self.input(words)
