"""Does a translation hang on the words that it looked at? Take words away from the source and see."""

import numpy as np
from jaxtyping import Bool, Float

from qkv.axis import Tokens
from qkv.look.faithfulness import Faithfulness, deletion_insertion
from qkv.look.record import Map
from qkv.tasks.translator import Answer, Translator, default_reader

__all__ = ["translation_faithfulness"]

SAMPLES = 49  # random orders: enough for a chance of 0.02


def translation_faithfulness(translator: Translator, answer: Answer, samples: int = SAMPLES) -> Faithfulness:
    """Deletion and insertion curves of the source's words, most looked at first.

    What is scored is the log-probability of the whole translation, given the source without some of its words (they are
    left out, as if never written). A word's importance is all the weight that it got in the map that alignments are
    read off; beside it stand the gradient's, and the order from left to right.
    """
    reader = translator.reader or default_reader(translator.model)
    gradient = translator.saliency(answer)
    looked = translator.replay([answer], layers=reader.layer)[reader.layer][0] if reader else gradient
    heads = [looked.heads.index(head) for head in reader.heads] if reader else [0]
    words = [word for word in gradient.key.words() if not word.mark]
    texts = [answer.source[slice(*word.span)] for word in words]

    def score(removed: Bool[np.ndarray, "batch word"]) -> list[float]:
        sources = [" ".join(t for t, gone in zip(texts, row, strict=True) if not gone) for row in removed]
        return [sum(given.token_scores) for given in translator.score((source, answer.text) for source in sources)]

    importance = _by_word(looked, heads)
    baselines = {"left to right": -np.arange(len(words), dtype=float)}
    if reader:
        baselines["gradient"] = _by_word(gradient, [0])
    return deletion_insertion(score, importance, baselines=baselines, samples=samples)


def _by_word(map: Map, heads: list[int]) -> Float[np.ndarray, " word"]:
    """All the weight that each word of the key got, from every step; heads averaged, marks left out."""
    assert isinstance(map.key, Tokens)
    weights = map.weights[heads].mean(0).sum(0)
    return np.array([float(weights[list(word.positions)].sum()) for word in map.key.words() if not word.mark])
