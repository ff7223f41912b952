"""Does an answer about a text hang on the words that it seems to? Take words away from the text and see."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from qkv.axis import Tokens
from qkv.errors import ConfigError
from qkv.look.faithfulness import Faithfulness, deletion_insertion
from qkv.look.record import Map
from qkv.tasks.encoder_look import ATTENTION, GRADIENT, head_effects
from qkv.tasks.text_classifier import TextAnswer, TextClassifier

__all__ = ["by_word", "faithfulness_of", "largest_effects", "score_lines", "text_faithfulness"]

SAMPLES = 49  # random orders: enough for a chance of 0.02


def faithfulness_of(reader: Any, text: str, pair: str | None = None) -> Faithfulness:
    """`text_faithfulness` of what a model says of a text; an error for one that says nothing of the whole text."""
    if not isinstance(reader, TextClassifier):
        raise ConfigError(
            "--faithful takes words away and scores the answer to the whole text, and this model gives none",
            remedy="leave it out, or look at a run of classify or regress",
        )
    return text_faithfulness(reader, reader(text, pair))


def largest_effects(reader: Any, text: str, pair: str | None = None, most: int = 10) -> list[str]:
    """The heads that by themselves change the likeliest answer most, as lines for people."""
    reading = reader.reading(text, pair)
    if not reading.outcomes:
        raise ConfigError("there is no answer that a head could change", remedy="write [MASK] into the text")
    effects = [
        (effect, f"{layer}:{head}")
        for layer, own in head_effects(reader.model, reading).items()
        for head, effect in enumerate(own)
    ]
    effects.sort(key=lambda one: -abs(one[0]))
    name = reading.outcomes[0].name
    return [f"{name} without {head}: score {-effect:+.3f}" for effect, head in effects[:most]]


def score_lines(notes: dict) -> list[str]:
    """What an edited model says, beside what it says unedited, as lines for people."""
    return [
        f"{name}: score {edited:.3f} with heads silenced, {notes['scores'][name]:.3f} with all"
        for name, edited in notes.get("edited", {}).items()
    ]


def text_faithfulness(classifier: TextClassifier, answer: TextAnswer, samples: int = SAMPLES) -> Faithfulness:
    """Deletion and insertion curves of the words of a text or a pair, those that the answer hangs on first.

    What is scored is the log-probability of the class that was said (or minus the distance to the number that was),
    given the text without some of its words: they are left out, as if never written. A word's importance is that of
    its pieces by gradient times attention (by the gradient in a model without attention); beside it stand the gradient,
    the attention of the last layer from the token that the answer is read off, and the order from left to right.
    """
    seen = classifier.look_at(answer)
    maps = {name: by_word(maps[0]) for name, maps in seen.items() if maps[0].kind == "relevance"}
    last = [maps[0] for maps in seen.values() if maps[0].kind in ("self", "cross")][-1:]
    gradient = maps[GRADIENT]
    words = [word for word in seen[GRADIENT][0].key.words() if not word.mark]
    sides = [0 if word.span[0] <= len(answer.texts[0]) else 1 for word in words]
    place = classifier.classes.index(answer.top(1)[0][0]) if answer.classes else None

    def score(removed: Bool[np.ndarray, "batch word"]) -> list[float]:
        texts = [
            tuple(
                " ".join(w.text for w, own, gone in zip(words, sides, row, strict=True) if own == side and not gone)
                for side in range(len(answer.texts))
            )
            for row in removed
        ]
        return [_score(answer, given, place) for given in classifier.answers_to(texts)]

    baselines = {"left to right": -np.arange(len(words), dtype=float)}
    if ATTENTION in maps:
        baselines |= {"gradient": gradient, "attention": by_word(last[0])}
    return deletion_insertion(score, maps.get(ATTENTION, gradient), baselines=baselines, samples=samples)


def by_word(map: Map) -> Float[np.ndarray, " word"]:
    """The weight of each word in a map's first row; heads averaged, marks left out."""
    assert isinstance(map.key, Tokens)
    weights = map.weights.mean(0)[0]
    return np.array([float(weights[list(word.positions)].sum()) for word in map.key.words() if not word.mark])


def _score(answer: TextAnswer, given: TextAnswer, place: int | None) -> float:
    if place is None:
        return -abs(given.label - answer.label)
    return float(np.log(max(given.probabilities[place], 1e-12)))
