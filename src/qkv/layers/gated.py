"""The decoder of Show, Attend and Tell: an LSTM that looks before each step, through a gate."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.layers.attention import Attention, KeyValue
from qkv.layers.linear import Linear
from qkv.layers.recurrent import Carried

__all__ = ["FixedContext", "GatedDecoder"]


class FixedContext(nn.Module):
    """The mean of a memory, whatever the state: what a decoder without attention is given at each step."""

    def remember(self, memory: Float[Tensor, "batch key width"]) -> KeyValue:
        mean = memory.mean(1)[:, None, None]
        return KeyValue(mean, mean)

    def forward(self, query: Float[Tensor, "batch query dim"], memory: KeyValue) -> Float[Tensor, "batch query width"]:
        return memory.value[:, 0].expand(-1, query.shape[1], -1)


class GatedDecoder(nn.Module):
    """Writes a text with an LSTM that is given, at each step, the word before and what the last state looked at.

    Xu et al. 2015, "Show, Attend and Tell": eqs. 1 to 3 (the LSTM), 4 to 6 and 13 (the look), 7 (the deep output), and
    section 4.2.1 (the gate).

    Args:
        dim: width of a word's vector and of a state.
        width: of a cell of the memory.
        attention: how a state looks at the memory; `FixedContext` does not look.
        gated: what was seen is multiplied by a number from 0 to 1, beta, which the state tells.
    """

    def __init__(self, dim: int, width: int, attention: Attention | FixedContext, gated: bool = True):
        super().__init__()
        self.attention = attention
        self.gate = nn.Sequential(nn.Linear(dim, 1), nn.Sigmoid()) if gated else None
        self.begin_state, self.begin_cell = nn.Linear(width, dim), nn.Linear(width, dim)
        self.of_word = Linear(dim, 4 * dim)
        self.of_past = Linear(dim + width, 4 * dim, bias=False)
        self.tell_state, self.tell_seen = Linear(dim, dim), Linear(width, dim, bias=False)

    def begin(self, memory: Float[Tensor, "batch key width"]) -> Carried:
        """State and memory cell before the first word, each a layer's reading of the memory's mean (section 3.1.2)."""
        mean = memory.mean(1)
        return Carried.begin((self.begin_state(mean).tanh()[None], self.begin_cell(mean).tanh()[None]))

    def forward(
        self, vectors: Float[Tensor, "batch target dim"], memory: KeyValue, carried: Carried
    ) -> Float[Tensor, "batch target dim"]:
        """What each next word is predicted from, all the words before it being given.

        Only the looks and the state go step by step: what words alone decide, and the outputs, are made for all steps
        at once.
        """
        given = self.of_word(vectors)
        state, cell = (each[0] for each in carried.cells)
        states, seen = [], []
        for place in range(vectors.shape[1]):
            state, cell, context = self._turn(given[:, place : place + 1], memory, state, cell)
            states.append(state)
            seen.append(context)
        return self._said(vectors, torch.cat(states, 1), torch.cat(seen, 1))

    def step(self, vectors: Float[Tensor, "example abreast dim"], memory: KeyValue, carried: Carried) -> Carried:
        """One step of each hypothesis; the hypotheses of an example are queries to one memory."""
        state, cell = (each[0] for each in carried.cells)
        state, cell, seen = self._turn(self.of_word(vectors), memory, state, cell)
        return Carried((state[None], cell[None]), self._said(vectors, state, seen))

    def _turn(self, given: Tensor, memory: KeyValue, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = self.attention(state, memory)
        if self.gate is not None:
            seen = self.gate(state) * seen
        put, keep, show, new = (given + self.of_past(torch.cat([state, seen], -1))).chunk(4, -1)
        cell = keep.sigmoid() * cell + put.sigmoid() * new.tanh()
        return show.sigmoid() * cell.tanh(), cell, seen

    def _said(self, vectors: Tensor, states: Tensor, seen: Tensor) -> Tensor:
        """Word, state and context as one vector (eq. 7, up to the last matrix, which is the model's output layer)."""
        return vectors + self.tell_state(states) + self.tell_seen(seen)
