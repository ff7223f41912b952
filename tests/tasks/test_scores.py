"""Scores are sacreBLEU's, named for how they were counted."""

import pytest

from qkv.tasks.scores import text_scores


def test_words_of_a_latin_text():
    scores, signatures = text_scores(
        ["The cat, which was old, sat on a mat."], ["The cat, which was old, sat on the mat."]
    )
    assert scores["bleu"] == pytest.approx(76.92, abs=0.005)
    assert "tok:13a" in signatures["bleu"]


def test_characters_of_a_korean_text():
    scores, signatures = text_scores(["나는 어제 학교에 걸어서 갔다."], ["나는 어제 학교에 걸어서 갔습니다."])
    assert "bleu" not in scores and scores["bleu_char"] > 50
    assert "tok:char" in signatures["bleu_char"]


def test_an_empty_output_scores_zero():
    scores, _ = text_scores([""], ["The cat sat."])
    assert scores["bleu"] == 0 and scores["chrf"] == 0
