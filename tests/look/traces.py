"""Traces made by hand, or at random, for the tests of what shows and measures them."""

from collections.abc import Sequence

import torch
from hypothesis import strategies as st

from qkv.axis import Tokens
from qkv.look.record import Map, Trace


def tokens(*words: Sequence[str], start: bool = False, end: bool = False) -> Tokens:
    """Words, each given as its pieces; with a start or an end mark."""
    pieces, spans, text = [], [], ""
    if start:
        pieces.append("<s>")
        spans.append((0, 0))
    for word in words:
        text += " " if text else ""
        for piece in word:
            pieces.append(piece)
            spans.append((len(text), len(text) + len(piece)))
            text += piece
    if end:
        pieces.append("</s>")
        spans.append((len(text), len(text)))
    return Tokens(tuple(pieces), tuple(spans), text)


def a_map(weights, query: Tokens, key: Tokens, name="decoder.blocks.0.cross", kind="cross", **kwargs) -> Map:
    weights = torch.as_tensor(weights, dtype=torch.float32)
    weights = weights[None] if weights.ndim == 2 else weights
    queries = kwargs.pop("queries", tuple(range(len(query))))
    return Map(name, kind, weights, query, key, tuple(range(len(weights))), queries, **kwargs)


def soft(heads: int, queries: int, keys: int, seed: int = 0, causal: bool = False, sharp: float = 2.0) -> torch.Tensor:
    scores = torch.randn(heads, queries, keys, generator=torch.Generator().manual_seed(seed)) * sharp
    if causal:
        scores = scores.masked_fill(torch.ones(queries, keys, dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1)


def a_trace(source: Tokens, target: Tokens, layers: int = 2, heads: int = 3, seed: int = 0, **notes) -> Trace:
    """A translation's trace with random weights."""
    s, t, maps = len(source), len(target), {}
    for layer in range(layers):
        name = f"encoder.blocks.{layer}.attention"
        maps[name] = [a_map(soft(heads, s, s, seed + layer), source, source, name, "self")]
    for layer in range(layers):
        name = f"decoder.blocks.{layer}.attention"
        weights = soft(heads, t, t, seed + 100 + layer, causal=True)
        maps[name] = [a_map(weights, target, target, name, "self", causal=True)]
        name = f"decoder.blocks.{layer}.cross"
        maps[name] = [a_map(soft(heads, t, s, seed + 200 + layer), target, source, name)]
    return Trace(maps, {"source": source.text, "target": target.text, **notes})


KOREAN = tokens(["나", "는"], ["학생", "이다"], end=True)
ENGLISH = tokens(["I"], ["am"], ["a"], ["stud", "ent"], start=True)


def korean_english(**notes) -> Trace:
    given = {"score": -0.31, "token_scores": [-0.1, -0.2, -1.5, -0.3, -0.2, -0.05], "run": "runs/ko-en", **notes}
    return a_trace(KOREAN, ENGLISH, **given)


def long_trace(length: int = 512, layers: int = 6, heads: int = 8) -> Trace:
    """A text so long that its page has to be clever: words of one to three pieces."""
    syllables = [chr(0xAC00 + 7 * i) for i in range(1500)]

    def words(count):
        at, found = 0, []
        while count:
            size = min(1 + at % 3, count)
            found.append(syllables[at : at + size])
            at, count = at + size, count - size
        return found

    return a_trace(tokens(*words(length - 1), end=True), tokens(*words(length - 1), start=True), layers, heads)


@st.composite
def texts(draw, start: bool = False, end: bool = False) -> Tokens:
    words = st.lists(
        st.lists(st.text("ab나는é$<&", min_size=1, max_size=3), min_size=1, max_size=3), min_size=1, max_size=5
    )
    return tokens(*draw(words), start=start, end=end)


@st.composite
def cross_maps(draw, heads: int = 2) -> Map:
    query, key = draw(texts(start=True)), draw(texts(end=True))
    return a_map(soft(heads, len(query), len(key), draw(st.integers(0, 99))), query, key)


@st.composite
def self_stacks(draw) -> list[Map]:
    axis = draw(texts(end=True))
    count, seed = draw(st.integers(1, 4)), draw(st.integers(0, 99))
    return [
        a_map(soft(2, len(axis), len(axis), seed + i), axis, axis, f"encoder.blocks.{i}.attention", "self")
        for i in range(count)
    ]
