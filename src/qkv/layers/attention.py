"""The one attention layer. Everything in the package that looks at something looks through `attend`."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from qkv.layers.linear import Linear, side_by_side
from qkv.layers.mask import EVERYTHING, Mask
from qkv.layers.near import NearMask
from qkv.layers.score import ScaledDot, Score
from qkv.layers.window import Window

__all__ = ["Attention", "KeyValue", "Tap", "attend", "attention_weights"]


@dataclass(frozen=True)
class KeyValue:
    """What can be looked at: a key to be found by and a value to be read; a cache is a value too, no layer's state.

    ``room`` holds larger buffers that `append` fills in place, so that a cache grows without copying what it has. An
    appended-to cache has passed its room on and must not be appended to again.
    """

    key: Float[Tensor, "batch head key key_depth"]
    value: Float[Tensor, "batch head key value_depth"]
    room: tuple[Tensor, Tensor] | None = None

    def append(self, other: "KeyValue") -> "KeyValue":
        """With the keys of ``other`` after these."""
        had, more = self.key.shape[-2], other.key.shape[-2]
        room = self.room
        if room is None or room[0].shape[-2] < had + more:
            space = max(16, 2 * (had + more))
            room = tuple(old.new_empty(*old.shape[:-2], space, old.shape[-1]) for old in (self.key, self.value))
            room[0][..., :had, :], room[1][..., :had, :] = self.key, self.value
        room[0][..., had : had + more, :], room[1][..., had : had + more, :] = other.key, other.value
        return KeyValue(room[0][..., : had + more, :], room[1][..., : had + more, :], room)

    @classmethod
    def together(cls, parts: "list[KeyValue]", groups: list[Int[Tensor, "_"]], keys: int) -> "KeyValue":
        """One memory of ``keys`` places, of the memories of groups of its examples.

        Each head's keys lie side by side: worth a copy where they are looked at again and again.
        """
        examples = sum(len(rows) for rows in groups)
        whole = []
        for each in ([part.key for part in parts], [part.value for part in parts]):
            _, heads, _, depth = each[0].shape
            whole.append(each[0].new_zeros(examples, heads, keys, depth))
            for rows, part in zip(groups, each, strict=True):
                whole[-1][rows, :, : part.shape[2]] = part
        return cls(*whole)

    def select(self, index: Int[Tensor, "row"]) -> "KeyValue":
        """The examples at ``index`` of the batch, in that order."""
        return KeyValue(self.key.index_select(0, index), self.value.index_select(0, index))

    def shrink(self, index: Int[Tensor, "row"]) -> "KeyValue":
        """As `select`, but where there is room in place: only what moves is copied, and this cache is used up."""
        if self.room is None:
            own = self.select(index)
            return KeyValue(own.key, own.value, room=(own.key, own.value))
        count, had = len(index), self.key.shape[-2]
        moved = (index != torch.arange(count, device=index.device)).nonzero()[:, 0]
        for buffer in self.room:
            buffer[moved, :, :had] = buffer[index[moved], :, :had]
        room = (self.room[0][:count], self.room[1][:count])
        return KeyValue(room[0][..., :had, :], room[1][..., :had, :], room)


@runtime_checkable
class Tap(Protocol):
    """What a trace sets on a layer: it sees what the layer looks at or, if it says that it intervenes, edits it."""

    intervenes: bool

    def see(self, query: Tensor, memory: KeyValue, score: Score, mask: Mask, bias: Tensor | None) -> None: ...

    def edit(self, weights: Tensor, mask: Mask) -> Tensor: ...


def attention_weights(
    scores: Float[Tensor, "*batch head query key"], keep: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch head query key"]:
    """Softmax over the keys, in float32 whatever comes in. A row that may attend nowhere is all zeros."""
    scores = scores.float()
    if keep is None:
        return scores.softmax(-1)
    # A hidden score is minus infinity; a row of nothing else would be 0/0, so its scores are made plain numbers first
    # and its weights zero afterwards: finite values and gradients, without a branch on the data.
    somewhere = keep.any(-1, keepdim=True)
    return scores.masked_fill(~keep & somewhere, float("-inf")).softmax(-1) * somewhere


def attend(
    query: Float[Tensor, "batch head query query_depth"],
    memory: KeyValue,
    score: Score,
    *,
    mask: Mask = EVERYTHING,
    bias: Float[Tensor, "#batch head query key"] | None = None,
    dropout: float = 0.0,
    tap: Tap | None = None,
) -> Float[Tensor, "batch head query value_depth"]:
    """Weighted sum of values: softmax(score(query, key)) value (Vaswani et al. 2017, eq. 1).

    The keys of ``memory`` are as the score's ``remember`` leaves them (as they are, for all but the additive score).

    Fused into one kernel whenever the score is a dot product. A watching tap computes the weights beside it and never
    changes the output; only a tap that says that it intervenes is given the weights to edit.
    """
    folded = score.fold(query, memory.key)
    queries, keys = query.shape[-2], memory.key.shape[-2]
    intervenes = tap is not None and tap.intervenes
    if tap is not None and not intervenes:
        tap.see(query, memory, score, mask, bias)
    # For a single query on a CPU the fused kernel is mostly overhead: two small products are up to twice as fast.
    single = queries == 1 and query.device.type == "cpu" and not torch.compiler.is_compiling()
    if folded is not None and not intervenes and not single:
        query, key, scale = folded
        if isinstance(mask, NearMask) and mask.tiles is not None:
            tiles = mask.tiles
            parts = tiles.cut(query, tiles.queries), tiles.cut(key, tiles.keys), tiles.cut(memory.value, tiles.keys)
            bias = tiles.bias(
                query.new_zeros(1, query.shape[1], queries, keys) if bias is None else bias.to(query.dtype)
            )
            return tiles.join(
                functional.scaled_dot_product_attention(*parts, attn_mask=bias, scale=scale, dropout_p=dropout)
            )
        arguments = mask.fused(queries, keys, query.device)
        if bias is not None:
            keep, bias = mask.dense(queries, keys, query.device), bias.to(query.dtype)
            if keep is not None:  # what is hidden has no heads: far less to fill than the bias of all of them
                bias = bias + torch.zeros_like(keep, dtype=bias.dtype).masked_fill_(~keep, float("-inf"))
            arguments = {"attn_mask": bias}
        return functional.scaled_dot_product_attention(
            query, key, memory.value, scale=scale, dropout_p=dropout, **arguments
        )
    scores = score.scores(query, memory.key)
    weights = attention_weights(scores if bias is None else scores + bias, mask.dense(queries, keys, query.device))
    if intervenes:
        weights = tap.edit(weights, mask)
    return functional.dropout(weights, dropout).to(memory.value.dtype) @ memory.value


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2), and with one head and no projections everyone else's.

    Args:
        dim: width of the query and of the output.
        heads: how many heads share the width.
        memory_width: width of what is looked at, if it is not ``dim``.
        score: how query and key are compared; scaled dot product if not given.
        bias: a module that gives what is added to the scores, ``(1, head, query, key)``, for the lengths of what is
            looked over: the tokens, or the rows and columns of a window (see `RelativeBias`).
        window: look inside windows of a grid only; queries are then given as ``(batch, row, column, dim)``.
        project: learn the four projections; False compares the states themselves.
        dropout: of the weights, in training (the paper drops only the layer's output, which is the block's part).
        between: the names of the two streams that the layer connects, query first; a trace finds their axes by them.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        memory_width: int | None = None,
        score: Score | None = None,
        bias: nn.Module | None = None,
        window: Window | None = None,
        project: bool = True,
        dropout: float = 0.0,
        between: tuple[str, str] = ("tokens", "tokens"),
    ):
        super().__init__()
        if dim % heads:
            raise ValueError(f"dim {dim} cannot be shared evenly by {heads} heads")
        self.heads, self.dropout, self.between = heads, dropout, between
        self.score = score if score is not None else ScaledDot()
        self.bias, self.window = bias, window
        self.tap: Tap | None = None
        memory_width = memory_width or dim
        self.query = Linear(dim, dim) if project else nn.Identity()
        self.key = Linear(memory_width, dim) if project else nn.Identity()
        self.value = Linear(memory_width, dim) if project else nn.Identity()
        self.output = Linear(dim, dim) if project else nn.Identity()
        for layer in (self.query, self.key, self.value, self.output) if project else ():
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def remember(self, memory: Float[Tensor, "batch key memory"]) -> KeyValue:
        """Keys and values of a memory, computed once however often it is looked at."""
        return self._remembered(*side_by_side((self.key, self.value), memory))

    def forward(
        self,
        query: Float[Tensor, "batch *query dim"],
        memory: Float[Tensor, "batch key memory"] | KeyValue | None = None,
        *,
        mask: Mask = EVERYTHING,
        first: int | None = None,
    ) -> Float[Tensor, "batch *kept output"]:
        """Look from each query into ``memory`` (into the queries themselves if None).

        With ``first``, only so many of the queries are answered, which is all that is read of a last layer; a trace
        still sees all of them.
        """
        if self.window is None:
            over = query.shape[1:-1]
            seen = self._look(query.flatten(1, -2), memory, mask, over, first)
            return seen if first else seen.unflatten(1, over)
        if memory is not None or mask is not EVERYTHING:
            raise ValueError("a window looks into itself: it takes no memory, and makes its own mask")
        windows = self.window.over(*query.shape[1:-1])
        seen = self._look(windows.split(query), None, windows.mask(len(query), query.device), windows.size)
        return windows.join(seen)

    def _look(
        self,
        query: Tensor,
        memory: Tensor | KeyValue | None,
        mask: Mask,
        over: tuple[int, ...],
        first: int | None = None,
    ) -> Tensor:
        tap, dropout = self.tap, self.dropout if self.training else 0.0
        if first is not None and tap is not None and tap.intervenes:  # what edits is given all queries
            return self._look(query, memory, mask, over)[:, :first]
        bias = None if self.bias is None else self.bias(*over)
        if memory is None and first is None:
            asked, key, value = side_by_side((self.query, self.key, self.value), query)
            memory = self._remembered(key, value)
        else:
            asked = self.query(query[:, :first])
            if not isinstance(memory, KeyValue):
                memory = self.remember(query if memory is None else memory)
        if first is not None:
            if tap is not None:  # what watches sees all of them, beside the answer
                tap.see(self._split(self.query(query)), memory, self.score, mask, bias)
            tap, mask, bias = None, mask.first(first), None if bias is None else bias[..., :first, :]
        seen = attend(self._split(asked), memory, self.score, mask=mask, bias=bias, dropout=dropout, tap=tap)
        return self.output(seen.transpose(1, 2).flatten(2))

    def _remembered(self, key: Tensor, value: Tensor) -> KeyValue:
        return KeyValue(self.score.remember(self._split(key)), self._split(value))

    def _split(self, states: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch head token depth"]:
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)
