"""Scores of captions against several references each, as the COCO evaluation defines them, in plain Python.

BLEU-1 to 4 over the corpus with the closest reference length (Papineni et al. 2002), ROUGE-L with beta 1.2 (Lin 2004)
and CIDEr-D with sigma 6 (Vedantam et al. 2015, eq. 5 to 9) are those of ``pycocoevalcap``, to the digit on the same
tokens. Its tokeniser is a Java program and is not used; ours is named with each score. chrF is sacreBLEU's.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

__all__ = ["bleu", "caption_scores", "caption_tokens", "cider_d", "rouge_l"]

TOKENS = "tok:words (NFC, lower case, runs of letters, marks and digits; punctuation dropped)"
FEW = 50  # pictures; of fewer, how rare an n-gram is among the references says little
_WORD = re.compile(r"\w+(?:['’]\w+)*")

Tokens = Sequence[str]


def caption_tokens(text: str) -> list[str]:
    """The words of a caption: lower case, without punctuation. Korean words are parted by blanks only."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def caption_scores(
    captions: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[dict[str, float], dict[str, str], list[str]]:
    """``(scores, signatures, warnings)`` of one caption for each picture against its references.

    ``bleu1`` to ``bleu4``, ``rouge_l`` and ``cider_d`` from 0 to 100 (CIDEr-D to 1000), ``chrf`` of the text as it is.
    CIDEr-D of a single picture does not exist and is left out, with a warning; of few pictures it is given with one.
    """
    from sacrebleu.metrics import CHRF

    said, right = [caption_tokens(c) for c in captions], [[caption_tokens(r) for r in some] for some in references]
    scores = {f"bleu{n}": 100 * value for n, value in enumerate(bleu(said, right), 1)}
    scores["rouge_l"] = 100 * sum(map(rouge_l, said, right)) / max(len(said), 1)
    warnings = []
    if len(said) > 1:
        scores["cider_d"] = 100 * sum(own := cider_d(said, right)) / len(own)
    if len(said) < 2:
        warnings.append(
            "CIDEr needs two or more pictures: it weighs words by how few pictures have them in a reference"
        )
    elif len(said) < FEW:
        warnings.append(f"CIDEr of {len(said)} pictures means little: it weighs words by how few pictures have them")
    if not any(said):
        warnings.append("every caption is empty")
    chrf = CHRF()
    most = max(map(len, references), default=0)
    streams = [[some[i] if i < len(some) else None for some in references] for i in range(most)]
    scores["chrf"] = chrf.corpus_score(list(captions), streams).score if captions else 0.0
    ours = "qkv, as pycocoevalcap 1.2|" + TOKENS
    signatures = {name: ours for name in scores if name != "chrf"} | {"chrf": chrf.get_signature().format()}
    return scores, signatures, warnings


def bleu(captions: Sequence[Tokens], references: Sequence[Sequence[Tokens]], longest: int = 4) -> list[float]:
    """BLEU-1 to BLEU-``longest`` of a corpus, from 0 to 1; nothing right gives 0, an empty caption too."""
    correct, guessed, length, wanted = [0] * longest, [0] * longest, 0, 0
    for caption, some in zip(captions, references, strict=True):
        length += len(caption)
        wanted += min((abs(len(r) - len(caption)), len(r)) for r in some)[1]
        for n in range(longest):
            have, most = _ngrams(caption, n + 1), Counter()
            for reference in some:
                most |= _ngrams(reference, n + 1)
            guessed[n] += max(0, len(caption) - n)
            correct[n] += sum((have & most).values())
    # The tiny numbers are those of pycocoevalcap: with nothing guessed the score is 0, not an error.
    product, scores = 1.0, []
    for n in range(longest):
        product *= (correct[n] + 1e-15) / (guessed[n] + 1e-9)
        scores.append(product ** (1 / (n + 1)))
    ratio = (length + 1e-15) / (wanted + 1e-9)
    return [score * math.exp(min(0.0, 1 - 1 / ratio)) for score in scores]


def rouge_l(caption: Tokens, references: Sequence[Tokens], beta: float = 1.2) -> float:
    """F of the longest common subsequence, best precision and best recall of any reference, from 0 to 1."""
    common = [_longest_common(caption, reference) for reference in references]
    precision = max((same / len(caption) for same in common if caption), default=0.0)
    recall = max((same / len(r) for same, r in zip(common, references, strict=True) if r), default=0.0)
    if not precision or not recall:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


def cider_d(
    captions: Sequence[Tokens], references: Sequence[Sequence[Tokens]], longest: int = 4, sigma: float = 6.0
) -> list[float]:
    """CIDEr-D of each caption, from 0 to 10.

    An n-gram weighs by the logarithm of how many pictures there are over how many of them have it in a reference; so of
    one picture all weights are zero.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for some in references:
        seen.update({ngram for reference in some for n in range(longest) for ngram in _ngrams(reference, n + 1)})
    pictures = math.log(max(len(references), 1))

    def weighed(tokens: Tokens) -> list[dict[tuple[str, ...], float]]:
        return [
            {ngram: count * (pictures - math.log(max(1, seen[ngram]))) for ngram, count in _ngrams(tokens, n).items()}
            for n in range(1, longest + 1)
        ]

    scores = []
    for caption, some in zip(captions, references, strict=True):
        own, total = weighed(caption), 0.0
        for reference in some:
            theirs = weighed(reference)
            # Lengths are counted in pairs of words, as pycocoevalcap does.
            delta = max(len(caption) - 1, 0) - max(len(reference) - 1, 0)
            near = math.exp(-(delta**2) / (2 * sigma**2))
            total += near * sum(map(_clipped_cosine, own, theirs)) / longest
        scores.append(10 * total / len(some))
    return scores


def _clipped_cosine(own: dict, theirs: dict) -> float:
    lengths = math.sqrt(sum(v * v for v in own.values())) * math.sqrt(sum(v * v for v in theirs.values()))
    product = sum(min(value, theirs.get(ngram, 0.0)) * theirs.get(ngram, 0.0) for ngram, value in own.items())
    return product / lengths if lengths else product


def _ngrams(tokens: Tokens, n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _longest_common(one: Tokens, other: Tokens) -> int:
    before = [0] * (len(other) + 1)
    for word in one:
        now = [0]
        for place, same in enumerate(other):
            now.append(before[place] + 1 if word == same else max(before[place + 1], now[-1]))
        before = now
    return before[-1]
