"""A trained translator: line in, line out, with scores and with what it looked at."""

import fnmatch
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from qkv.axis import Tokens
from qkv.data.buckets import Batch, by_length, pad, pad_rows
from qkv.data.codec import Codec
from qkv.data.lines import Line, decode_line
from qkv.decode.search import Hypothesis, Marks, Search, search
from qkv.errors import ConfigError, DataError
from qkv.layers.attention import Attention
from qkv.layers.cross_entropy import word_log_probabilities
from qkv.look.alignment import Reader
from qkv.look.record import Map, Trace
from qkv.look.saliency import NAME, saliency, state_norms
from qkv.look.trace import no_attention, position_maps, trace
from qkv.models.saved import load_model
from qkv.tasks.settings import read_settings

__all__ = ["Answer", "Translator", "default_reader"]

LONGEST = 4096  # tokens of a translation that may be asked for: its cache must fit into memory
INSTEAD = (
    "A fixed vector carries the whole sentence to the decoder. Shown are gradients, that is, what the chance of each "
    "word hangs on, and how long each state is."
)


@dataclass(frozen=True)
class Answer:
    """What became of one line.

    Attributes:
        text: the translation; empty where there is none.
        source: the line as the model saw it.
        score: what the search compared it by; None where nothing was translated.
        tokens, token_scores, ids: the pieces (the end mark last, where it ended), the log-probability of each, and its
            id, so that a replay says exactly what was said.
        ended: False where the longest allowed length cut it off.
        mark: why there is no translation: "blank", "over-long" or "undecodable"; empty otherwise.
        others: the rest of the n best.
        links: pairs of word numbers, source first, where an alignment was asked for.
    """

    text: str
    source: str
    score: float | None = None
    tokens: tuple[str, ...] = ()
    token_scores: tuple[float, ...] = ()
    ids: tuple[int, ...] = ()
    ended: bool = True
    mark: str = ""
    others: tuple["Answer", ...] = ()
    links: tuple[tuple[int, int], ...] | None = None

    def __str__(self) -> str:
        return self.text


