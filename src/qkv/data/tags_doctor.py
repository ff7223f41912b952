"""The doctor of tagged sentences: tags out of order, tags that train never showed, and what repeats."""

from collections import Counter

from qkv.data.report import Report
from qkv.data.spans import OUTSIDE, Scheme, find_scheme, irregular, spans_of, spelled
from qkv.data.tags import TagFiles
from qkv.data.tags_reading import Sentence, find_tagged, read_sentences
from qkv.data.texts_doctor import without_repeats
from qkv.errors import DataError, nearest

__all__ = ["by_characters", "examine_all", "kinds_of"]


def examine_all(data: TagFiles, every: bool = False) -> tuple[Report, dict[str, list[Sentence]], Scheme]:
    """The report, the sentences of each part that can be used, and the scheme; all spans are spelled as ``bio``."""
    report = Report(unit="sentences", every=every)
    parts = {part: read_sentences(path, part, data, report) for part, path in find_tagged(data).items()}
    scheme = find_scheme(tag for some in parts.values() for sentence in some for tag in sentence.tags)
    parts = {part: [_repaired(part, one, scheme, report) for one in some] for part, some in parts.items()}
    parts = without_repeats(parts, report, data.keep_duplicates)
    for part, some in parts.items():
        report.kept[part] = len(some)
        _tell_kinds(part, some, scheme, report)
        if not some and not report.refused:
            report.refused.append(DataError(f"no sentence of {part} is left", file=report.files[part][0]))
    if train := parts.get("train"):
        _judge(parts, train, scheme, report)
    return report, parts, scheme


def kinds_of(sentences: list[Sentence], scheme: Scheme) -> Counter[str]:
    """How many spans there are of each kind; of plain tags, how many words."""
    if scheme == "plain":
        return Counter(tag for sentence in sentences for tag in sentence.tags)
    return Counter(span.kind for sentence in sentences for span in spans_of(sentence.tags))


def by_characters(sentences: list[Sentence]) -> bool:
    """Whether a file's words are characters: all are single ones, and blanks are among them."""
    blank = False
    for sentence in sentences:
        if any(len(word) != 1 for word in sentence.words):
            return False
        blank = blank or " " in sentence.words
    return blank


def _repaired(part: str, one: Sentence, scheme: Scheme, report: Report) -> Sentence:
    if scheme == "plain":
        return one
    for i in irregular(one.tags, scheme):
        after = f"{one.tags[i]} after {one.tags[i - 1] if i else 'the start'}"
        report.add(
            part,
            f"tags out of the order of {scheme}, read by the rule",
            "mended",
            f"{one.file}:{one.lines[i]}: {after}",
        )
    return one._replace(tags=tuple(spelled(spans_of(one.tags), len(one.tags))))


def _tell_kinds(part: str, some: list[Sentence], scheme: Scheme, report: Report) -> None:
    kinds = kinds_of(some, scheme)
    words = sum(len(one.words) for one in some)
    what = "words by tag" if scheme == "plain" else f"spans ({scheme})"
    told = ", ".join(f"{kind} ({count:,})" for kind, count in sorted(kinds.items())[:20])
    report.remarks.append(f"{part}: {words:,} words, {sum(kinds.values()):,} {what}: {told}")


def _judge(parts: dict[str, list[Sentence]], train: list[Sentence], scheme: Scheme, report: Report) -> None:
    known = kinds_of(train, scheme)
    if not known or known.keys() == {OUTSIDE}:
        report.refused.append(DataError("no word of train has a tag but O", file=report.files["train"][0]))
    for part, some in parts.items():
        if missing := sorted(kinds_of(some, scheme).keys() - known.keys()):
            bare = [(one, i) for one in some for i, tag in enumerate(one.tags) if tag.removeprefix("B-") == missing[0]]
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            one, i = bare[0]
            report.refused.append(
                DataError(
                    f"{part} has the tag {missing[0]!r}{more}, which train has not",
                    remedy=nearest(missing[0], known),
                    file=one.file,
                    line=one.lines[i],
                )
            )
