"""Masks: which keys a query may attend to. Boolean, and True = *may attend*, everywhere in the package."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["CAUSAL", "EVERYTHING", "Mask", "padding", "real_places"]


@dataclass(frozen=True)
class Mask:
    """Where ``keep`` is True a query may attend; ``causal`` also hides what comes after it.

    ``causal`` stays a flag, since a matrix would rule out the fast kernels. It is aligned at the **bottom right**: the
    last query is the newest token and sees every key, also when keys of earlier steps came from a cache.

    Attributes:
        keep: broadcastable to ``(batch, head, query, key)``; None hides nothing.
        causal: a query sees only the keys up to its own place.
    """

    keep: Bool[Tensor, "*#batch #query #key"] | None = None
    causal: bool = False

    def __post_init__(self):
        if self.keep is not None and self.keep.dtype != torch.bool:
            found = self.keep.dtype
            raise TypeError(f"a mask is boolean (True = may attend), not {found}; use keep.bool() or keep == 0")

    def __and__(self, other: "Mask") -> "Mask":
        """What both allow."""
        keep = self.keep if other.keep is None else other.keep if self.keep is None else self.keep & other.keep
        return Mask(keep, self.causal or other.causal)

    def first(self, queries: int) -> "Mask":
        """Of the first so many queries."""
        if self.causal:
            raise ValueError("the first queries of a causal mask are not its newest tokens")
        return self if self.keep is None or self.keep.shape[-2] == 1 else Mask(self.keep[..., :queries, :])

    def dense(self, queries: int, keys: int, device: torch.device | None = None) -> Bool[Tensor, "..."] | None:
        """The whole mask as one boolean matrix; None if it hides nothing."""
        if not self.causal or queries == 1:  # one query is the newest token: it may see every key
            return self.keep
        below = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
        return below if self.keep is None else self.keep & below

    def fused(self, queries: int, keys: int, device: torch.device | None = None) -> dict:
        """The arguments that say this to ``scaled_dot_product_attention``.

        Its ``is_causal`` is aligned at the top left, which is the same thing only for as many queries as keys.
        """
        if self.causal and self.keep is None and queries == keys:
            return {"is_causal": queries > 1}
        return {"attn_mask": self.dense(queries, keys, device)}


EVERYTHING = Mask()
CAUSAL = Mask(causal=True)


def padding(lengths: Int[Tensor, "batch"], keys: int) -> Mask:
    """Hide the keys past each example's length (batches are padded on the right)."""
    return Mask(real_places(lengths, keys)[:, None, None, :])


def real_places(lengths: Int[Tensor, "batch"], longest: int) -> Bool[Tensor, "batch longest"]:
    """Which places are no padding, of batches padded on the right."""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]
