"""Scores of captions: those of the COCO evaluation to the digit, and plain words where a score means nothing."""

import random
import unicodedata

import pytest

from qkv.tasks.caption_scores import bleu, caption_scores, caption_tokens, cider_d, rouge_l

WORDS = ["a", "cat", "dog", "sits", "on", "the", "mat", "red", "blue", "big", "small", "runs", "after", "ball"]


def corpus(seed, pictures):
    """Captions, some close to a reference, and one to four references each."""
    chance = random.Random(seed)
    references = [
        [chance.choices(WORDS, k=chance.randint(1, 12)) for _ in range(chance.randint(1, 4))] for _ in range(pictures)
    ]
    captions = [
        [word if chance.random() < 0.7 else chance.choice(WORDS) for word in chance.choice(some)][
            : chance.randint(1, 12)
        ]
        for some in references
    ]
    return captions, references


@pytest.mark.parametrize("pictures", [2, 30])
def test_they_are_those_of_pycocoevalcap(pictures):
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    captions, references = corpus(pictures, pictures)
    said = {i: [" ".join(caption)] for i, caption in enumerate(captions)}
    right = {i: [" ".join(reference) for reference in some] for i, some in enumerate(references)}
    assert bleu(captions, references) == pytest.approx(Bleu(4).compute_score(right, said, verbose=0)[0], rel=1e-9)
    each = Cider().compute_score(right, said)[1]
    assert cider_d(captions, references) == pytest.approx(list(each), rel=1e-9)
    each = Rouge().compute_score(right, said)[1]
    assert [rouge_l(c, r) for c, r in zip(captions, references, strict=True)] == pytest.approx(list(each), rel=1e-9)


# Computed with pycocoevalcap 1.2, so that its 100 MB need not be installed.
GOLDEN = {
    "bleu": [0.5394964783, 0.4448205243, 0.3466101877, 0.2721624718],
    "cider": 1.8301311363,
    "rouge": 0.6243428845,
}


def test_golden_figures_of_pycocoevalcap():
    captions, references = corpus(30, 30)
    assert bleu(captions, references) == pytest.approx(GOLDEN["bleu"], rel=1e-6)
    assert sum(cider_d(captions, references)) / 30 == pytest.approx(GOLDEN["cider"], rel=1e-6)
    assert sum(map(rouge_l, captions, references)) / 30 == pytest.approx(GOLDEN["rouge"], rel=1e-6)


def test_a_right_caption_gets_everything():
    texts = ["a red cat sits on a mat", "two dogs run after a ball"]
    scores, signatures, warnings = caption_scores(texts, [[text] for text in texts])
    assert [scores[f"bleu{n}"] for n in range(1, 5)] == pytest.approx([100.0] * 4)
    assert scores["rouge_l"] == pytest.approx(100.0) and scores["cider_d"] == pytest.approx(1000.0)
    assert scores["chrf"] == pytest.approx(100.0)
    assert set(signatures) == set(scores) and "tok:words" in signatures["cider_d"] and "nc:6" in signatures["chrf"]
    assert warnings == ["CIDEr of 2 pictures means little: it weighs words by how few pictures have them"]


def test_of_one_picture_there_is_no_cider():
    scores, _, warnings = caption_scores(["a cat"], [["a cat"]])
    assert "cider_d" not in scores and warnings[0].startswith("CIDEr needs two or more pictures")


def test_an_empty_caption_scores_nothing_and_breaks_nothing():
    scores, _, warnings = caption_scores(["", ""], [["a cat"], ["a dog", "the dog"]])
    assert all(value == pytest.approx(0.0, abs=1e-6) for value in scores.values())
    assert "every caption is empty" in warnings
    assert caption_scores(["", "a dog"], [["a cat"], ["a dog"]])[0]["bleu1"] > 0


def test_words_are_counted_as_they_are_named():
    assert caption_tokens("A man's best friend, isn't it?") == ["a", "man's", "best", "friend", "isn't", "it"]
    assert caption_tokens("키 캡: 별!") == ["키", "캡", "별"]
    assert caption_tokens(unicodedata.normalize("NFD", "키 캡")) == ["키", "캡"]  # consonants and vowels compose


def test_cider_knows_rare_words_from_common_ones():
    references = [[["a", "cat"]], [["a", "dog"]], [["a", "bird"]]]
    rare, common = cider_d([["cat"], ["dog"], ["a"]], references)[::2]
    assert rare > common
