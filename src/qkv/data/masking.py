"""Which tokens a masked language model must tell, and what it reads instead (Devlin et al. 2019, section 3.1)."""

from typing import NamedTuple

import numpy as np

__all__ = ["Masked", "mask_tokens"]

REPLACED, RANDOM = 0.8, 0.1  # of the chosen; the rest stay as they are


class Masked(NamedTuple):
    """``tokens`` with some of them hidden, and ``chosen``: where one must be told."""

    tokens: np.ndarray  # int64[row, token]
    chosen: np.ndarray  # bool[row, token]


def mask_tokens(
    tokens: np.ndarray,
    maskable: np.ndarray,
    mask: int,
    ordinary: np.ndarray,
    share: float,
    chance: np.random.Generator,
    opens: np.ndarray | None = None,
) -> Masked:
    """Choose ``share`` of the maskable tokens of each row, at least one; 8 of 10 become ``mask``, 1 of 10 a random one.

    Args:
        tokens: int64[row, token].
        maskable: bool[row, token]: no marks and no padding.
        ordinary: the ids that a random token is drawn from: no marks among them.
        opens: bool of each id: it begins a word; words are then chosen whole, until the share is reached.
    """
    wanted = np.maximum(np.rint(maskable.sum(1) * share), 1)[:, None]
    draws = chance.random(tokens.shape)
    if opens is None:
        order = np.argsort(np.where(maskable, draws, 2.0), axis=1)
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(tokens.shape[1])[None], axis=1)
        chosen = maskable & (ranks < wanted)
    else:
        chosen = _whole_words(tokens, maskable, wanted, draws, opens)
    what = chance.random(tokens.shape)
    drawn = ordinary[chance.integers(0, len(ordinary), tokens.shape)]
    hidden = np.where(what < REPLACED, mask, np.where(what < REPLACED + RANDOM, drawn, tokens))
    return Masked(np.where(chosen, hidden, tokens), chosen)


def _whole_words(
    tokens: np.ndarray, maskable: np.ndarray, wanted: np.ndarray, draws: np.ndarray, opens: np.ndarray
) -> np.ndarray:
    # A word ends at the next that opens, or where what may be hidden ends; its first token's draw is that of all.
    begins = opens[tokens] | ~maskable
    begins[:, 1:] |= ~maskable[:, :-1]
    begins[:, 0] = True
    rows, width = tokens.shape
    first = np.maximum.accumulate(np.where(begins, np.arange(width), 0), axis=1)
    draw = np.where(maskable, np.take_along_axis(draws, first, axis=1), 2.0)
    order = np.lexsort((np.broadcast_to(np.arange(width), draw.shape), draw), axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(width), order.shape), axis=1)
    # Tokens that come before a word's first in the order, and half of its own: words are taken to the nearest of them.
    flat = first + np.arange(rows)[:, None] * width
    sizes = np.bincount(flat[maskable], minlength=rows * width)[flat]
    before = np.take_along_axis(place, first, axis=1)
    return maskable & ((before + sizes / 2 <= wanted) | (before == 0))
