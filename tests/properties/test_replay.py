"""A search, then one traced pass over what it found: exact, and nothing about the answer changes on the way."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from qkv.decode.search import Marks, Search, search
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.look.trace import trace
from qkv.models.saved import load_model, save_model
from samples import END, PAD, START, padded, texts, transformer

seeds = st.integers(0, 999)


def found(model, sources, beam=3):
    with torch.inference_mode():
        state = model.start(*padded(sources))
    return search(model, state, Marks(START, END, (PAD, START)), torch.tensor([6] * len(sources)), Search(beam))


@settings(max_examples=5)
@given(seed=seeds)
@torch.no_grad()
def test_the_replay_of_an_output_has_its_scores_and_one_row_for_each_of_its_words(seed):
    model, sources = transformer(seed), texts(seed, [3, 5])
    for source, [best] in zip(sources, found(model, sources), strict=True):
        said = [*best.tokens, END] if best.ended else list(best.tokens)
        with trace(model) as seen:
            logits = model.output(model(*padded([source]), *padded([[START, *said[:-1]]])))[0]
        replayed = logits.log_softmax(-1).gather(1, torch.tensor(said)[:, None])[:, 0]
        assert list(best.token_scores) == pytest.approx(replayed.tolist(), abs=1e-5)
        assert seen.last("cross").weights.shape == (4, len(said), len(source))
        assert seen.last("self").weights.shape == (4, len(said), len(said))


@settings(max_examples=5)
@given(seed=seeds)
def test_a_loaded_model_says_the_same(seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    model, sources = transformer(seed), texts(seed, [3, 5])
    save_model(model, folder)
    assert found(load_model(folder), sources) == found(model, sources)


@settings(max_examples=5)
@given(seed=seeds, smoothing=st.sampled_from([0.0, 0.1]), tie=st.sampled_from(["all", "output", "none"]))
def test_the_loss_of_a_batch_is_the_sum_of_the_losses_of_its_texts(seed, smoothing, tie):
    """Of any padding and any neighbours, and by the plain logits of each text alone; gradients too."""
    model = transformer(seed, tie=tie)
    pairs = list(zip(texts(seed, [2, 5, 3]), texts(seed + 1, [4, 1, 6]), strict=True))

    def together():
        targets, lengths = padded([[START, *target] for _, target in pairs])
        wanted, _ = padded([[*target, END] for _, target in pairs])
        real = torch.arange(targets.shape[1]) < lengths[:, None]
        states = model(*padded([source for source, _ in pairs]), targets, lengths)
        return linear_cross_entropy(
            states[real], model.output.weight, model.output.bias, wanted[real], smoothing, chunk=4
        )[0]  # fmt: skip

    def one_by_one():
        for source, target in pairs:
            logits = model.output(model(*padded([source]), *padded([[START, *target]])))[0]
            wanted = torch.tensor([*target, END])
            yield functional.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)

    losses = together(), sum(one_by_one())
    torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-5)
    gradients = (torch.autograd.grad(loss, list(model.parameters())) for loss in losses)
    for mine, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-4, atol=1e-5)
