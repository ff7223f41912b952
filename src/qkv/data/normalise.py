"""What is done to a line of text before it is cut into pieces, and what was wrong with it.

`clean` is the only reading of text in the package: training data, translation input and the demo page all pass through
it, so a word has the same ids everywhere. It keeps one line one line and makes equal-looking text equal:

- composed form (NFC): Hangul typed as consonants and vowels becomes syllables;
- byte-order marks, NUL, carriage returns and other control characters are removed;
- every other line separator (U+2028, U+2029, U+0085, vertical tab, form feed) and every blank (tab, no-break space,
  ideographic space) becomes a blank, runs of blanks become one, blanks at both ends go.

Everything else stays: case, accents, emoji joiners, private-use characters, text that looks like a special token.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Normaliser", "clean", "faults", "raw_spans"]

SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  # what str.splitlines would break a line at, apart from \r and \n
_SEPARATOR = re.compile(f"[{SEPARATORS}]")
_MARK = re.compile("\ufeff")
_CONTROL = re.compile("[\x00-\x08\x0d-\x1b\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")  # tab is a blank; lone surrogates go
_REMOVED = re.compile("[\x00-\x08\x0d-\x1b\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_WORD = re.compile(r"[\S\r\x1f]{1,1000}")  # those two are no blanks here: they are removed
_ACCENTS = re.compile(
    "[\u0300-\u036f]"
)  # marks of Latin, Greek and Cyrillic letters; never Hangul, kana or vowel signs


def clean(text: str) -> str:
    """One line in composed form without control characters, single blanks between words. Idempotent."""
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFC", _REMOVED.sub("", text))
    return " ".join(text.split())  # str.split breaks at every Unicode blank and at every line separator


def faults(text: str) -> tuple[str, ...]:
    """The kinds of what `clean` would mend in a line (without its line end) beyond blanks, in a fixed order."""
    if text.isascii() and text.isprintable():
        return ()
    found = []
    if _MARK.search(text):
        found.append("byte-order mark")
    if text.endswith("\r"):
        found.append("CRLF")
        text = text[:-1]
    if _CONTROL.search(text):
        found.append("control character")
    if _SEPARATOR.search(text):
        found.append("line separator")
    if not unicodedata.is_normalized("NFC", text):
        found.append("not composed")
    return tuple(found)


@dataclass(frozen=True)
class Normaliser:
    """`clean`, and if asked for without capitals and without accents.

    Accents are the combining marks U+0300 to U+036F (é -> e, й -> и); syllables of Hangul stay whole.
    """

    lowercase: bool = False
    strip_accents: bool = False

    def __call__(self, text: str) -> str:
        text = clean(text)
        if self.lowercase:
            text = unicodedata.normalize("NFC", text.lower())
        if self.strip_accents and not text.isascii():
            text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
        return clean(text) if self.lowercase or self.strip_accents else text


def raw_spans(normalise: Callable[[str], str], text: str) -> list[tuple[int, int]]:
    """Where each character of ``normalise(text)`` stands in ``text``: ``(start, end)``.

    A blank has the place of the blanks that it stands for. A word that is changed is followed prefix by prefix: its
    i-th character ends where the normalised prefix comes to be longer than i.
    """
    whole = normalise(text)
    if whole == text:
        return [(i, i + 1) for i in range(len(text))]
    spans: list[tuple[int, int]] = []
    found, end = "", 0
    for match in _WORD.finditer(text):
        word = normalise(match[0])
        if not word:
            continue
        if found and match.start() > end:
            found += " "
            spans.append((end, match.start()))
        found += word
        spans += [(match.start() + start, match.start() + stop) for start, stop in _inside(normalise, match[0], word)]
        end = match.end()
    if found != whole:  # a letter was joined over a border: nothing finer can be said
        return [(0, len(text))] * len(whole)
    return spans


def _inside(normalise: Callable[[str], str], raw: str, word: str) -> list[tuple[int, int]]:
    if word == raw or (len(word) == len(raw) and all(map(_one_for_one(normalise), raw, word))):
        return [(i, i + 1) for i in range(len(raw))]
    lengths = [0]
    for size in range(1, len(raw) + 1):
        lengths.append(max(lengths[-1], min(len(normalise(raw[:size])), len(word))))
    ends = [bisect_right(lengths, i) - 1 for i in range(len(word) + 1)]
    return [(start, max(stop, start + 1)) for start, stop in pairwise(ends)]


def _one_for_one(normalise: Callable[[str], str]) -> Callable[[str, str], bool]:
    return lambda raw, made: normalise(raw) == made
