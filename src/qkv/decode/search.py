"""Search for the best output: greedy, beam and sampling, one implementation for every model that speaks step by step.

A model offers three functions. ``start(...)`` reads its input once; ``step(state, tokens)`` gives the logits of the
word after the newest token of each hypothesis; ``select(state, parents, sentences)`` makes each new hypothesis go on
from its parent and drops the sentences that are done. A state that was given to ``step`` or ``select`` is used up.
Nothing here knows what the state is.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from qkv.errors import ConfigError

__all__ = ["Generator", "Hypothesis", "Marks", "Sampling", "Search", "search"]


BLOCK = 128  # words whose maximum is looked at before the words themselves


class Generator(Protocol):
    """What a model offers to be searched."""

    def step(
        self, state: Any, tokens: Int[Tensor, "sentence beam"]
    ) -> tuple[Float[Tensor, "sentence beam word"], Any]: ...

    def select(
        self, state: Any, parents: Int[Tensor, "sentence beam"], sentences: Int[Tensor, "kept"] | None = None
    ) -> Any: ...


@dataclass(frozen=True)
class Sampling:
    """Draw words by their chances instead of keeping the best.

    Attributes:
        temperature: divides the logits; below 1 is bolder for the likely, above 1 flatter.
        top_k: draw from the k likeliest words only; 0 for all.
        top_p: draw from the likeliest words that together hold this chance (Holtzman et al. 2020); 1 for all.
        seed: with the number of the line, it settles every draw, whatever the batch.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self):
        for name, value, right, expected in (
            ("temperature", self.temperature, self.temperature > 0, "a number above 0"),
            ("top-k", self.top_k, self.top_k >= 0, "a whole number from 0"),
            ("top-p", self.top_p, 0 < self.top_p <= 1, "a number above 0, at most 1"),
        ):
            if not right:
                raise ConfigError(f"{name} is {value}", expected=expected)


@dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        beam: hypotheses kept for each sentence; 1 is greedy.
        n_best: how many to return for each sentence.
        length_penalty: alpha of the rule; 0 compares plain sums of log-probabilities.
        length_penalty_rule: "gnmt", sum / ((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14); "hf", sum / length^alpha.
        sampling: draw instead of keeping the best.
    """

    beam: int = 1
    n_best: int = 1
    length_penalty: float = 0.0
    length_penalty_rule: str = "gnmt"
    sampling: Sampling | None = None

    def __post_init__(self):
        if self.beam < 1 or self.n_best < 1:
            raise ConfigError(f"beam {self.beam}, n-best {self.n_best}", expected="whole numbers from 1")
        if self.sampling is None and self.n_best > self.beam:
            raise ConfigError(
                f"n-best {self.n_best} is more than beam {self.beam}", remedy="use a beam at least as wide"
            )
        if self.length_penalty_rule not in ("gnmt", "hf"):
            raise ConfigError(f"length-penalty rule {self.length_penalty_rule!r}", expected="gnmt or hf")

    def score(self, total, length):
        """The score that hypotheses are compared by, of a sum of log-probabilities over ``length`` words."""
        base = (5 + length) / 6 if self.length_penalty_rule == "gnmt" else length
        return total / base**self.length_penalty

    def bound(self, total, length, longest):
        """The best score that a hypothesis can still reach: each further word can only lower its sum, never above 0.

        With alpha above 0 a longer text divides it by more, so the longest is the most hopeful; else the shortest.
        """
        return self.score(total, longest if self.length_penalty > 0 else length + 1)


@dataclass(frozen=True)
class Marks:
    """The ids that a search must know."""

    start: int
    end: int
    never: tuple[int, ...] = ()  # ids that no output may hold: padding, and the start where it is a word of its own


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search.

    Attributes:
        tokens: what was said, without the start and the end mark.
        token_scores: log-probability of each token, and of the end mark where it ended.
        score: what it was compared by: their sum under the length penalty.
        ended: False where the longest allowed length cut it off.
    """

    tokens: tuple[int, ...]
    token_scores: tuple[float, ...]
    score: float
    ended: bool


@torch.inference_mode()
def search(
    model: Generator,
    state: Any,
    marks: Marks,
    longest: Int[Tensor, "sentence"],
    how: Search = Search(),
    prefixes: list[list[int]] | None = None,
    lines: list[int] | None = None,
) -> list[list[Hypothesis]]:
    """The ``n_best`` outputs of each sentence, best first.

    Args:
        model, state: what to ask, and where it stands after ``model.start``.
        longest: the most words (the end mark among them) that each sentence may get; it must depend on nothing but the
            sentence, so that neighbours in the batch change nothing.
        prefixes: words that each output must begin with.
        lines: the number of each sentence in the user's input, for sampling.
    """
    beams = how.n_best if how.sampling else how.beam
    device = longest.device
    alive = list(range(len(longest)))  # the sentence that each row of the batch is
    pools = [_Pool(how) for _ in alive]
    draws = _Draws(how.sampling, lines or alive, beams) if how.sampling else None
    tokens = torch.full((len(alive), 1), marks.start, device=device)
    history = torch.empty(len(alive), 1, 0, dtype=torch.long, device=device)
    scores = torch.empty(len(alive), 1, 0, device=device)
    sums = torch.zeros(len(alive), 1, device=device)
    limits = longest.tolist()
    length = 0
    while alive:
        logits, state = model.step(state, tokens)
        forced = [prefixes[s][length] if prefixes and length < len(prefixes[s]) else None for s in alive]
        # Before anything is forbidden, since a score is the model's own; in place, since this is the largest tensor.
        logits = logits.float()
        log_chances = torch.log_softmax(logits, -1, out=logits)
        wanted = {row: (word, log_chances[row, :, word].clone()) for row, word in enumerate(forced) if word is not None}
        log_chances[..., list(marks.never)] = float("-inf")
        for row, (word, kept) in wanted.items():
            log_chances[row] = float("-inf")
            log_chances[row, :, word] = kept
        if draws:
            parents, words, gains = draws.next(log_chances, length, alive, beams)
        else:
            parents, words, gains = _best(log_chances, sums, beams)
        length += 1
        totals = sums.gather(1, parents) + gains
        ended = (words == marks.end) & (totals > float("-inf"))
        if not draws:
            ended[:, beams:] = False  # an end that is not among the best ones is no candidate
        out_of_room = [row for row, sentence in enumerate(alive) if limits[sentence] <= length]
        if ended.any() or out_of_room:
            for row, rank in ended.nonzero().tolist():
                _record(pools[alive[row]], history, scores, row, parents[row, rank], gains[row, rank], None, length)
        # Those that go on: the best that have not ended, as many as there are beams.
        going = totals.masked_fill(words == marks.end, float("-inf"))
        if draws:
            order = torch.arange(beams, device=device).expand(len(alive), beams)
        else:
            order = going.sort(dim=-1, descending=True, stable=True).indices[:, :beams]
        sums, parents, words, gains = (x.gather(1, order) for x in (going, parents, words, gains))
        for row in out_of_room:
            for rank in range(parents.shape[1]):
                if sums[row, rank] > float("-inf"):
                    _record(
                        pools[alive[row]],
                        history,
                        scores,
                        row,
                        parents[row, rank],
                        gains[row, rank],
                        words[row, rank],
                        length,
                    )
        history = torch.cat([_follow(history, parents), words[:, :, None]], -1)
        scores = torch.cat([_follow(scores, parents), gains[:, :, None]], -1)
        hopes = sums.max(1).values.tolist()
        staying = [
            row for row, sentence in enumerate(alive)
            if limits[sentence] > length and pools[sentence].can_improve(hopes[row], length, limits[sentence])
        ]  # fmt: skip
        if not staying:
            break
        kept = None
        if len(staying) < len(alive):
            staying = _close_gaps(staying)
            kept = torch.tensor(staying, device=device)
            alive = [alive[row] for row in staying]
            history, scores, sums, words = (x[kept] for x in (history, scores, sums, words))
        if beams > 1 or kept is not None:
            state = model.select(state, parents, kept)
        tokens = words
    return [pool.best() for pool in pools]


def _best(
    log_chances: Float[Tensor, "sentence beam word"],
    sums: Float[Tensor, "sentence beam"],
    beams: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """``(parents, words, gains)`` of the 2 * beams best ways to go on: enough that as many as ``beams`` have not ended.

    The best of each hypothesis are found first, so that the whole vocabulary is never sorted, added to or copied.
    """
    # Greedy needs one: the end mark needs no second place beside it.
    gains, words = _largest(log_chances, 1 if beams == 1 else min(2 * beams, log_chances.shape[-1]))
    totals = (sums[:, :, None] + gains).flatten(1)
    order = totals.sort(dim=-1, descending=True, stable=True).indices[:, : 2 * beams]
    return order // gains.shape[-1], words.flatten(1).gather(1, order), gains.flatten(1).gather(1, order)


def _largest(values: Float[Tensor, "sentence beam word"], count: int) -> tuple[Tensor, Tensor]:
    """As ``values.topk(count)``. The largest are in the blocks with the largest maxima, which are quickly found."""
    blocks = values.shape[-1] // BLOCK
    if blocks <= 2 * count:
        return values.topk(count, -1)
    whole, rest = values[..., : blocks * BLOCK].unflatten(-1, (blocks, BLOCK)), values[..., blocks * BLOCK :]
    chosen = whole.amax(-1).topk(count, -1).indices
    inside = whole.gather(-2, chosen[..., None].expand(*chosen.shape, BLOCK)).flatten(-2)
    largest, place = torch.cat([inside, rest], -1).topk(count, -1)
    number = chosen.gather(-1, (place // BLOCK).clamp_max(count - 1)) * BLOCK + place % BLOCK
    return largest, torch.where(place < count * BLOCK, number, place + (blocks - count) * BLOCK)


def _close_gaps(staying: list[int]) -> list[int]:
    """The rows that stay, ordered so that as few as can be change their place: the last ones fill the gaps."""
    last = [row for row in staying if row >= len(staying)]
    here = set(staying)
    return [row if row in here else last.pop() for row in range(len(staying))]


def _follow(values: Tensor, parents: Int[Tensor, "sentence beam"]) -> Tensor:
    return values.gather(1, parents[:, :, None].expand(-1, -1, values.shape[2]))


def _record(pool, history, scores, row, parent, gain, word, length):
    tokens = history[row, parent].tolist() + ([] if word is None else [word.item()])
    pool.add(tokens, [*scores[row, parent].tolist(), gain.item()], length, ended=word is None)


class _Pool:
    """The finished outputs of one sentence."""

    def __init__(self, how: Search):
        self.how, self.ended, self.cut = how, [], []

    def add(self, tokens: list[int], token_scores: list[float], length: int, ended: bool) -> None:
        score = self.how.score(sum(token_scores), length)
        (self.ended if ended else self.cut).append(Hypothesis(tuple(tokens), tuple(token_scores), score, ended))

    def can_improve(self, hope: float, length: int, longest: int) -> bool:
        """Whether a hypothesis of this sum may still enter the n best: only then is the search gone on with."""
        if hope == float("-inf"):
            return False
        if self.how.sampling or len(self.ended) < self.how.n_best:
            return True
        worst = sorted((h.score for h in self.ended), reverse=True)[self.how.n_best - 1]
        return self.how.bound(hope, length, longest) > worst

    def best(self) -> list[Hypothesis]:
        """The n best that ended; where fewer did, the best that were cut off after them."""
        ranked = (sorted(pool, key=lambda h: -h.score) for pool in (self.ended, self.cut))
        return [h for pool in ranked for h in pool][: self.how.n_best]


class _Draws:
    """Random words, each draw settled by the seed, the line, the sample and the step alone."""

    def __init__(self, sampling: Sampling, lines: list[int], samples: int):
        self.sampling = sampling
        self.streams = [[np.random.default_rng([sampling.seed, line, n]) for n in range(samples)] for line in lines]

    def next(self, log_chances, length, alive, samples):
        """One word for each sample of each sentence, by the chances of the trimmed distribution."""
        chances = (log_chances / self.sampling.temperature).softmax(-1)
        if chances.shape[1] < samples:
            chances = chances.expand(-1, samples, -1)
        ranked, words = chances.sort(dim=-1, descending=True, stable=True)
        before = ranked.cumsum(-1) - ranked
        keep = before < self.sampling.top_p
        if self.sampling.top_k:
            keep[..., self.sampling.top_k :] = False
        mass = (ranked * keep).cumsum(-1)
        points = torch.tensor([[stream.random() for stream in self.streams[s]] for s in alive], device=mass.device)
        place = (mass < (points[..., None] * mass[..., -1:])).sum(-1, keepdim=True)
        place = place.clamp_max(keep.sum(-1, keepdim=True) - 1)
        chosen = words.gather(-1, place)
        parents = torch.arange(samples, device=log_chances.device).expand(len(alive), samples)
        if length == 0:
            parents = torch.zeros_like(parents)
        gains = log_chances.expand(-1, samples, -1) if log_chances.shape[1] < samples else log_chances
        return parents, chosen[..., 0], gains.gather(-1, chosen)[..., 0]