@dataclass
class Translator:
    """A model with its codec. ``translator("나는 학생이다")`` translates; `translate` does so for any number of lines.

    Attributes:
        model: the network, in evaluation mode.
        codec: its vocabularies.
        search: how it searches unless told otherwise; imported runs bring their own.
        reader: where alignments are read, chosen on held-out pairs at the end of training.
        longest_source: a longer source (in tokens) is marked and not translated.
        longest: most tokens of a translation, however long its source is.
        never: ids that no translation may hold, beside padding and the start mark.
        folder: the run it was loaded from.
    """

    model: nn.Module
    codec: Codec
    search: Search = field(default_factory=Search)
    reader: Reader | None = None
    longest_source: int = 512
    longest: int | None = None
    never: tuple[int, ...] = ()
    folder: Path | None = None
    counts: Counter = field(default_factory=Counter)

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None) -> "Translator":
        """The translator of a run's folder."""
        folder = Path(folder)
        model = load_model(folder)
        codec = Codec.load(folder / "codec")
        settings = read_settings(folder)
        search = Search(**settings.get("search", {}))
        reader = Reader.from_json(settings["reader"]) if settings.get("reader") else None
        return cls(
            model.eval().to(device or "cpu"), codec, search, reader, folder=folder,
            longest_source=min(cls.longest_source, getattr(model, "longest_source", cls.longest_source)),
            longest=settings.get("longest"), never=tuple(settings.get("never", ())),
        )  # fmt: skip

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def __call__(self, text: str | Sequence[str], **how: Any) -> Answer | list[Answer]:
        """Translate one text, or several."""
        if isinstance(text, str):
            return next(self.translate([text], **how))
        if not isinstance(text, Sequence) or not all(isinstance(line, str) for line in text):
            raise TypeError(f"a translator takes a text or a list of texts, not {type(text).__name__}")
        return list(self.translate(text, **how))

    def translate(
        self,
        lines: Iterable[str | Line],
        *,
        how: Search | None = None,
        prefixes: Iterable[str] | None = None,
        longest: int | None = None,
        align: bool = False,
        window: int = 4096,
        batch_tokens: int = 2048,
    ) -> Iterator[Answer]:
        """One answer for each line, in order; memory is that of a ``window`` of lines, however many there are.

        Args:
            how: the search; the run's own if not given.
            prefixes: text that each translation must begin with, a line each.
            longest: most tokens of a translation; twice the source's and 16 more if not given.
            align: also say which words each word came from.
            window: lines that are sorted by length together.
            batch_tokens: padded source tokens times hypotheses that run at once.
        """
        if longest is not None and not 1 <= longest <= LONGEST:
            raise ConfigError(f"the longest translation is {longest}", expected=f"a whole number from 1 to {LONGEST}")
        numbered = enumerate(lines)
        starts = iter(prefixes) if prefixes is not None else None
        while chunk := list(islice(numbered, window)):
            begun = [next(starts, "") for _ in chunk] if starts is not None else None
            yield from self._window(chunk, begun, how or self.search, longest, align, batch_tokens)

    def _window(
        self, chunk, begun, how: Search, longest: int | None, align: bool, batch_tokens: int
    ) -> Iterator[Answer]:
        lines = [line if isinstance(line, Line) else decode_line(number + 1, line) for number, line in chunk]
        sources = [self.codec.source.normalise(line.text) for line in lines]
        encoded = self.codec.encode_source(sources)
        answers: dict[int, Answer] = {}
        for place, (line, source, ids) in enumerate(zip(lines, sources, encoded, strict=True)):
            mark = line.unusable or ("blank" if not source else "over-long" if len(ids) > self.longest_source else "")
            if mark:
                self.counts[mark] += 1
                answers[place] = Answer("", source, mark=mark)
        wanted = [place for place in range(len(chunk)) if place not in answers]
        hypotheses = how.n_best if how.sampling else how.beam
        for batch in by_length([len(encoded[place]) for place in wanted], batch_tokens // hypotheses):
            places = [wanted[i] for i in batch]
            prefix_ids = self.codec.target.encode([begun[place] for place in places]) if begun else None
            numbers = [chunk[place][0] for place in places]
            found = self._search([encoded[place] for place in places], how, prefix_ids, longest, numbers)
            for place, best in zip(places, found, strict=True):
                answers[place] = self._answer(sources[place], best)
                self.counts["translated"] += 1
                self.counts["cut off"] += not answers[place].ended
        self.counts["lines"] += len(chunk)
        ordered = [answers[place] for place in range(len(chunk))]
        yield from self.align(ordered) if align else ordered

    def _search(self, sources, how: Search, prefixes, longest: int | None, numbers) -> list[list[Hypothesis]]:
        source, lengths = (x.to(self.device) for x in pad_rows(sources, self.codec.source.pad))
        begun = torch.tensor([len(ids) for ids in prefixes] if prefixes else [0] * len(sources), device=self.device)
        if longest is not None and (most := int(begun.max())) >= longest:
            raise ConfigError(
                f"a prefix has {most} tokens, and the longest translation is {longest}", remedy="raise it"
            )
        allowed = lengths * 2 + 16 + begun if longest is None else torch.full_like(lengths, longest)
        if self.longest is not None:
            allowed = allowed.clamp_max(self.longest)
        end = self.codec.target.end
        never = tuple({self.codec.target.pad, self.codec.start, *self.never} - {end})
        with torch.inference_mode():
            state = self.model.start(source, lengths)
        return search(self.model, state, Marks(self.codec.start, end, never), allowed, how, prefixes, numbers)

    def _answer(self, source: str, best: list[Hypothesis]) -> Answer:
        first, *others = (self._told(source, h) for h in best)
        return replace(first, others=tuple(others))

    def _told(self, source: str, found: Hypothesis) -> Answer:
        target = self.codec.target
        ids = (*found.tokens, target.end) if found.ended else found.tokens
        text, pieces = target.decode(found.tokens), tuple(target.pieces(ids))
        return Answer(text, source, found.score, pieces, found.token_scores, ids, found.ended)

    def score(self, pairs: Iterable[tuple[str, str]], batch: int = 64) -> Iterator[Answer]:
        """Given translations as answers: the log-probability of each token, and the score that a search would give."""
        pairs = iter(pairs)
        while chunk := list(islice(pairs, batch)):
            sources = [self.codec.source.normalise(source) for source, _ in chunk]
            targets = [ids[1:] for ids in self.codec.encode_target([target for _, target in chunk])]
            given = self.batch(sources, targets)
            with torch.inference_mode():
                states = self.model(given.source, given.source_lengths, given.target[:, :-1], given.target_lengths - 1)
                gains = word_log_probabilities(states, self.model.output, given.target[:, 1:])
            for i, (source, ids) in enumerate(zip(sources, targets, strict=True)):
                token_scores = tuple(gains[i, : len(ids)].tolist())
                score, text = self.search.score(sum(token_scores), len(ids)), self.codec.target.decode(ids[:-1])
                yield Answer(text, source, score, tuple(self.codec.target.pieces(ids)), token_scores, tuple(ids))

    def batch(self, sources: Sequence[str], targets: Sequence[Sequence[int]]) -> Batch:
        """Sources and target ids (without the start mark) as the model reads them."""
        begun = [[self.codec.start, *ids] for ids in targets]
        return pad(self.codec.encode_source(sources), begun, self.codec).to(self.device)

    def replay(self, answers: Sequence[Answer], **which: Any) -> Trace:
        """One traced pass with the target given, token by token: what the model looks at while it says just this.

        ``which`` goes to `qkv.trace`: layers, heads, queries, edit.
        """
        batch, axes = self._said(answers)
        with torch.inference_mode(), trace(self.model, axes=axes, **which) as seen:
            self.model(batch.source, batch.source_lengths, batch.target, batch.target_lengths)
        seen.maps.update(position_maps(self.model, axes, which.get("layers", "*")).maps)
        return seen

    def _said(self, answers: Sequence[Answer]) -> tuple[Batch, dict[str, list[Tokens]]]:
        """Sources and what was said, as the model reads them, and what each position is."""
        # What the decoder reads is what it said, without the end mark: nothing comes after that.
        inputs = [a.ids[:-1] if a.ended else a.ids for a in answers]
        batch = self.batch([a.source for a in answers], inputs)
        sources = _rows(batch.source, batch.source_lengths)
        return batch, {
            "source": [self.codec.source_axis(a.source, row) for a, row in zip(answers, sources, strict=True)],
            "target": [self.codec.target.tokens(row) for row in _rows(batch.target, batch.target_lengths)],
        }

    def saliency(self, answer: Answer) -> Map:
        """How much the chance of each word of an answer depends on each word of its source; see `qkv.look.saliency`."""
        batch, axes = self._said([answer])
        # The last step predicts the end mark, or where there is none, is no step at all: nothing was said there.
        said = torch.tensor([*answer.ids, *([] if answer.ended else [self.codec.target.end])], device=self.device)

        def chances(first: int, last: int, copies: int) -> Tensor:
            source, target = (ids.expand(copies, -1) for ids in (batch.source, batch.target))
            of_source, of_target = (size.expand(copies) for size in (batch.source_lengths, batch.target_lengths))
            states = self.model(source, of_source, target, of_target)
            own = states[torch.arange(copies), torch.arange(first, last)]
            logits = self.model.output(own).float()
            return logits.log_softmax(-1).gather(1, said[first:last, None])[:, 0]

        return saliency(self.model.source, chances, axes["target"][0], axes["source"][0])

    def align(self, answers: Sequence[Answer], batch: int = 64) -> Iterator[Answer]:
        """The same answers with their word links, read off the layer and heads that the run says."""
        reader = self.reader or default_reader(self.model)
        if reader is None:
            raise ConfigError(
                "this model has no attention, so there is no alignment to read",
                remedy="alignments need a model with attention: --size.attention dot, bilinear or additive",
            )
        for begin in range(0, len(answers), batch):
            part = answers[begin : begin + batch]
            spoken = [a for a in part if a.ids]
            seen = self.replay(spoken, layers=reader.layer) if spoken else None
            places = iter(range(len(spoken)))
            for answer in part:
                links = reader.links(seen.example(next(places))) if answer.ids else ()
                yield replace(answer, links=tuple(links))

    def look(self, text: str, **which: Any) -> Trace:
        """Translate ``text`` and replay what was returned under a trace; ``which`` goes to `look_at`."""
        return self.look_at(self(text), **which)

    def look_at(self, answer: Answer, *, gradient: bool = False, **which: Any) -> Trace:
        """What the model looked at while it said this answer; the trace's notes hold the rest of what is known.

        Args:
            gradient: add what each word hangs on by its gradient, as one more map. A model without attention has no
                other.
            which: goes to `qkv.trace`: layers, heads, queries, edit.
        """
        if not answer.ids:
            raise DataError(
                f"there is nothing to look at: the text is {answer.mark}", expected="a text that can be translated"
            )
        reader = self.reader or default_reader(self.model)
        if not reader and not any(fnmatch.fnmatchcase(NAME, pattern) for pattern in _patterns(which)):
            raise ConfigError(
                f"this model has no attention, and no layer {which['layers']!r}", expected=f"{NAME!r} or *"
            )
        remark = "" if reader else no_attention(which, INSTEAD)
        seen = self.replay([answer], **which) if reader else Trace()
        if gradient or not reader:
            seen.maps[NAME] = [self.saliency(answer)]
        seen.notes.update(
            source=answer.source, target=answer.text, score=answer.score, token_scores=list(answer.token_scores),
            run=str(self.folder) if self.folder else "",
        )  # fmt: skip
        if reader:
            seen.notes["alignment"] = reader.note(self.replay([answer], layers=reader.layer) if which else seen)
        else:
            batch, _ = self._said([answer])
            given = batch.source, batch.source_lengths, batch.target, batch.target_lengths
            seen.notes.update(norms=state_norms(self.model, lambda: self.model(*given)), remark=remark)
        return seen


def _patterns(which: Mapping[str, Any]) -> list[str]:
    layers = which.get("layers", "*")
    return [layers] if isinstance(layers, str) else list(layers)


def default_reader(model: nn.Module) -> Reader | None:
    """All heads of the last cross-attention but one: where alignments are best found unseen (Garg et al. 2019).

    None for a model that has no attention from what it writes to what it reads.
    """
    layers = [
        (name, m) for name, m in model.named_modules() if isinstance(m, Attention) and m.between[0] != m.between[1]
    ]
    if not layers:
        return None
    name, layer = layers[max(0, len(layers) - 2)]
    return Reader(name, tuple(range(layer.heads)))


def _rows(ids: Tensor, lengths: Tensor) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]
