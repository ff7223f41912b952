"""Word alignment read off cross-attention, and its score against a gold alignment.

A link is ``(source word, target word)``: the places of two blank-separated words in their texts, counted from 0.

The row of a decoder's cross-attention at position ``t`` belongs to the step where ``y_t`` is the *input* and
``y_{t+1}`` the prediction, so a target word can be read at two places:

* ``"shifted"``: at the step where the word is the input (Chen, Sun & Liu 2020, "Accurate Word Alignment Induction from
  Neural Machine Translation", section 3.1: Shift-Att). By then the model knows the word, so this reading is the better;
* ``"unshifted"``: at the step which predicts the word.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int

from qkv.axis import Tokens
from qkv.errors import ConfigError, DataError, RunError, nearest
from qkv.look.record import Map, Trace

__all__ = [
    "Gold",
    "Link",
    "Reader",
    "Reading",
    "alignment_error_rate",
    "as_predicted",
    "choose_reader",
    "format_pharaoh",
    "parse_pharaoh",
    "read_pharaoh",
    "word_places",
    "word_weights",
]

Link = tuple[int, int]
Reading = Literal["shifted", "unshifted"]
Soft = Float[np.ndarray, "target source"]  # numpy: these are thousands of tiny products, which threads only slow down


class Gold(NamedTuple):
    """The gold alignment of one pair: links that must be there, and links that may (which include the sure ones)."""

    sure: frozenset[Link]
    possible: frozenset[Link]


# --- Reading links off a map ---------------------------------------------------------------------------------------


def word_weights(map: Map, reading: Reading = "shifted") -> Float[np.ndarray, "head target source"]:
    """Cross-attention between the blank-separated words of the target and of the source.

    The weights of the pieces of a source word are summed; the rows of the pieces of a target word are averaged. Marks
    (``<s>``, ``</s>``) are no words: the weight on them is left out, so a row sums to at most one. A target word none
    of whose rows was recorded has a row of zeros.
    """
    if reading not in get_args(Reading):
        raise ConfigError(f"no reading {reading!r}", expected="'shifted' or 'unshifted'")
    target, source = _runs(map.query, map.name), _runs(map.key, map.name)
    row_of = {position: row for row, position in enumerate(map.queries)}
    back = 0 if reading == "shifted" else 1  # the row which predicts y_t is the one before that which takes it in
    average = np.zeros((len(target), len(row_of)))
    for word, positions in enumerate(target):
        rows = [row_of[position - back] for position in positions if position - back in row_of]
        if rows:
            average[word, rows] = 1 / len(rows)
    total = np.zeros((len(map.key), len(source)))
    for word, positions in enumerate(source):
        total[positions, word] = 1
    return (average @ map.weights.float().cpu().numpy() @ total).astype(np.float32)


def as_predicted(map: Map) -> Map:
    """A decoder's map with each row named by the word that its step predicts, not by the one that it takes in: the
    start mark's row becomes the first word's, the last word's row the end mark's. No weight changes.
    """
    axis = map.query
    if not isinstance(axis, Tokens):
        raise RunError(f"{map.name} has queries that are no text", expected="a decoder's map")
    end = len(axis.text)
    ahead = Tokens((*axis.pieces[1:], "</s>"), (*axis.spans[1:], (end, end)), axis.text)
    return replace(map, query=ahead)


def _runs(axis: object, name: str) -> list[list[int]]:
    """The positions of the pieces of every blank-separated word of a text, also of words that have no piece."""
    if not isinstance(axis, Tokens):
        raise RunError(f"{name} has an axis that is no text ({type(axis).__name__})", expected="two texts")
    runs: list[list[int]] = [[] for _ in re.finditer(r"\S+", axis.text)]
    for word, place in zip(axis.words(), word_places(axis), strict=True):
        if place is not None:
            runs[place].extend(word.positions)
    return runs


def word_places(axis: Tokens) -> list[int | None]:
    """For each of ``axis.words()`` its place among the blank-separated words of the text (what a link counts); a mark
    has none.
    """
    place = {match.span(): index for index, match in enumerate(re.finditer(r"\S+", axis.text))}
    return [None if word.mark else place[word.span] for word in axis.words()]


@dataclass(frozen=True)
class Reader:
    """How word links are read off a model's cross-attention: which layer, which of its heads, at which step.

    ``layer`` is a name in the trace, ``heads`` are places on the head axis (their weights are averaged), ``agreement``
    is the figure by which they were chosen.
    """

    layer: str
    heads: tuple[int, ...]
    reading: Reading = "shifted"
    threshold: float = 0.0
    agreement: float | None = None

    def weights(self, trace: Trace) -> Soft:
        """Soft links of the trace's first example: see `word_weights`."""
        map = self._map(trace)
        chosen = [map.heads.index(head) for head in self.heads]
        return word_weights(map, self.reading)[chosen].mean(0)

    def links(self, trace: Trace) -> list[Link]:
        """For each target word the source word with most weight, where that is above ``threshold``; marks dropped."""
        return _links(self.weights(trace), self.threshold)

    def note(self, trace: Trace) -> dict:
        """What goes into ``trace.notes["alignment"]``; the page and the pictures show it."""
        return {**self.to_json(), "links": [list(link) for link in self.links(trace)]}

    def to_json(self) -> dict:
        return {**asdict(self), "heads": list(self.heads)}

    @classmethod
    def from_json(cls, data: dict) -> "Reader":
        fields = {key: data[key] for key in ("layer", "heads", "reading", "threshold", "agreement") if key in data}
        return cls(**{**fields, "heads": tuple(data["heads"])})

    def _map(self, trace: Trace) -> Map:
        if self.layer not in trace:
            raise RunError(f"no layer {self.layer!r} in this trace", remedy=nearest(self.layer, trace))
        map = trace[self.layer][0]
        missing = [head for head in self.heads if head not in map.heads]
        if missing or not self.heads:
            raise RunError(f"heads {list(self.heads)} of {self.layer}", expected=f"some of {list(map.heads)}")
        return map


