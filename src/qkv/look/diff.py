"""How far apart two records of the same texts are: two runs, two checkpoints, a run before and after fine-tuning."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.axis import Tokens
from qkv.errors import RunError
from qkv.look.record import Map, Trace

__all__ = ["Difference", "diff"]


@dataclass(frozen=True)
class Difference:
    """Total variation distance of the rows of one layer's map: 0 is the same row, 1 is rows without any key in common.

    ``rows[h, q]`` is half the sum over the keys of ``|a - b|``: the share of weight that would have to move.
    """

    name: str
    example: int
    rows: Float[Tensor, "head query"]
    heads: tuple[int, ...]
    queries: tuple[int, ...]

    @property
    def mean(self) -> float:
        return float(self.rows.mean()) if self.rows.numel() else 0.0

    @property
    def largest(self) -> tuple[float, int, int]:
        """The largest distance, and its head and query position."""
        place = int(self.rows.argmax())
        head, query = divmod(place, self.rows.shape[1])
        return float(self.rows[head, query]), self.heads[head], self.queries[query]

    def __str__(self) -> str:
        value, head, query = self.largest
        return f"{self.name}: mean {self.mean:.3f}, largest {value:.3f} (head {head}, position {query})"


def diff(a: Trace, b: Trace) -> list[Difference]:
    """The differences of two records, map by map.

    Errors:
        RunError: the two do not hold the same layers, heads, rows or texts; named is the first that differs.
    """
    if list(a) != list(b):
        odd = sorted(set(a) ^ set(b))
        raise RunError(
            f"the records hold different layers ({', '.join(odd) or 'in another order'})",
            remedy="trace both with the same layers=...",
        )
    found = []
    for name in a:
        if len(a[name]) != len(b[name]):
            raise RunError(f"{name}: {len(a[name])} examples against {len(b[name])}", expected="the same in both")
        for example, (one, other) in enumerate(zip(a[name], b[name], strict=True)):
            _check_alike(one, other)
            rows = (one.weights.cpu().double() - other.weights.cpu().double()).abs().sum(-1).float() / 2
            found.append(Difference(name, example, rows, one.heads, one.queries))
    return found


def _check_alike(one: Map, other: Map) -> None:
    for axis in ("query", "key"):
        mine, yours = getattr(one, axis), getattr(other, axis)
        if mine != yours:
            shown = [item.text if isinstance(item, Tokens) else str(item) for item in (mine, yours)]
            if shown[0] == shown[1]:  # the same text, cut into other pieces
                shown = [" ".join(item.pieces) for item in (mine, yours)]
            raise RunError(f"{one.name}: {axis} {shown[0]!r} against {shown[1]!r}", expected="the same text in both")
    if one.heads != other.heads or one.queries != other.queries:
        raise RunError(
            f"{one.name}: other heads or rows were recorded",
            remedy="trace both with the same heads=... and queries=...",
        )
    same = (one.where is None) == (other.where is None) and (one.where is None or torch.equal(one.where, other.where))
    if not same:
        raise RunError(f"{one.name}: other windows", expected="the same windows in both records")
