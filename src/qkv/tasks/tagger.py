"""A trained tagger: raw lines or given words in, tags and spans out, at the unit that it was trained with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, NamedTuple

from torch import Tensor

from qkv.data.lines import decode_line, raw_lines
from qkv.data.spans import spans_of, spelled
from qkv.data.tags_codec import NONE, TagCodec, Window
from qkv.errors import DataError
from qkv.tasks.encoder import BATCH_TOKENS, run_rows
from qkv.tasks.encoder_look import Outcome, Reading
from qkv.tasks.text_reader import TextReader

__all__ = ["Found", "TagAnswer", "Tagger", "read_raw"]

SHOWN = 8  # spans, or words, whose reasons are shown


class Found(NamedTuple):
    """A span, or of plain tags a word: characters ``start`` to ``end`` of the text, what it is, and how sure that is
    (the mean probability of its units' tags)."""

    start: int
    end: int
    kind: str
    text: str
    score: float


@dataclass(frozen=True)
class TagAnswer:
    """What became of one line.

    Attributes:
        text: the line as it was given, or the given words joined.
        places: of each unit its ``(start, end)`` in ``text``.
        tags: of each unit, spelled as ``bio``, or plain.
        found: the spans; of plain tags the words.
        mark: why there is no answer: "blank", "over-long" or "undecodable"; empty otherwise.
    """

    text: str
    places: tuple[tuple[int, int], ...] = ()
    tags: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()
    mark: str = ""

    def __str__(self) -> str:
        """The text with its spans marked: ``[Seoul]LOC is large``; of plain tags, the words with theirs."""
        shown, at = "", 0
        for start, end, kind, text, _ in self.found:
            shown += f"{self.text[at:start]}[{text}]{kind}"
            at = end
        return shown + self.text[at:]


def read_raw(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    """``(text, mark)`` of each line; the text is as it stands there, so that spans count in it."""
    for number, raw in enumerate(raw_lines(stream), start=1):
        mark = decode_line(number, raw).unusable or ""
        yield ("" if raw is None or mark == "undecodable" else raw.decode("utf-8").removesuffix("\r")), mark


class Tagger(TextReader):
    """A model with its codec. ``tagger("a sentence")`` answers; `tag` does so for any number of lines."""

    codec: TagCodec
    Codec = TagCodec

    def __call__(self, text: str | Sequence[str]) -> TagAnswer | list[TagAnswer]:
        """Answer for one sentence, or for a list of them."""
        if isinstance(text, str):
            return next(self.tag([text]))
        if not isinstance(text, Sequence) or not all(isinstance(one, str) for one in text):
            raise TypeError(f"a tagger takes a text or a list of texts, not {type(text).__name__}")
        return list(self.tag(text))

    def tag(
        self, lines: Iterable[str | tuple[str, str]], *, window: int = 4096, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[TagAnswer]:
        """One answer for each line (or ``(text, mark)`` of `read_raw`), in order; memory is that of a ``window``."""
        rest = iter(lines)
        while chunk := list(islice(rest, window)):
            pairs = [(one, "" if one.strip() else "blank") if isinstance(one, str) else one for one in chunk]
            good = iter(
                self._answers([(text, self.codec.units(text)) for text, mark in pairs if not mark], batch_tokens)
            )
            for text, mark in pairs:
                self.counts["lines"] += 1
                if mark:
                    self.counts[mark] += 1
                yield TagAnswer(text, mark=mark) if mark else next(good)

    def tag_words(
        self, sentences: Iterable[Sequence[str]], *, window: int = 4096, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[TagAnswer]:
        """One answer for each sentence of given words (or characters), with a tag for each of them."""
        rest = iter(sentences)
        while chunk := list(islice(rest, window)):
            self.counts["lines"] += len(chunk)
            yield from self._answers([self.codec.layout(words) for words in chunk], batch_tokens)

    def _answers(self, laid: Sequence[tuple[str, list[tuple[int, int]]]], batch_tokens: int) -> list[TagAnswer]:
        windows = [self.codec.windows(text, places) for text, places in laid]
        rows = [(window.encoded.ids, window.encoded.segments) for some in windows for window in some]
        logits = iter(run_rows(self.model, rows, self.codec.text.pad, batch_tokens))
        return [
            self._answer(text, places, some, [next(logits).softmax(1) for _ in some])
            for (text, places), some in zip(laid, windows, strict=True)
        ]

    def _answer(
        self, text: str, places: list[tuple[int, int]], windows: list[Window], chances: list[Tensor]
    ) -> TagAnswer:
        blank = [not text[start:end].strip() for start, end in places]
        tags = self.codec.said(windows, [chance.argmax(1).tolist() for chance in chances], blank)
        sure = {}
        for window, chance in zip(windows, chances, strict=True):
            best = chance.amax(1).tolist()
            sure |= {unit: best[token] for token, unit in enumerate(window.units) if unit != NONE}

        def found(start: int, end: int, kind: str) -> Found:
            scores = [sure[unit] for unit in range(start, end) if unit in sure]
            begin, stop = places[start][0], places[end - 1][1]
            return Found(begin, stop, kind, text[begin:stop], sum(scores) / max(len(scores), 1))

        if self.codec.plain:
            every = tuple(found(i, i + 1, tag) for i, tag in enumerate(tags))
        else:
            every = tuple(found(*span) for span in spans_of(tags))
        return TagAnswer(text, tuple(places), tuple(tags), every)

    def spelled(self, answer: TagAnswer) -> list[str]:
        """The tags of an answer in the scheme of the files that the tagger learned from."""
        if self.codec.plain:
            return list(answer.tags)
        return spelled(spans_of(answer.tags), len(answer.tags), self.codec.scheme)

    def reading(self, text: str, pair: str | None = None) -> Reading:
        """A sentence as the model reads it, and its answers; of one that is read in several windows, the first.

        Raises:
            DataError: there is no answer, or there are two texts.
        """
        if pair is not None:
            raise DataError("a tagger reads one text, and here are two", remedy="leave --pair out")
        return self.reading_of(self(text))

    def reading_of(self, answer: TagAnswer) -> Reading:
        """The same of an answer."""
        if answer.mark:
            raise DataError(f"there is nothing to look at: the text is {answer.mark}", expected="a text with words")
        first, *more = self.codec.windows(answer.text, list(answer.places))
        remark = f"The sentence is read in {1 + len(more)} windows; shown is the first of them." if more else ""
        axis = self.codec.text.axis(first.encoded, answer.text)
        return Reading(first.encoded, axis, self.outcomes(answer, first), str(answer), remark)

    def outcomes(self, answer: TagAnswer, window: Window, count: int = SHOWN) -> list[Outcome]:
        """The tags of the first spans of a window (where there are none, of the first words), at their first pieces."""
        token_of = {unit: token for token, unit in enumerate(window.units) if unit != NONE}
        spans = [] if self.codec.plain else spans_of(answer.tags)
        starts = [span.start for span in spans] or range(len(answer.tags))

        def tag(unit: int) -> Outcome:
            token, place = token_of[unit], self.codec.tags.index(answer.tags[unit])
            word = answer.text[slice(*answer.places[unit])]

            def score(states: Tensor, lengths: Tensor) -> Tensor:
                return self.model.classify(states, lengths)[0, token].float().log_softmax(0)[place]

            return Outcome(f"{word}:{answer.tags[unit]}", score, token)

        return [tag(unit) for unit in starts if unit in token_of][:count]
