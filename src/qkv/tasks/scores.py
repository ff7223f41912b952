"""Scores of translated text, through sacreBLEU, each with the signature that says how it was computed (Post 2018)."""

import re
from collections.abc import Sequence

__all__ = ["text_scores"]

# Scripts that are not written with blanks between words, or, as Hangul, whose blank-separated words hold many forms:
# BLEU over 13a words says little there, so BLEU is counted over characters and named so.
_BY_CHARACTER = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af]")


def text_scores(outputs: Sequence[str], references: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    """``(scores, signatures)`` of detokenised, cased text: ``bleu`` (13a) or ``bleu_char``, and ``chrf``.

    BLEU is over characters where most letters of the references are Hangul, Kana or Han.
    """
    from sacrebleu.metrics import BLEU, CHRF

    text = "".join(references)
    letters = sum(map(str.isalpha, text))
    by_character = 2 * len(_BY_CHARACTER.findall(text)) > letters
    metrics = {
        "bleu_char" if by_character else "bleu": BLEU(tokenize="char" if by_character else "13a"),
        "chrf": CHRF(),
    }
    scores = {name: metric.corpus_score(list(outputs), [list(references)]).score for name, metric in metrics.items()}
    return scores, {name: metric.get_signature().format() for name, metric in metrics.items()}
