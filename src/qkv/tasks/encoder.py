"""Many texts through an encoder: sorted by length, so that little padding is read, and back in their own order."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.data.buckets import by_length
from qkv.data.texts_batches import padded

__all__ = ["BATCH_TOKENS", "run_rows"]

BATCH_TOKENS = 8192  # padded tokens that run at once


def run_rows(
    model: nn.Module,
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    pad: int,
    batch_tokens: int = BATCH_TOKENS,
) -> list[Float[Tensor, "*token output"]]:
    """The logits of each row of ``(ids, segments)``: of the text, or with a head for tags of each of its tokens."""
    device, each = next(model.parameters()).device, model.config.head == "tag"
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    for batch in by_length([len(ids) for ids, _ in rows], batch_tokens):
        tokens, lengths, segments = (
            x.to(device) for x in padded([rows[i][0] for i in batch], [rows[i][1] for i in batch], pad)
        )
        with torch.inference_mode():
            logits = model.classify(model(tokens, lengths, segments), lengths).float().cpu()
        for i, row in zip(batch, logits, strict=True):
            found[i] = row[: len(rows[i][0])] if each else row
    return found
