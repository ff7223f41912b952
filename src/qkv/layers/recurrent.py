"""Recurrent parts: an encoder that reads a text step by step, and a decoder that may look back at what was read."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from qkv.layers.attention import Attention, KeyValue
from qkv.layers.mask import Mask

__all__ = ["CELLS", "Carried", "RecurrentDecoder", "RecurrentEncoder", "reverse"]

CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@dataclass(frozen=True)
class Carried:
    """What a recurrent decoder hands on from step to step, for each hypothesis of each example.

    Attributes:
        cells: state of each layer, and of an LSTM also its memory cell.
        said: the vector that the last word was predicted from.
    """

    cells: tuple[Float[Tensor, "layer example abreast dim"], ...]
    said: Float[Tensor, "example abreast dim"]

    @classmethod
    def begin(cls, cells: tuple[Float[Tensor, "layer example dim"], ...]) -> "Carried":
        """One hypothesis for each example, before its first step."""
        return cls(tuple(each[:, :, None] for each in cells), torch.zeros_like(cells[0][-1])[:, None])

    def select(self, parents: Int[Tensor, "example abreast"]) -> "Carried":
        """Each new hypothesis goes on from its parent."""
        examples = torch.arange(len(parents), device=parents.device)[:, None]
        return Carried(tuple(each[:, examples, parents] for each in self.cells), self.said[examples, parents])

    def keep(self, examples: Int[Tensor, "kept"]) -> "Carried":
        """Only these examples."""
        return Carried(tuple(each.index_select(1, examples) for each in self.cells), self.said[examples])


class RecurrentEncoder(nn.Module):
    """Reads a text with a recurrent network; padding never enters a state.

    Args:
        dim: width of a token's vector and of a state; two directions share it.
        depth: layers.
        cell: "rnn" (Elman 1990, with tanh), "gru" (Cho et al. 2014) or "lstm" (Hochreiter and Schmidhuber 1997).
        both_ways: half of each state reads from the right (Schuster and Paliwal 1997).
        backward: read from the last word to the first (Sutskever et al. 2014, section 3.3). States still lie at the
            places of their words.
        dropout: between layers.
    """

    def __init__(self, dim: int, depth: int, cell: str, both_ways: bool, backward: bool, dropout: float):
        super().__init__()
        self.backward = backward
        self.cells = CELLS[cell](
            dim, dim // (1 + both_ways), depth, batch_first=True, bidirectional=both_ways,
            dropout=dropout if depth > 1 else 0.0,
        )  # fmt: skip

    def forward(
        self, vectors: Float[Tensor, "batch token dim"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch token dim"], tuple[Float[Tensor, "layer batch dim"], ...]]:
        """The state at each token, and where each layer ended: the fixed vector that stands for the whole text."""
        if self.backward:
            vectors = reverse(vectors, lengths)
        # A text of no tokens is not allowed here; it is given one, and what came of it is taken back.
        packed = pack_padded_sequence(vectors, lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False)
        states, ended = self.cells(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=vectors.shape[1])
        if self.backward:
            states = reverse(states, lengths)
        ended = ended if isinstance(ended, tuple) else (ended,)
        ways = 2 if self.cells.bidirectional else 1
        something = (lengths > 0)[:, None]
        return states, tuple(each.unflatten(0, (-1, ways)).transpose(1, 2).flatten(2) * something for each in ended)


class RecurrentDecoder(nn.Module):
    """Writes a text with a recurrent network, looking at each step at what was read, if it has an attention.

    Args:
        dim: width of a token's vector and of a state.
        depth: layers.
        cell: as of `RecurrentEncoder`.
        attention: how a state looks at the encoder's states; None: the state it begins with is all that it has.
        order: "luong" steps first and looks from the new state (Luong et al. 2015, eq. 5); "bahdanau" looks from the
            last state and steps with what it saw (Bahdanau et al. 2015, eqs. 4 to 6).
        feed: "state": each step is also given what the last word was predicted from (input feeding, Luong et al. 2015,
            section 3.3); "none".
        dropout: between layers.

    In Luong's order with nothing fed no step waits for what another one saw: the whole target is read at once, and
    all its steps look at once.
    """

    def __init__(
        self, dim: int, depth: int, cell: str, attention: Attention | None, order: str, feed: str, dropout: float
    ):
        super().__init__()
        self.attention = attention
        self.looks_first, self.feeds = attention is not None and order == "bahdanau", feed == "state"
        width = dim * (1 + self.looks_first + self.feeds)
        self.cells = CELLS[cell](width, dim, depth, batch_first=True, dropout=dropout if depth > 1 else 0.0)
        self.join = nn.Linear(2 * dim, dim) if attention is not None else None

    def forward(
        self, vectors: Float[Tensor, "batch target dim"], memory: KeyValue | None, mask: Mask, carried: Carried
    ) -> Float[Tensor, "batch target dim"]:
        """What each next word is predicted from, all the words before it being given."""
        if not (self.looks_first or self.feeds):
            states, _ = self.cells(vectors, self._given(carried.cells))
            return self._join(states, self._look(states, memory, mask))
        said = []
        for vector in vectors.split(1, dim=1):
            carried = self.step(vector, memory, mask, carried)
            said.append(carried.said)
        return torch.cat(said, 1)

    def step(
        self, vectors: Float[Tensor, "example abreast dim"], memory: KeyValue | None, mask: Mask, carried: Carried
    ) -> Carried:
        """One step of each hypothesis; the hypotheses of an example are queries to one memory."""
        seen = self._look(carried.cells[0][-1], memory, mask) if self.looks_first else None
        inputs = torch.cat(
            [vectors, *([carried.said] if self.feeds else []), *([seen] if self.looks_first else [])], -1
        )
        states, cells = self.cells(inputs.flatten(0, 1)[:, None], self._given(carried.cells))
        cells = cells if isinstance(cells, tuple) else (cells,)
        states = states.view(*vectors.shape[:2], -1)
        if not self.looks_first:
            seen = self._look(states, memory, mask)
        return replace(
            carried, cells=tuple(each.unflatten(1, vectors.shape[:2]) for each in cells), said=self._join(states, seen)
        )

    def _look(self, states: Tensor, memory: KeyValue | None, mask: Mask) -> Tensor | None:
        return None if self.attention is None else self.attention(states, memory, mask=mask)

    def _join(self, states: Tensor, seen: Tensor | None) -> Tensor:
        """State and context side by side, projected back to the state's width (Luong et al. 2015, eq. 5)."""
        return states if seen is None else self.join(torch.cat([seen, states], -1)).tanh()

    def _given(self, cells: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
        """The states as torch's cells take them: hypotheses are rows, and only an LSTM has two."""
        rows = tuple(each.flatten(1, 2).contiguous() for each in cells)
        return rows if isinstance(self.cells, nn.LSTM) else rows[0]


def reverse(
    values: Shaped[Tensor, "batch token *rest"], lengths: Int[Tensor, "batch"]
) -> Shaped[Tensor, "batch token *rest"]:
    """Each example's tokens from the last to the first; its padding stays where it is, on the right."""
    places = torch.arange(values.shape[1], device=values.device)
    mirrored = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return values[torch.arange(len(values), device=values.device)[:, None], mirrored]
