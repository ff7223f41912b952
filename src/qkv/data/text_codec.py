"""A text, or a pair of them, to what an encoder such as BERT reads, and back to the characters of the raw text.

    [CLS] pieces of the text [SEP]
    [CLS] pieces of the text [SEP] pieces of the other [SEP]

The marks are ids that no text can spell. Of a vocabulary of our own (`qkv.data.subwords.Subwords`) the marks ``<pad>``,
``<s>`` and ``</s>`` are [PAD], [CLS] and [SEP], and [MASK] is one id after all pieces; a published one
(`qkv.data.wordpieces.WordPieces`) has its own.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from qkv.axis import Tokens
from qkv.data.codec import Vocabulary, fingerprint_of, load_vocabulary
from qkv.data.subwords import Subwords
from qkv.errors import DataError, RunError

__all__ = ["MASK", "Encoded", "TextCodec"]

MASK = "[MASK]"  # how a user writes a hole, and how marks are shown
SHOWN = ("[PAD]", "[CLS]", "[SEP]", MASK)
Span = tuple[int, int]


@dataclass(frozen=True)
class Encoded:
    """What an encoder reads of a text or a pair.

    Attributes:
        ids: with marks.
        segments: 0 for [CLS], the first text and its [SEP], 1 for the other text and its [SEP].
        spans: of each id its ``(start, end)`` in the raw text of its segment; ``(0, 0)`` for a mark.
        first: of a window, the number of its first piece among all pieces of the text.
    """

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    spans: tuple[Span, ...]
    first: int = 0

    def __len__(self) -> int:
        return len(self.ids)


class TextCodec:
    """A vocabulary and its marks. Saved as a run's ``codec/``.

    Attributes:
        vocabulary: what cuts text into pieces.
        pad, cls, sep, mask: ids of the marks.
        size: how many ids there are.
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        if isinstance(vocabulary, Subwords):
            marks = (vocabulary.pad, vocabulary.start, vocabulary.end, vocabulary.size)
        else:
            marks = (vocabulary.pad, vocabulary.cls, vocabulary.sep, vocabulary.mask)
        self.pad, self.cls, self.sep, self.mask = marks
        self.size = max(vocabulary.size, self.mask + 1)

    @cached_property
    def ordinary(self) -> np.ndarray:
        """int64: the ids that stand for text, in order."""
        if isinstance(self.vocabulary, Subwords):
            return np.arange(max(self.pad, self.cls, self.sep) + 1, self.vocabulary.size)
        return np.array(self.vocabulary.ordinary())

    @cached_property
    def opens(self) -> np.ndarray:
        """bool of each id: it begins a word; a mark is a word of its own."""
        marks = {self.pad, self.cls, self.sep, self.mask}
        return np.array([i in marks or self.vocabulary.opens_word(i) for i in range(self.size)])

    def normalise(self, text: str) -> str:
        """The text as the vocabulary sees it."""
        return self.vocabulary.normalise(text)

    def pieces_of(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text without marks: fast, for many texts."""
        return self.vocabulary.encode(texts)

    def fit(self, sides: Sequence[Sequence[int]], longest: int) -> list[Sequence[int]]:
        """The pieces of a text or of two, cut so that with their marks they are at most ``longest``: pieces go from the
        end of the longer text until they fit.
        """
        room = max(longest - 1 - len(sides), 0)
        if len(sides) == 2:
            kept = _shared(*map(len, sides), room)
            return [side[:size] for side, size in zip(sides, kept, strict=True)]
        return [side[:room] for side in sides]

    def join(self, first: Sequence[int], second: Sequence[int] | None = None) -> tuple[list[int], list[int]]:
        """``(ids, segments)`` of pieces with the marks around them."""
        ids = [self.cls, *first, self.sep]
        if second is None:
            return ids, [0] * len(ids)
        return [*ids, *second, self.sep], [0] * len(ids) + [1] * (len(second) + 1)

    def encode(self, text: str, pair: str | None = None, longest: int | None = None) -> Encoded:
        """What the encoder reads of a text, or of two.

        Args:
            longest: most ids, marks counted; pieces go from the end of the longer text until they fit. To lose none of
                a single text, use `windows`.
        """
        sides = [self.vocabulary.locate(side) for side in (text, pair) if side is not None]
        kept = [len(ids) for ids, _ in sides]
        room = (1 << 30 if longest is None else longest) - 1 - len(sides)
        if len(kept) == 2:
            kept = _shared(*kept, room)
        kept = [min(size, max(room, 0)) for size in kept]
        return self._marked([(ids[:size], spans[:size]) for (ids, spans), size in zip(sides, kept, strict=True)])

    def windows(self, text: str, longest: int, overlap: int | None = None) -> list[Encoded]:
        """A text of any length as windows of at most ``longest`` ids, marks counted.

        Each but the first begins ``overlap`` pieces (a quarter of a window if not given) before the last one ended, or
        somewhat earlier, at the beginning of a word.
        """
        ids, spans = self.vocabulary.locate(text)
        room = longest - 2
        if room < 1:
            raise DataError(f"a window of {longest} tokens has no room for text beside its marks", expected="3 or more")
        overlap = min(room // 4 if overlap is None else overlap, room - 1)
        found, begin = [], 0
        while True:
            part = slice(begin, begin + room)
            found.append(replace(self._marked([(ids[part], spans[part])]), first=begin))
            if begin + room >= len(ids):
                return found
            latest = begin + room - overlap
            begin = next((i for i in range(latest, max(begin, latest - overlap), -1) if self.opens[ids[i]]), latest)

    def encode_holes(self, text: str) -> Encoded:
        """As `encode`, but each ``[MASK]`` in the text is the mark: what a user who fills holes writes."""
        parts = text.split(MASK)
        ids, spans, at = [], [], 0
        for number, part in enumerate(parts):
            if number:
                ids.append(self.mask)
                spans.append((at - len(MASK), at))
            found, places = self.vocabulary.locate(part, inside=number > 0 and not part[:1].isspace())
            ids += found
            spans += [(at + start, at + end) for start, end in places]
            at += len(part) + len(MASK)
        return self._marked([(ids, spans)])

    def shown(self, ids: Sequence[int]) -> list[str]:
        """What to show for each id: pieces, and marks as ``[CLS]``."""
        marks = dict(zip((self.pad, self.cls, self.sep, self.mask), SHOWN, strict=True))
        return [marks[i] if i in marks else self.vocabulary.pieces([i])[0] for i in ids]

    def axis(self, encoded: Encoded, text: str, pair: str | None = None) -> Tokens:
        """What each position is, for a map; two texts stand one after the other with a blank between."""
        further = len(text) + 1
        spans = [
            (start + further, end + further) if segment and end > start else (start, end)
            for (start, end), segment in zip(encoded.spans, encoded.segments, strict=True)
        ]
        whole = text if pair is None else f"{text} {pair}"
        return Tokens(tuple(self.shown(encoded.ids)), tuple(spans), whole)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; marks stand for nothing."""
        return self.vocabulary.decode([i for i in ids if i not in (self.pad, self.cls, self.sep, self.mask)])

    def save(self, folder: Path) -> None:
        """Write ``folder`` (the run's ``codec/``), replacing one that is there."""
        folder = Path(folder)
        beside = folder.with_name(folder.name + ".partial")
        shutil.rmtree(beside, ignore_errors=True)
        (beside / "vocabulary").mkdir(parents=True)
        self.vocabulary.save(beside / "vocabulary")
        header = {"version": 1, "of": "texts", "kind": self.vocabulary.kind}
        (beside / "codec.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)

    @classmethod
    def load(cls, folder: Path) -> "TextCodec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        folder = Path(folder)
        try:
            header = json.loads((folder / "codec.json").read_text(encoding="utf-8"))
            if (header["version"], header.get("of")) != (1, "texts"):
                raise RunError("the codec is not one of texts", expected="that of a run on texts", file=folder)
            return cls(load_vocabulary(header["kind"], folder / "vocabulary"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the codec cannot be read ({error})", expected="codec.json and the vocabulary beside it",
                remedy="copy the whole run folder again", file=folder,
            ) from error  # fmt: skip

    def fingerprint(self) -> str:
        """Equal for equal codecs: what encoded data is keyed by."""
        return fingerprint_of(self.save)

    def _marked(self, sides: Sequence[tuple[Sequence[int], Sequence[Span]]]) -> Encoded:
        ids, segments = self.join(*(ids for ids, _ in sides))
        none: Span = (0, 0)
        spans = [none]
        for _, places in sides:
            spans += [*places, none]
        return Encoded(tuple(ids), tuple(segments), tuple(spans))


def _shared(first: int, second: int, room: int) -> list[int]:
    """How many pieces of each text are kept: the longer one gives first."""
    over = max(0, first + second - room)
    give = min(over, abs(first - second))
    first, second = (first - give, second) if first > second else (first, second - give)
    over -= give
    return [max(0, first - over // 2), max(0, second - (over + 1) // 2)]
