"""What an encoder of texts looks at while it answers, and what its answer hangs on.

Beside the maps of attention stand maps of the kind "relevance": a row for each possible answer, over the tokens read.

- ``relevance.attention``: gradient times attention, rolled out over the layers (`qkv.look.rollout.gradient_rollout`;
  Chefer, Gur & Wolf 2021, eqs. 5 and 6): R = I; for each layer R += E_h[(dy/dA * A)+] R. What is shown is the row of
  R - I of the token that is read off (the mean of all rows where all are): what attention brought there.
- ``relevance.gradient``: the length of the gradient of the answer at each token's vector (`qkv.look.saliency`).

Each row is divided by its sum, so that rows compare.
"""

import fnmatch
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from qkv.axis import Tokens
from qkv.data.text_codec import Encoded
from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.look.record import Map, Trace
from qkv.look.rollout import gradient_rollout
from qkv.look.trace import Edit, ablate, no_attention, position_maps, trace

__all__ = ["ATTENTION", "GRADIENT", "Outcome", "Reading", "head_effects", "inputs", "look_at", "relevance", "silenced"]

ATTENTION, GRADIENT = "relevance.attention", "relevance.gradient"
INSTEAD = "Shown is the gradient, that is, what each answer hangs on."

Score = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Outcome:
    """Something that a model may say of a text: its name, and its score (a number) from ``(states, lengths)``.

    ``reads`` is the token that it is read off; None where that is the model's pool.
    """

    name: str
    score: Score
    reads: int | None = None


@dataclass(frozen=True)
class Reading:
    """A text as a model reads it, what it may say of it, likeliest first, and what it says: what a look begins with."""

    encoded: Encoded
    axis: Tokens
    outcomes: Sequence[Outcome]
    said: str
    remark: str = ""


def look_at(model: nn.Module, reading: Reading, edit: Edit | None = None, **which) -> Trace:
    """One traced pass: maps of attention, of positions, and of relevance to each outcome.

    ``which`` goes to `qkv.trace`: layers, heads, queries. With an ``edit`` the maps are those of the edited model; what
    is relevant is that of the model as it is. The notes hold the scores of the outcomes, edited and not.
    """
    axes = {"tokens": [reading.axis], "pool": [Tokens(("[pool]",), ((0, 0),), "")]}
    given = inputs(model, reading.encoded)

    def scores() -> dict[str, float]:
        states = model(*given)  # a pool looks when the answer is read off
        return {outcome.name: float(outcome.score(states, given[1])) for outcome in reading.outcomes}

    seen = Trace()
    looks = any(isinstance(module, Attention) for module in model.modules())
    remarks = [*filter(None, [reading.remark]), *([] if looks else [no_attention(which, INSTEAD)])]
    with torch.inference_mode():
        if looks:
            with trace(model, axes=axes, edit=edit, **which) as found:
                seen.notes["edited" if edit is not None else "scores"] = scores()
            seen.maps.update(found.maps)
            seen.maps.update(position_maps(model, axes, which.get("layers", "*")).maps)
        if "scores" not in seen.notes:
            seen.notes["scores"] = scores()
    seen.maps.update({map.name: [map] for map in relevance(model, reading)})
    seen.notes.update(source=reading.axis.text, target=reading.said)
    if remarks:
        seen.notes["remark"] = " ".join(remarks)
    return seen