def _links(weights: Soft, threshold: float = 0.0) -> list[Link]:
    if weights.size == 0:
        return []
    # strictly above: a row of zeros links nothing
    best = weights.argmax(1)
    return [(int(s), t) for t, s in enumerate(best) if weights[t, s] > threshold]


# --- Choosing the layer and the heads on a dev set -----------------------------------------------------------------


def choose_reader(
    traces: Sequence[Trace], gold: Sequence[Gold] | None = None, reading: Reading | None = None
) -> Reader:
    """The cross-attention layer and heads (and, if not given, the reading) whose links are best on a dev set.

    For each layer its single heads are rated, then the averages of its 2, 3, ... best heads; the best of all wins.
    Which reading serves is a matter of the model: in deep ones the lower layers still look at the word that came in, in
    shallow ones every layer may already look for the next.

    With ``gold`` the rating is 1 - AER. Without, it is agreement with what the dev set itself tells about its words:
    two IBM models 1 (Brown et al. 1993), source to target and target to source, are trained on the pieces of the
    traced pairs, and their posteriors multiplied (Liang, Taskar & Klein 2006, "Alignment by Agreement"). A layer's
    rating is the mean share of that posterior that lies on the links which the layer reads, times the share of those
    links that are also the best seen from the source word (the agreement of both directions by which Chen et al. 2020
    choose their layer). The second factor alone would not do: a layer that looks one word ahead agrees with itself.

    The traces are of dev pairs (forced) or of a model's own answers; some hundred sentences are plenty.
    """
    if not traces:
        raise DataError("no dev sentence to choose the alignment's layer on", remedy="give at least one trace")
    layers = [name for name, maps in traces[0].items() if maps and maps[0].kind == "cross"]
    if not layers:
        raise RunError("no cross-attention in this trace", remedy="trace with layers='*.cross'")
    if gold is not None and len(gold) != len(traces):
        raise DataError(f"{len(gold)} gold alignments for {len(traces)} traces", expected="one for each")
    reference = None if gold is not None else _co_occurrence(traces, layers[0])

    def rating(weights: list[Soft]) -> float:
        if gold is not None:
            return 1 - alignment_error_rate([_links(w) for w in weights], *zip(*gold, strict=True))
        return _agreement(weights, reference)

    best: Reader | None = None
    for layer, step in itertools.product(layers, [reading] if reading else get_args(Reading)):
        weights = [word_weights(trace[layer][0], step) for trace in traces]
        heads = traces[0][layer][0].heads
        single = [rating([w[head] for w in weights]) for head in range(len(heads))]
        order = sorted(range(len(heads)), key=single.__getitem__, reverse=True)
        for size in range(1, len(heads) + 1):
            chosen = sorted(order[:size])
            value = single[order[0]] if size == 1 else rating([w[chosen].mean(0) for w in weights])
            if best is None or value > best.agreement:
                best = Reader(layer, tuple(heads[head] for head in chosen), step, agreement=value)
    return best


def _agreement(weights: list[Soft], reference: list[Soft]) -> float:
    share, mutual, links, words = 0.0, 0, 0, 0
    for soft, known in zip(weights, reference, strict=True):
        words += len(soft)
        if soft.size == 0:
            continue
        back = soft.argmax(0)
        for source, target in _links(soft):
            share += float(known[target, source])
            mutual += int(back[source] == target)
            links += 1
    return share / max(words, 1) * mutual / max(links, 1)


