"""Published weight names and ours, as a two-column table that is read in both directions.

A name may have holes: ``encoder.{block}.attention.query.{part}`` stands for the name of every block and part, and a
hole of one column stands for the same text in the other. A hole holds one step of a path (anything without a dot).

================  ===========================================================================================
rule              what it says
================  ===========================================================================================
`Rename`          ours and theirs are the same tensor
`Transpose`       theirs is our matrix transposed
`Permute`         theirs has our dimensions in another order
`Heads`           theirs is our vector or transposed matrix, one of its dimensions parted into heads
`Row`             theirs is our vector as a matrix of one row
`Fuse`            theirs is several of ours, one after the other (one matrix for query, key and value)
`Split`           ours is several of theirs, one after the other
`Tied`            one tensor with several names on both sides
`Counter`         ours also counts the batches of a batch norm, which old files do not
`Drop`            theirs has no place in ours, being computed there (a table of sinusoids)
================  ===========================================================================================
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.errors import RunError

__all__ = [
    "Counter", "Drop", "Fuse", "Heads", "Layout", "Permute", "Rename", "Row", "Rule", "Split", "Tied", "Transpose",
    "columns",
]  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """Our names and theirs for the same numbers; `load` makes our tensors of theirs, `save` theirs of ours."""

    ours: str | tuple[str, ...]
    theirs: str | tuple[str, ...]

    def load(self, theirs: list[Tensor]) -> list[Tensor]:
        return theirs

    def save(self, ours: list[Tensor]) -> list[Tensor]:
        return ours


class Rename(Rule):
    """The same tensor under another name."""


class Transpose(Rule):
    """Their matrix is ours transposed."""

    def load(self, theirs):
        return [theirs[0].T.contiguous()]

    def save(self, ours):
        return [ours[0].T.contiguous()]


@dataclass(frozen=True)
class Permute(Rule):
    """Dimension i of ours is dimension ``order[i]`` of theirs."""

    order: tuple[int, ...] = ()

    def load(self, theirs):
        return [theirs[0].permute(self.order).contiguous()]

    def save(self, ours):
        return [ours[0].permute([self.order.index(i) for i in range(len(self.order))]).contiguous()]


@dataclass(frozen=True)
class Heads(Rule):
    """Their kernel, of shape (in, out), is ours transposed, its dimension ``dim`` parted into heads, as flax does."""

    heads: int = 1
    dim: int = 0

    def load(self, theirs):
        return [theirs[0].flatten(self.dim, self.dim + 1).t().contiguous()]

    def save(self, ours):
        return [ours[0].t().unflatten(self.dim, (self.heads, -1)).contiguous()]


class Row(Rule):
    """Their matrix of one row is our vector."""

    def load(self, theirs):
        return [theirs[0].squeeze(0)]

    def save(self, ours):
        return [ours[0].unsqueeze(0)]


@dataclass(frozen=True)
class Fuse(Rule):
    """Theirs is ``ours`` joined along ``dim``, all of one size: ``Fuse(("q.{p}", "k.{p}", "v.{p}"), "qkv.{p}")``."""

    dim: int = 0

    def load(self, theirs):
        return [part.contiguous() for part in theirs[0].chunk(len(self.ours), self.dim)]

    def save(self, ours):
        return [torch.cat(ours, self.dim)]


@dataclass(frozen=True)
class Split(Rule):
    """Ours is ``theirs`` joined along ``dim``, all of one size."""

    dim: int = 0

    def load(self, theirs):
        return [torch.cat(theirs, self.dim)]

    def save(self, ours):
        return [part.contiguous() for part in ours[0].chunk(len(self.theirs), self.dim)]


class Tied(Rule):
    """One tensor that goes by all these names. A file may hold it under any of them; `save` writes the first one."""

    def load(self, theirs):
        return [_one(theirs, self.theirs)] * len(self.ours)

    def save(self, ours):
        return [_one(ours, self.ours)]


class Counter(Rule):
    """Ours is theirs and a count of batches, which begins at zero; ``Counter((mean, count), mean)``."""

    def load(self, theirs):
        return [*theirs, torch.zeros((), dtype=torch.int64)]

    def save(self, ours):
        return ours[:1]


class Drop(Rule):
    """Their tensor is left out; ``Drop((), name)``."""

    def load(self, theirs):
        return []


@dataclass(frozen=True)
class Layout:
    """All rules of one published model. Each name on either side must fit exactly one of them.

    Law: ``load(save(ours)) == ours``, and ``save(load(theirs)) == theirs`` but for what is dropped or there twice.
    """

    rules: tuple[Rule, ...]

    def load(self, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Our tensors by our names.

        Raises:
            RunError: names that no rule knows, or partners of a fused tensor that are missing, all listed.
        """
        return self._turn(theirs, lambda rule: (rule.theirs, rule.ours, rule.load))

    def save(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Their tensors by their names; raises as `load` does."""
        return self._turn(ours, lambda rule: (rule.ours, rule.theirs, rule.save))

    def _turn(self, given: Mapping[str, Tensor], direction: Callable) -> dict[str, Tensor]:
        made: dict[str, Tensor] = {}
        left, missing = dict.fromkeys(given), []
        for rule in self.rules:
            given_names, made_names, make = direction(rule)
            given_names, made_names = _tuple(given_names), _tuple(made_names)
            for holes in _fillings(given_names, left):
                wanted = [name.format(**holes) for name in given_names]
                found = [name for name in wanted if name in left]
                for name in found:
                    del left[name]
                if len(found) < len(wanted) and not isinstance(rule, Tied):
                    missing += [name for name in wanted if name not in found]
                    continue
                tensors = make([given[name] for name in found])
                made.update(zip((name.format(**holes) for name in made_names), tensors, strict=False))
        if left or missing:
            lists = [f"{word} {', '.join(names)}" for word, names in (("unknown", left), ("missing", missing)) if names]
            raise RunError("weights that do not fit the model: " + "; ".join(lists))
        return made


def columns(table: str) -> tuple[Rename, ...]:
    """Renames from lines of two words, ours and theirs."""
    return tuple(Rename(*line.split()) for line in table.splitlines() if line.strip())


def _fillings(patterns: Sequence[str], names: Mapping[str, None]) -> list[dict[str, str]]:
    """What the holes can stand for, each once, in the order of ``names``."""
    expressions = [re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))) for pattern in patterns]
    matches = (expression.fullmatch(name) for name in names for expression in expressions)
    return [dict(filling) for filling in dict.fromkeys(tuple(match.groupdict().items()) for match in matches if match)]


def _one(tensors: list[Tensor], names: Sequence[str]) -> Tensor:
    for tensor in tensors[1:]:
        if not torch.equal(tensor, tensors[0]):
            raise RunError(f"{' and '.join(names)} should be one tensor, but they differ")
    return tensors[0]


def _tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
