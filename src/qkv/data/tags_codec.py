"""Tagged words to what an encoder reads, and its answers back to words, spans and characters.

The unit of a tagger is the word of its files; of files of single characters it is the character. A unit is read in
pieces, and **its first piece carries its tag**. A long sentence is read in windows that overlap; each piece is judged
in the window that shows most on both sides of it, so nothing is cut off.

A unit in which no piece begins has no answer of its own: a character inside a piece goes on with what the piece says, a
blank lies in a span that goes on after it, and a word of which no piece is left is outside (of plain tags, it has the
most frequent one).
"""

import json
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qkv.data.codec import fingerprint_of
from qkv.data.spans import OUTSIDE, Scheme, spans_of, spelled
from qkv.data.text_codec import Encoded, TextCodec
from qkv.errors import RunError

__all__ = ["TagCodec", "Window", "make_tags", "words_of"]

FILE = "tags.json"
NONE = -1
_RUNS = re.compile(r"\w+|[^\w\s]")
_ZWJ = "\u200d"  # between letters it shapes them, between emoji it makes one of them
_HANGS = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")  # joiners, skin tones, tags of flags
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]{2}")  # two of these letters are one flag


@dataclass(frozen=True)
class Window:
    """What the encoder reads at once, and for each of its tokens the unit whose answer it gives; -1 for none."""

    encoded: Encoded
    units: tuple[int, ...]


def words_of(text: str) -> list[tuple[int, int]]:
    """The words of raw text, as ``(start, end)``: runs of letters and digits, and each other sign for itself.

    What Unicode hangs on a character stays with it, as in its grapheme clusters (UAX #29), and divides no word: accents
    and vowel signs, joiners, variation selectors, skin tones; emoji that are joined are one sign, and so is a flag.
    Only a mark with nothing before it stands for itself.
    """
    words: list[tuple[int, int]] = []
    for run in _RUNS.finditer(text):
        start, end = run.span()
        begin = words.pop()[0] if words and words[-1][1] == start and _goes_on(text, words[-1][0], start) else start
        words.append((begin, end))
    return words


def _goes_on(text: str, begin: int, at: int) -> bool:
    """Whether what is at a place belongs to the word that begins at ``begin`` and reaches there."""
    if unicodedata.category(text[at]).startswith("M") or _HANGS.match(text[at]):
        return True
    if _letter(text[begin]):
        return _letter(text[at])  # between them were only marks
    return text[at - 1] == _ZWJ or (at == begin + 1 and _FLAG.match(text, begin) is not None)


def _letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def make_tags(sentences: Sequence[Sequence[str]], scheme: Scheme) -> tuple[str, ...]:
    """All tags that can be said: O and both of each kind of span; or the plain ones, the most frequent first."""
    if scheme == "plain":
        counts = Counter(tag for tags in sentences for tag in tags)
        return tuple(sorted(counts, key=lambda tag: (-counts[tag], tag)))
    kinds = sorted({span.kind for tags in sentences for span in spans_of(tags)})
    return (OUTSIDE, *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))