def _co_occurrence(traces: Sequence[Trace], layer: str) -> list[Soft]:
    """Word links which the traced pairs themselves suggest, one distribution over source words for each target word."""
    maps = [trace[layer][0] for trace in traces]
    sources = [_identify(map.key.pieces for map in maps), _identify(map.query.pieces for map in maps)]
    there, back = _model_one(sources[1], sources[0]), _model_one(sources[0], sources[1])
    found = []
    for map, forward, backward in zip(maps, there, back, strict=True):
        both = torch.from_numpy(forward * backward.T)[None]
        every = tuple(range(len(map.query)))
        words = word_weights(Map(map.name, "cross", both, map.query, map.key, (0,), every), "shifted")[0]
        found.append(words / np.maximum(words.sum(1, keepdims=True), 1e-12))
    return found


def _identify(sentences: Iterable[Sequence[str]]) -> list[Int[np.ndarray, " piece"]]:
    """Pieces as numbers from 0."""
    numbers: dict[str, int] = {}
    return [np.array([numbers.setdefault(piece, len(numbers)) for piece in pieces]) for pieces in sentences]


def _model_one(targets: list[np.ndarray], sources: list[np.ndarray], steps: int = 8) -> list[Soft]:
    """IBM model 1 by EM: for each pair the posterior of the source piece of every target piece.

    The end mark is in every source and so does the work of the model's empty word.
    """
    width = 1 + max(int(target.max()) for target in targets)
    cells = [source[None, :] * width + target[:, None] for target, source in zip(targets, sources, strict=True)]
    known, cell = np.unique(np.concatenate([c.ravel() for c in cells]), return_inverse=True)
    source = known // width
    # rows of cells, so that one step over the corpus is a few long array operations
    lengths = np.concatenate([np.full(c.shape[0], c.shape[1]) for c in cells])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    table = np.ones(len(known))
    for _ in range(steps):
        value = table[cell]
        posterior = value / np.repeat(np.add.reduceat(value, starts), lengths)
        counts = np.bincount(cell, posterior, minlength=len(known))
        table = counts / np.bincount(source, counts)[source]
    ends = np.cumsum([c.size for c in cells])
    return [part.reshape(c.shape) for part, c in zip(np.split(posterior, ends[:-1]), cells, strict=True)]


# --- Scoring and exchanging ----------------------------------------------------------------------------------------


def alignment_error_rate(
    links: Sequence[Iterable[Link]], sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]]
) -> float:
    """``1 - (|A & S| + |A & P|) / (|A| + |S|)`` over a corpus: 0 is perfect, 1 is all wrong.

    Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", equation 8. Counts are summed
    over all sentences before the division; P is made to include S. With no link and no sure link at all it is 0.
    """
    if not len(links) == len(sure) == len(possible):
        raise DataError(
            f"alignments of {len(links)} sentences against gold of {len(sure)} (sure) and {len(possible)} (possible)",
            expected="one line for each sentence",
        )
    hits = size = 0
    for found, must, may in zip(links, sure, possible, strict=True):
        found, must = set(found), set(must)
        hits += len(found & must) + len(found & (must | set(may)))
        size += len(found) + len(must)
    return 1 - hits / size if size else 0.0


def parse_pharaoh(line: str, *, file: Path | str | None = None, number: int | None = None) -> Gold:
    """One line of a gold alignment, ``0-0 1p2``: source-target word places from 0, ``-`` sure and ``p`` possible."""
    sure, possible = set(), set()
    for item in line.split():
        match = re.fullmatch(r"([0-9]+)([-p])([0-9]+)", item)
        if not match:
            raise DataError(
                f"no alignment link: {item!r}",
                file=file,
                line=number,
                expected="links such as 0-0 (sure) or 1p2 (possible), source word first, counted from 0",
            )
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def read_pharaoh(path: str | Path) -> list[Gold]:
    """A file of gold alignments, a line for each pair; an empty line is a pair without links."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path) from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", file=path, remedy="save it as UTF-8") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    return [parse_pharaoh(line, file=path, number=number) for number, line in enumerate(lines, 1)]


def format_pharaoh(links: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """The line that `parse_pharaoh` reads: ``links`` as sure, ``possible`` ones that are not among them as ``p``."""
    sure = set(links)
    marked = [(s, t, "-") for s, t in sure] + [(s, t, "p") for s, t in set(possible) - sure]
    return " ".join(f"{s}{mark}{t}" for s, t, mark in sorted(marked))
