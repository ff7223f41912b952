"""Small things that many tests make: tensors settled by a seed, little Transformers, batches of token ids."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qkv.layers.attention import KeyValue
from qkv.models.transformer import Transformer, TransformerConfig

WORDS, PAD, END, START = 13, 0, 1, 2
SMALL = dict(
    source_words=WORDS, target_words=WORDS, dim=16, encoder_depth=2, decoder_depth=2, heads=4, hidden=32, dropout=0.0
)  # fmt: skip

RECURRENT = dict(source_words=WORDS, target_words=WORDS, dim=16, depth=2, dropout=0.0)


def tensor(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers that depend on nothing but the seed and the shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def memory(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> KeyValue:
    return KeyValue(tensor(seed, *shape, dtype=dtype), tensor(seed + 1, *shape, dtype=dtype))


def transformer(seed: int = 0, **changes) -> Transformer:
    """A small random Transformer in evaluation mode, its output sharp enough that words differ in chance."""
    torch.manual_seed(seed)
    return Transformer(TransformerConfig(**{**SMALL, **changes})).eval()


def texts(seed: int, lengths: Sequence[int]) -> list[list[int]]:
    """Random ids of ordinary words."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(START + 1, WORDS, (length,), generator=draw).tolist() for length in lengths]


def padded(rows: Sequence[Sequence[int]], width: int = 0, fill: int = PAD) -> tuple[Tensor, Tensor]:
    """``(ids, lengths)`` of texts side by side, padded on the right to the longest of them or to ``width``."""
    width = max(width, *(len(row) for row in rows))
    ids = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])
    return ids, torch.tensor([len(row) for row in rows])


def close(left: Tensor, right: Tensor, to: float = 1e-5) -> None:
    """Equal to an absolute and relative ``to``."""
    torch.testing.assert_close(left, right, atol=to, rtol=to)