@dataclass(frozen=True)
class TagCodec:
    """How words become numbers, and what the model's numbers mean.

    Attributes:
        text: cuts text into pieces.
        tags: names of the outputs, in their order; spans are always spelled as ``bio`` inside.
        scheme: how the user's files spell them.
        characters: the unit is the character.
        longest: most pieces of a window, marks counted.
    """

    text: TextCodec
    tags: tuple[str, ...]
    scheme: Scheme
    characters: bool
    longest: int

    @property
    def plain(self) -> bool:
        """Whether there are no spans."""
        return self.scheme == "plain"

    def layout(self, words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
        """The text of some words, and where each lies in it. A blank after a blank has no place."""
        text, places = "", []
        for word in words:
            if text and not self.characters:
                text += " "
            begin = len(text)
            if word != " " or (text and not text.endswith(" ")):
                text += word
            places.append((begin, len(text)))
        return text, places

    def units(self, text: str) -> list[tuple[int, int]]:
        """Where the units of raw text lie."""
        return [(i, i + 1) for i in range(len(text))] if self.characters else words_of(text)

    def windows(self, text: str, places: Sequence[tuple[int, int]]) -> list[Window]:
        """What is read of a text whose units lie at ``places``."""
        windows = self.text.windows(text, self.longest)
        owners, starts = _owners(windows), [start for start, _ in places]
        carries: dict[int, tuple[int, int, tuple[int, int]]] = {}  # unit -> window, token, span of its first piece
        for number, encoded in enumerate(windows):
            for token, (start, end) in enumerate(encoded.spans):
                if start == end or owners[encoded.first + token - 1] != number:
                    continue
                unit = bisect_right(starts, start) - 1
                if unit < 0 or start >= places[unit][1]:
                    continue
                # Several pieces may stand for one character; the last has read the others.
                if unit not in carries or carries[unit][2] == (start, end):
                    carries[unit] = (number, token, (start, end))
        units = [[NONE] * len(encoded) for encoded in windows]
        for unit, (number, token, _) in carries.items():
            units[number][token] = unit
        return [Window(encoded, tuple(own)) for encoded, own in zip(windows, units, strict=True)]

    def labels(self, windows: Sequence[Window], tags: Sequence[str]) -> list[list[int]]:
        """The number of the tag of each token of each window, -1 where it gives no answer."""
        carried = sorted(unit for window in windows for unit in window.units if unit != NONE)
        said = [tags[unit] for unit in carried]
        said = said if self.plain else spelled(spans_of(said), len(said))  # a span's first unit may have no piece
        number = {tag: i for i, tag in enumerate(self.tags)}
        label = {unit: number[tag] for unit, tag in zip(carried, said, strict=True)}
        return [[label.get(unit, NONE) for unit in window.units] for window in windows]

    def said(self, windows: Sequence[Window], answers: Sequence[Sequence[int]], blank: Sequence[bool]) -> list[str]:
        """The tag of each unit, spans repaired, from the number of the tag that each token of each window says.

        Args:
            blank: of each unit, whether it is a blank.
        """
        found: list[str | None] = [None] * len(blank)
        for window, numbers in zip(windows, answers, strict=True):
            for unit, tag in zip(window.units, numbers, strict=False):
                if unit != NONE:
                    found[unit] = self.tags[tag]
        tags: list[str] = []
        for unit, tag in enumerate(found):
            tags.append(tag if tag is not None else self._unsaid(unit, found, tags, blank[unit]))
        return tags if self.plain else spelled(spans_of(tags), len(tags))

    def _unsaid(self, unit: int, found: Sequence[str | None], before: Sequence[str], blank: bool) -> str:
        if self.plain:
            return self.tags[0]
        last = before[-1] if before else OUTSIDE
        if not self.characters or last == OUTSIDE:
            return OUTSIDE
        inside = f"I-{last[2:]}"
        following = next((tag for tag in found[unit:] if tag is not None), OUTSIDE)
        return inside if not blank or following == inside else OUTSIDE

    def save(self, folder: Path) -> None:
        """Write the folder of the vocabulary, and ``tags.json`` in it."""
        self.text.save(folder)
        plain = {
            "version": 1, "tags": self.tags, "scheme": self.scheme, "characters": self.characters,
            "longest": self.longest,
        }  # fmt: skip
        (folder / FILE).write_text(json.dumps(plain, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "TagCodec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        folder = Path(folder)
        try:
            plain = json.loads((folder / FILE).read_text(encoding="utf-8"))
            if plain.pop("version") != 1:
                raise ValueError("it is of another version")
            plain["tags"] = tuple(plain["tags"])
            return cls(TextCodec.load(folder), **plain)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the tags cannot be read ({error})",
                expected=FILE,
                remedy="copy the whole run folder again",
                file=folder,
            ) from error

    def fingerprint(self) -> str:
        """Equal for equal codecs."""
        return fingerprint_of(self.save)


def _owners(windows: Sequence[Encoded]) -> np.ndarray:
    """For each piece of a text the window that shows most on both sides of it."""
    pieces = windows[-1].first + len(windows[-1]) - 2
    best, owners = np.full(pieces, -1.0), np.zeros(pieces, np.int64)
    for number, window in enumerate(windows):
        begin, end = window.first, window.first + len(window) - 2
        at = np.arange(begin, end)
        left = np.full(len(at), np.inf) if number == 0 else at - begin
        right = np.full(len(at), np.inf) if number == len(windows) - 1 else end - 1 - at
        margin = np.minimum(left, right)
        better = margin > best[begin:end]
        owners[begin:end][better], best[begin:end][better] = number, margin[better]
    return owners