def relevance(model: nn.Module, reading: Reading) -> list[Map]:
    """The maps of relevance; a model without attention has that of the gradient only. One pass serves all outcomes."""
    given = inputs(model, reading.encoded)
    weights: dict[str, Tensor] = {}
    vectors: list[Tensor] = []

    def keep(name: str, made: Tensor) -> Tensor:
        weights[name] = made
        return made

    def leaf(module: nn.Module, taken: Any, made: Tensor) -> Tensor:
        vectors.append(made.detach().requires_grad_())
        return vectors[-1]

    looks = any(isinstance(module, Attention) for module in model.modules())
    rows: dict[str, list[Tensor]] = {ATTENTION: [], GRADIENT: []}
    handle = model.tokens.register_forward_hook(leaf)
    try:
        # cuDNN's recurrent kernels have no backward pass in evaluation mode; torch's own have.
        with (
            torch.enable_grad(),
            torch.backends.cudnn.flags(enabled=False),
            trace(model, edit=keep) if looks else nullcontext(Trace()) as seen,
        ):
            states = model(*given)
            for outcome in reading.outcomes:
                score = outcome.score(states, given[1])
                found = torch.autograd.grad(score, [vectors[0], *weights.values()], retain_graph=True)
                rows[GRADIENT].append(found[0][0].norm(dim=-1).float().cpu())
                if looks:
                    gradients = {n: g[0].double().cpu() for n, g in zip(weights, found[1:], strict=True)}
                    reads = outcome.reads if outcome.reads is not None or model.config.pool != "cls" else 0
                    rows[ATTENTION].append(_rolled(seen, gradients, len(reading.encoded), reads))
    finally:
        handle.remove()
    names = tuple(outcome.name for outcome in reading.outcomes)
    ends = [sum(len(name) + 1 for name in names[:i]) for i in range(len(names))]
    query = Tokens(names, tuple((e, e + len(name)) for e, name in zip(ends, names, strict=True)), " ".join(names))
    return [
        Map(name, "relevance", _shares(torch.stack(own))[None], query, reading.axis, (0,), tuple(range(len(own))))
        for name, own in rows.items()
        if own
    ]


def head_effects(model: nn.Module, reading: Reading) -> dict[str, list[float]]:
    """How much the score of the likeliest outcome falls when one head is silent: for each layer a list over heads."""
    given, outcome = inputs(model, reading.encoded), reading.outcomes[0]
    layers = {name: module.heads for name, module in model.named_modules() if isinstance(module, Attention)}

    def score() -> float:
        return float(outcome.score(model(*given), given[1]))

    effects: dict[str, list[float]] = {}
    with torch.inference_mode():
        whole = score()
        for name, heads in layers.items():
            effects[name] = []
            for head in range(heads):
                with trace(model, layers=name, edit=ablate({name: [head]})):
                    effects[name].append(whole - score())
    return effects


def silenced(model: nn.Module, heads: str) -> Edit:
    """The edit of ``blocks.3.attention:0,2;blocks.0.*:1``.

    Raises:
        ConfigError: it is not written so, or there is no such layer or head.
    """
    layers = {name: module.heads for name, module in model.named_modules() if isinstance(module, Attention)}
    wanted: dict[str, list[int]] = {}
    for part in filter(None, heads.split(";")):
        pattern, _, numbers = part.strip().rpartition(":")
        found = [name for name in layers if fnmatch.fnmatchcase(name, pattern)]
        if not found or not all(number.strip().isdecimal() for number in numbers.split(",")):
            raise ConfigError(
                f"heads to silence are {part!r}",
                expected="LAYER:HEADS, such as blocks.0.attention:0,2",
                remedy=f"layers here: {', '.join(layers) or 'none'}",
            )
        for name in found:
            wanted[name] = [*wanted.get(name, ()), *map(int, numbers.split(","))]
            if (most := max(wanted[name])) >= layers[name]:
                raise ConfigError(f"{name} has no head {most}", expected=f"0 to {layers[name] - 1}")
    return ablate(wanted)


def inputs(model: nn.Module, encoded: Encoded) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, lengths and segments of one text, as a batch."""
    device = next(model.parameters()).device
    tokens, segments = (torch.tensor([row], device=device) for row in (encoded.ids, encoded.segments))
    return tokens, torch.tensor([len(encoded)], device=device), segments


def _rolled(
    seen: Trace, gradients: dict[str, Float[Tensor, "head query key"]], length: int, reads: int | None
) -> Float[Tensor, "token"]:
    """Gradient times attention through all layers, from the token that is read off (None: from all alike)."""
    maps, pools = seen.select(kind="self"), seen.select(kind="cross")
    if pools:
        rows = (pools[-1].weights.double() * gradients[pools[-1].name]).clamp_min(0).mean(0)
    else:
        own = torch.eye(length, dtype=torch.float64)
        rows = own.mean(0, keepdim=True) if reads is None else own[[reads]]
    if not maps:
        return rows[0].float()
    through = gradient_rollout(maps, [gradients[map.name] for map in maps], rows)
    return (through if pools else through - rows)[0].float()


def _shares(rows: Float[Tensor, "row token"]) -> Float[Tensor, "row token"]:
    return rows / rows.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
