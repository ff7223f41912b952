"""Faithfulness of a look at a translation, where the model is known to listen to one word alone."""

import numpy as np
import pytest
import torch

from qkv.look.words import translation_faithfulness
from qkv.tasks.load import load

SENTENCE = "할아버지께서는 월요일에 시장에서 커피를 마시셨습니다."


@pytest.mark.parametrize("name", ["transformer", "fixed vector"])
def test_curves_begin_with_the_whole_sentence_and_end_with_none_of_it(trained, name):
    translator = load(trained(name))
    answer = translator(SENTENCE)
    found = translation_faithfulness(translator, answer, samples=5)
    whole, nothing = (sum(a.token_scores) for a in translator.score([(SENTENCE, answer.text), ("", answer.text)]))
    words = len(SENTENCE.split())
    assert len(found.curve.deletion) == len(found.curve.insertion) == words + 1
    assert found.curve.deletion[0] == pytest.approx(whole, abs=1e-4) == found.curve.insertion[-1]
    assert found.curve.deletion[-1] == pytest.approx(nothing, abs=1e-4)
    assert set(found.baselines) == {"left to right"} | ({"gradient"} if name == "transformer" else set())


def test_a_word_that_alone_matters_is_found_by_its_gradient(trained, monkeypatch):
    translator = load(trained("fixed vector"))
    answer = translator(SENTENCE)

    def score(pairs):
        for source, _ in pairs:
            yield type(answer)("", source, token_scores=(0.0 if "커피를" in source else -9.0,))

    map = translator.saliency(answer)
    weights = np.zeros(tuple(map.weights.shape), dtype=np.float32)
    places = next(word.positions for word in map.key.words() if word.text == "커피를")
    weights[:, :, list(places)] = 1
    monkeypatch.setattr(translator, "score", score)
    monkeypatch.setattr(
        translator, "saliency", lambda _: type(map)(**{**vars(map), "weights": torch.from_numpy(weights)})
    )
    found = translation_faithfulness(translator, answer, samples=49)
    assert found.curve.area > found.random.area
    assert found.curve.deletion.tolist() == [0.0] + [-9.0] * 5
