"""Spans of a sentence, and the tags that spell them word by word.

==========  ===========================================================================================
scheme      tags
==========  ===========================================================================================
``bio``     ``B-x`` begins a span of the kind x, ``I-x`` goes on with it, ``O`` is outside of any
``iobes``   as ``bio``, and ``E-x`` ends a span of several words, ``S-x`` is a span of one word
``plain``   a tag for each word (parts of speech): there are no spans
==========  ===========================================================================================

The one rule of repair, by which every sequence of tags has spans: a word goes on with the span before it only if its
tag is I or E of the same kind and that span has not ended (with E or S); else it begins one. These are the spans of
conlleval and of seqeval (default mode), and files of the older scheme IOB1, in which a span may begin with I, are read
right by it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

__all__ = ["OUTSIDE", "Scheme", "Span", "find_scheme", "irregular", "spans_of", "spelled"]

Scheme = Literal["bio", "iobes", "plain"]
OUTSIDE = "O"
_TAG = re.compile(r"[BIES]-.+", re.DOTALL)


class Span(NamedTuple):
    """Words ``start`` to ``end`` (not included), and what they are."""

    start: int
    end: int
    kind: str


def find_scheme(tags: Iterable[str]) -> Scheme:
    """What the tags of a corpus are: spans, if all are O or have a letter of BIOES before a dash."""
    known = set(tags)
    inside = {tag[0] for tag in known if _TAG.fullmatch(tag)}
    if not inside or any(tag != OUTSIDE and not _TAG.fullmatch(tag) for tag in known):
        return "plain"
    return "iobes" if inside & {"E", "S"} else "bio"


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans that tags spell, by the rule of repair."""
    found: list[Span] = []
    open_ = False  # whether the last span may go on
    for i, tag in enumerate(tags):
        letter, kind = tag[0], tag[2:]
        if tag == OUTSIDE:
            open_ = False
            continue
        if open_ and letter in "IE" and found[-1].kind == kind:
            found[-1] = Span(found[-1].start, i + 1, kind)
        else:
            found.append(Span(i, i + 1, kind))
        open_ = letter in "BI"
    return found


def spelled(spans: Iterable[Span], words: int, scheme: Scheme = "bio") -> list[str]:
    """The tags that spell spans, of a sentence of so many words."""
    tags = [OUTSIDE] * words
    for start, end, kind in spans:
        tags[start:end] = [f"I-{kind}"] * (end - start)
        if scheme == "iobes":
            tags[end - 1] = f"E-{kind}"
        tags[start] = f"S-{kind}" if scheme == "iobes" and end - start == 1 else f"B-{kind}"
    return tags


def irregular(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """The words whose tags the scheme would not have, and which were repaired."""
    if scheme == "plain":
        return []
    right = spelled(spans_of(tags), len(tags), scheme)
    return [i for i, (tag, other) in enumerate(zip(tags, right, strict=True)) if tag != other]
