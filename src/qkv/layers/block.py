"""Blocks of the Transformer: attention and a feed-forward part, each with a residual connection and a norm."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.errors import ConfigError, nearest
from qkv.layers.attention import Attention, KeyValue
from qkv.layers.dropout import Dropout
from qkv.layers.linear import Linear
from qkv.layers.mask import CAUSAL, EVERYTHING, Mask
from qkv.layers.norm import NORMS
from qkv.layers.stochastic_depth import StochasticDepth

__all__ = ["ACTIVATIONS", "DecoderBlock", "EncoderBlock", "FeedForward", "Past", "Residual"]

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}
IN_PLACE = {nn.ReLU: torch.ops.aten.relu_, nn.GELU: torch.ops.aten.gelu_, nn.SiLU: torch.ops.aten.silu_}
WIDE = 2**22  # numbers; larger tensors are given to the system and taken from it each time, which takes long


class FeedForward(nn.Module):
    """Two linear layers with a non-linearity between, the same for every token (Vaswani et al. 2017, eq. 2)."""

    def __init__(self, dim: int, hidden: int, activation: str = "relu"):
        super().__init__()
        self.expand = Linear(dim, hidden)
        self.activation = ACTIVATIONS[activation]()
        self.reduce = Linear(hidden, dim)
        for layer in (self.expand, self.reduce):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self.reduce(self.activation(self.expand(states)))
        # What no gradient needs is not kept: the wide states are overwritten, and few of them are there at a time.
        activate = IN_PLACE[type(self.activation)]
        parts = -(-states.numel() // states.shape[-1] * self.expand.out_features // WIDE)
        if parts <= 1 or states.device.type != "cpu":
            return self.reduce(activate(self.expand(states)))
        rows = states.flatten(0, -2).chunk(parts)
        return torch.cat([self.reduce(activate(self.expand(some))) for some in rows]).view(states.shape)


class Residual(nn.Module):
    """Add & Norm: the norm after the sum as in the paper ("post"), or before the layer ("pre", Xiong et al. 2020).

    Args:
        dropout: of what the layer adds.
        skip: chance that it adds nothing to an example, in training (see `StochasticDepth`).
    """

    def __init__(
        self,
        dim: int,
        order: str = "post",
        norm: str = "layer",
        dropout: float = 0.0,
        eps: float = 1e-5,
        skip: float = 0.0,
    ):
        super().__init__()
        if order not in ("pre", "post"):
            raise ConfigError(f"order {order!r} of the norm is unknown", remedy=nearest(order, ("pre", "post")))
        self.order, self.norm = order, NORMS[norm](dim, eps)
        self.dropout, self.skip = Dropout(dropout), StochasticDepth(skip)

    def forward(
        self, states: Float[Tensor, "batch *token dim"], layer, real: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch *kept dim"]:
        """``norm(states + layer(states))``, or ``states + layer(norm(states))``.

        Where the layer answers for the first tokens only, so does this.
        """
        made = self.skip(self.dropout(layer(self.norm(states, real) if self.order == "pre" else states)))
        if made.shape[1] < states.shape[1]:
            states, real = states[:, : made.shape[1]], None if real is None else real[:, : made.shape[1]]
        return states + made if self.order == "pre" else self.norm(states + made, real)


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward (Vaswani et al. 2017, figure 1 left). ``residual`` makes each Add & Norm."""

    def __init__(self, attention: Attention, feed_forward: FeedForward, residual):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_residual, self.feed_forward_residual = residual(), residual()

    def forward(
        self,
        states: Float[Tensor, "batch *token dim"],
        mask: Mask = EVERYTHING,
        real: Bool[Tensor, "batch token"] | None = None,
        first: int | None = None,
    ) -> Float[Tensor, "batch *kept dim"]:
        """The states of all tokens, or of the ``first`` so many, where no more is read."""
        states = self.attention_residual(states, lambda x: self.attention(x, mask=mask, first=first), real)
        real = None if real is None else real[:, :first]
        return self.feed_forward_residual(states, self.feed_forward, real)


class DecoderBlock(nn.Module):
    """Masked self-attention, a look at the memory, then feed-forward (Vaswani et al. 2017, figure 1 right)."""

    def __init__(self, attention: Attention, cross: Attention, feed_forward: FeedForward, residual):
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.attention_residual, self.cross_residual, self.feed_forward_residual = residual(), residual(), residual()

    def forward(
        self,
        states: Float[Tensor, "batch token dim"],
        memory: Float[Tensor, "batch key memory"] | KeyValue,
        memory_mask: Mask = EVERYTHING,
        *,
        mask: Mask = CAUSAL,
        past: "Past | None" = None,
        real: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """All target positions at once, or, with a ``past``, the newest token of each hypothesis of a search.

        Hypotheses are then the queries of one shared past and one shared memory; ``mask`` says whose token is whose.
        """

        def look_back(x: Tensor) -> Tensor:
            return self.attention(x, past.with_newest(self.attention.remember(x)) if past else None, mask=mask)

        states = self.attention_residual(states, look_back, real)
        states = self.cross_residual(states, lambda x: self.cross(x, memory, mask=memory_mask), real)
        return self.feed_forward_residual(states, self.feed_forward, real)


@dataclass
class Past:
    """The keys and values of a block's earlier tokens; the block adds the newest ones when it has computed them."""

    tokens: KeyValue | None = None

    def with_newest(self, newest: KeyValue) -> KeyValue:
        """All tokens so far, the newest last."""
        self.tokens = newest if self.tokens is None else self.tokens.append(newest)
        return self.tokens
