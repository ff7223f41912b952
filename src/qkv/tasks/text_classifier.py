"""A trained classifier of texts, or a model that says a number of each: line in, answer out, and what it looked at."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from torch import Tensor

from qkv.data.labels import LabelCodec
from qkv.data.lines import Line, decode_line, raw_lines
from qkv.errors import DataError
from qkv.tasks.class_scores import CUT
from qkv.tasks.encoder import BATCH_TOKENS, run_rows
from qkv.tasks.encoder_look import Outcome, Reading
from qkv.tasks.text_outcomes import probabilities
from qkv.tasks.text_reader import TextReader

__all__ = ["TextAnswer", "TextClassifier", "read_texts"]

SHOWN = 5  # classes whose reasons are shown


@dataclass(frozen=True)
class TextAnswer:
    """What became of one text, or of a pair.

    Attributes:
        texts: as the model saw them.
        label: the class; with several labels all that are more likely than not; or the number. None where there is no
            answer.
        probabilities: of each of ``classes``, in their order; empty for a number.
        mark: why there is no answer: "blank", "over-long", "undecodable" or "no pair"; empty otherwise.
    """

    texts: tuple[str, ...]
    label: str | tuple[str, ...] | float | None
    probabilities: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    mark: str = ""

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The likeliest classes, each with its probability."""
        order = sorted(range(len(self.classes)), key=lambda i: -self.probabilities[i])
        return [(self.classes[i], self.probabilities[i]) for i in order[:count]]

    def __str__(self) -> str:
        if self.label is None:
            return ""
        return f"{self.label:g}" if isinstance(self.label, float) else (
            self.label if isinstance(self.label, str) else "|".join(self.label)
        )  # fmt: skip


def read_texts(stream: BinaryIO, pair: bool = False) -> Iterator[tuple[Line, ...]]:
    """A text a line, or two with a tab between; a line without a tab then has one text only."""
    for number, raw in enumerate(raw_lines(stream), start=1):
        cells = raw.split(b"\t") if pair and raw is not None else [raw]
        yield tuple(decode_line(number, cell) for cell in cells)


class TextClassifier(TextReader):
    """A model with its codec. ``classifier("a text")`` answers; `answers` does so for any number of texts."""

    codec: LabelCodec
    Codec = LabelCodec

    @property
    def classes(self) -> tuple[str, ...]:
        return self.codec.targets.classes

    def __call__(self, text: str | Sequence[str], pair: str | None = None) -> TextAnswer | list[TextAnswer]:
        """Answer for one text (or a pair), or for a list of texts."""
        if isinstance(text, str):
            return next(self.answers([(text,) if pair is None else (text, pair)]))
        if not isinstance(text, Sequence) or not all(isinstance(one, (str, tuple)) for one in text):
            raise TypeError(f"a classifier takes a text or a list of texts, not {type(text).__name__}")
        return list(self.answers((one,) if isinstance(one, str) else one for one in text))

    def answers(
        self, texts: Iterable[Sequence[str | Line]], *, window: int = 4096, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[TextAnswer]:
        """One answer for each text or pair, in order; memory is that of a ``window`` of them."""
        rest = iter(texts)
        while chunk := list(islice(rest, window)):
            yield from self._window(chunk, batch_tokens)

    def _window(self, chunk: list[Sequence[str | Line]], batch_tokens: int) -> Iterator[TextAnswer]:
        lines = [
            tuple(side if isinstance(side, Line) else decode_line(i, side) for side in one)
            for i, one in enumerate(chunk)
        ]
        marks = [self._mark(sides) for sides in lines]
        texts = [tuple(side.text for side in sides) for sides in lines]
        good = iter(self.answers_to([own for own, mark in zip(texts, marks, strict=True) if not mark], batch_tokens))
        for own, mark in zip(texts, marks, strict=True):
            self.counts["lines"] += 1
            if mark:
                self.counts[mark] += 1
            yield TextAnswer(own, None, mark=mark) if mark else next(good)

    def answers_to(self, texts: Sequence[tuple[str, ...]], batch_tokens: int = BATCH_TOKENS) -> list[TextAnswer]:
        """An answer for each clean text or pair, also for an empty one."""
        rows = self.codec.encode(texts) if texts else []
        found = run_rows(self.model, rows, self.codec.text.pad, batch_tokens)
        return [self._answer(own, logits) for own, logits in zip(texts, found, strict=True)]

    def _mark(self, sides: Sequence[Line]) -> str:
        if len(sides) != 1 + self.codec.pair:
            return "blank" if not any(side.text for side in sides) else "no pair"
        return next((side.unusable for side in sides if side.unusable), "")

    def _answer(self, texts: tuple[str, ...], logits: Tensor) -> TextAnswer:
        targets = self.codec.targets
        if targets.labels == "number":
            return TextAnswer(texts, targets.decode(logits[None])[0])
        chances = tuple(probabilities(logits[None], targets)[0].tolist())
        if targets.labels == "several":
            label = tuple(name for name, chance in zip(targets.classes, chances, strict=True) if chance >= CUT)
        else:
            label = targets.decode(logits[None])[0]
        return TextAnswer(texts, label, chances, targets.classes)

    def reading(self, text: str, pair: str | None = None) -> Reading:
        """A text as the model reads it, and its answers."""
        return self.reading_of(self(text, pair))

    def reading_of(self, answer: TextAnswer) -> Reading:
        """The same of an answer.

        Raises:
            DataError: there is none.
        """
        if answer.mark:
            raise DataError(f"there is nothing to look at: the text is {answer.mark}", expected="a text with an answer")
        encoded = self.codec.text.encode(*answer.texts, longest=self.codec.longest)
        said = "  ".join(f"{name} {chance:.3f}" for name, chance in answer.top(SHOWN)) or str(answer)
        return Reading(encoded, self.codec.text.axis(encoded, *answer.texts), self.outcomes(answer), said)

    def outcomes(self, answer: TextAnswer, count: int = SHOWN) -> list[Outcome]:
        """The likeliest classes of an answer, or its number, as what gradients are taken of."""

        def output(place: int) -> Outcome:
            name = self.classes[place] if self.classes else str(answer)

            def score(states: Tensor, lengths: Tensor) -> Tensor:
                logits = self.model.classify(states, lengths).float()
                # The logit beside the others': what makes this class likelier than they are.
                return (logits.log_softmax(1) if self.codec.targets.labels == "class" else logits)[0, place]

            return Outcome(name, score)

        places = [self.classes.index(name) for name, _ in answer.top(count)] if self.classes else [0]
        return [output(place) for place in places]
