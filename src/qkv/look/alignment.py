"""Word alignment read off cross-attention, and its score against a gold alignment.

A link is ``(source word, target word)``: the places of two blank-separated words in their texts, counted from 0.

The row of a decoder's cross-attention at position ``t`` belongs to the step where ``y_t`` is the *input* and
``y_{t+1}`` the prediction, so a target word can be read at two places:

* ``"shifted"``: at the step where the word is the input (Chen, Sun & Liu 2020, "Accurate Word Alignment Induction from
  Neural Machine Translation", section 3.1: Shift-Att). By then the model knows the word, so this reading is the better;
* ``"unshifted"``: at the step which predicts the word.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.axis import Tokens
from qkv.errors import ConfigError, DataError, RunError, nearest
from qkv.look.record import Map, Trace

__all__ = [
    "Gold", "Link", "Reader", "Reading", "alignment_error_rate", "choose_reader", "format_pharaoh", "parse_pharaoh",
    "read_pharaoh", "word_places", "word_weights",
]

Link = tuple[int, int]
Reading = Literal["shifted", "unshifted"]


class Gold(NamedTuple):
    """The gold alignment of one pair: links that must be there, and links that may (which include the sure ones)."""

    sure: frozenset[Link]
    possible: frozenset[Link]


# --- Reading links off a map ---------------------------------------------------------------------------------------


def word_weights(map: Map, reading: Reading = "shifted") -> Float[Tensor, "head target source"]:
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
    average = torch.zeros(len(target), len(row_of), dtype=torch.float64)
    for word, positions in enumerate(target):
        rows = [row_of[position - back] for position in positions if position - back in row_of]
        if rows:
            average[word, rows] = 1 / len(rows)
    total = torch.zeros(len(map.key), len(source), dtype=torch.float64)
    for word, positions in enumerate(source):
        total[list(positions), word] = 1
    return (average @ map.weights.cpu().double() @ total).float()


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

    def weights(self, trace: Trace) -> Float[Tensor, "target source"]:
        """Soft links of the trace's first example: see `word_weights`."""
        return word_weights(self._map(trace), self.reading).mean(0)

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
        if map.heads == self.heads:
            return map
        rows = torch.tensor([map.heads.index(head) for head in self.heads])
        return replace(map, weights=map.weights[rows], heads=self.heads)


def _links(weights: Float[Tensor, "target source"], threshold: float = 0.0) -> list[Link]:
    if weights.numel() == 0:
        return []
    best, source = weights.max(-1)
    # strictly above: a row of zeros links nothing
    return [(s, t) for t, (w, s) in enumerate(zip(best.tolist(), source.tolist(), strict=True)) if w > threshold]


# --- Choosing the layer and the heads on a dev set -----------------------------------------------------------------


def choose_reader(traces: Sequence[Trace], gold: Sequence[Gold] | None = None, reading: Reading = "shifted") -> Reader:
    """The cross-attention layer and heads whose links are best on a dev set.

    For each layer its single heads are rated, then the averages of its 2, 3, ... best heads; the best of all wins.

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

    def rating(weights: list[Float[Tensor, "target source"]]) -> float:
        if gold is not None:
            return 1 - alignment_error_rate([_links(w) for w in weights], *zip(*gold, strict=True))
        return _agreement(weights, reference)

    best: Reader | None = None
    for layer in layers:
        weights = [word_weights(trace[layer][0], reading) for trace in traces]
        heads = traces[0][layer][0].heads
        single = [rating([w[head] for w in weights]) for head in range(len(heads))]
        order = sorted(range(len(heads)), key=single.__getitem__, reverse=True)
        for size in range(1, len(heads) + 1):
            chosen = sorted(order[:size])
            value = single[order[0]] if size == 1 else rating([w[chosen].mean(0) for w in weights])
            if best is None or value > best.agreement:
                best = Reader(layer, tuple(heads[head] for head in chosen), reading, agreement=value)
    return best


def _agreement(weights: list[Float[Tensor, "target source"]], reference: list[Float[Tensor, "target source"]]) -> float:
    share, mutual, links, words = 0.0, 0, 0, 0
    for soft, known in zip(weights, reference, strict=True):
        words += len(soft)
        if soft.numel() == 0:
            continue
        back = soft.argmax(0)
        for source, target in _links(soft):
            share += float(known[target, source])
            mutual += int(back[source] == target)
            links += 1
    return share / max(words, 1) * mutual / max(links, 1)


def _co_occurrence(traces: Sequence[Trace], layer: str) -> list[Float[Tensor, "target source"]]:
    """Word links which the traced pairs themselves suggest, one distribution over source words for each target word."""
    maps = [trace[layer][0] for trace in traces]
    sources = [_identify(map.key.pieces for map in maps), _identify(map.query.pieces for map in maps)]
    there, back = _model_one(sources[1], sources[0]), _model_one(sources[0], sources[1])
    found = []
    for map, forward, backward in zip(maps, there, back, strict=True):
        both = (forward * backward.T)[None].float()
        every = tuple(range(len(map.query)))
        words = word_weights(Map(map.name, "cross", both, map.query, map.key, (0,), every), "shifted")[0]
        found.append(words / words.sum(-1, keepdim=True).clamp_min(1e-12))
    return found


def _identify(sentences: Iterable[Sequence[str]]) -> list[Tensor]:
    numbers: dict[str, int] = {}
    return [torch.tensor([numbers.setdefault(piece, len(numbers)) for piece in pieces]) for pieces in sentences]


def _model_one(targets: list[Tensor], sources: list[Tensor], steps: int = 8) -> list[Float[Tensor, "target source"]]:
    """IBM model 1 by EM: for each pair the posterior of the source piece of every target piece.

    The end mark is in every source and so does the work of the model's empty word.
    """
    width = 1 + max(int(target.max()) for target in targets)
    pairs = torch.cat([(s[None, :] * width + t[:, None]).flatten() for t, s in zip(targets, sources, strict=True)])
    known, pairs = pairs.unique(return_inverse=True)
    source = known // width
    table = torch.ones(len(known), dtype=torch.float64)
    sizes = [(len(t), len(s)) for t, s in zip(targets, sources, strict=True)]
    for _ in range(steps):
        cells = [c.view(size) for c, size in zip(table[pairs].split([t * s for t, s in sizes]), sizes, strict=True)]
        posterior = [cell / cell.sum(-1, keepdim=True) for cell in cells]
        counts = torch.zeros_like(table).index_add_(0, pairs, torch.cat([p.flatten() for p in posterior]))
        total = torch.zeros(int(source.max()) + 1, dtype=torch.float64).index_add_(0, source, counts)
        table = counts / total[source]
    return posterior


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
                f"no alignment link: {item!r}", file=file, line=number,
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
