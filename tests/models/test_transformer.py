"""The Transformer: its search gives what one pass gives, its config says what is wrong. See `every_model.py` too."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from qkv.errors import ConfigError, DataError
from qkv.layers.position import sinusoids
from qkv.models.transformer import SIZES, Transformer, TransformerConfig
from samples import SMALL, START, WORDS, close, padded, texts, transformer

seeds = st.integers(0, 999)


def logits_after(model, source: list[int], target: list[int]) -> torch.Tensor:
    """Logits of the word after ``target``, by one whole pass over one sentence."""
    return model.output(model(*padded([source]), *padded([[START, *target]])))[0, -1]


@settings(max_examples=10)
@given(
    seed=seeds, data=st.data(), sentences=st.integers(1, 3), beams=st.integers(1, 4),
    order=st.sampled_from(["pre", "post"]),
)  # fmt: skip
@torch.no_grad()
def test_every_hypothesis_of_a_search_stands_where_one_pass_over_its_words_stands(seed, data, sentences, beams, order):
    model, sources = transformer(order=order), texts(seed, range(1, sentences + 1))
    state = model.start(*padded(sources))
    logits, state = model.step(state, torch.full((sentences, 1), START))
    words = [[[]] for _ in sources]  # of each hypothesis of each sentence
    indices = st.lists(st.integers(0, 99), min_size=beams, max_size=beams)
    for _ in range(4):
        for sentence in range(len(sources)):
            for hypothesis, said in enumerate(words[sentence]):
                close(logits[sentence, hypothesis], logits_after(model, sources[sentence], said))
        parents = torch.tensor([data.draw(indices) for _ in sources]) % len(words[0])
        newest = torch.tensor([data.draw(indices) for _ in sources]) % WORDS
        words = [
            [[*before[p], n] for p, n in zip(own, new, strict=True)]
            for before, own, new in zip(words, parents.tolist(), newest.tolist(), strict=True)
        ]
        kept = None
        if len(sources) > 1 and data.draw(st.booleans()):  # one sentence is done
            done = data.draw(st.integers(0, len(sources) - 1))
            kept = torch.tensor([i for i in range(len(sources)) if i != done])
            sources, words = [sources[i] for i in kept], [words[i] for i in kept]
            newest = newest[kept]
        state = model.select(state, parents, kept)
        logits, state = model.step(state, newest)


@torch.no_grad()
def test_greedy_steps_past_the_first_table_of_positions_and_the_first_room_of_the_cache():
    model, target = transformer(), [START, *texts(0, [150])[0]]
    source = padded(texts(1, [4]))
    state, steps = model.start(*source), []
    for word in target:
        logits, state = model.step(state, torch.tensor([[word]]))
        steps.append(logits)
    close(torch.cat(steps, 1), model.output(transformer()(*source, *padded([target]))))


def test_it_trains_after_a_long_search():
    model, source = transformer(join="concatenated"), padded(texts(0, [3]))
    with torch.inference_mode():
        model.encode(torch.full((1, 300), 5), torch.tensor([300]))
    model.train()(*source, *padded([[START, *[5] * 200]])).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_the_source_is_read_once_and_its_keys_are_made_once(monkeypatch):
    model, made = transformer(), []
    key = model.decoder[0].cross.key
    monkeypatch.setattr(key, "forward", lambda states: made.append(1) or nn.functional.linear(states, key.weight))
    with torch.no_grad():
        state = model.start(*padded(texts(0, [4])))
        for word in range(3):
            _, state = model.step(state, torch.tensor([[word]]))
    assert made == [1]


def test_target_lengths_matter_to_a_training_batch_norm_only():
    batch = (*padded(texts(0, [4, 2])), *padded([[START, 5, 6], [START]]))
    for norm, matter in [("layer", False), ("batch", True)]:
        model = transformer(norm=norm).train()
        same = torch.allclose(model(*batch)[0], model(*batch[:3])[0], atol=1e-6)
        assert same != matter
        close(model.eval()(*batch)[0], model(*batch[:3])[0])


def test_ties_share_one_table():
    everything = transformer(tie="all")
    assert everything.source.words.weight is everything.target.words.weight is everything.output.weight
    target_side = transformer(tie="output", source_words=WORDS + 1)
    assert target_side.source.words.weight is not target_side.target.words.weight is target_side.output.weight
    nothing = transformer(tie="none")
    assert nothing.target.words.weight is not nothing.output.weight


def test_positions_are_added_to_scaled_embeddings_of_variance_one():
    model = transformer(source_words=500, target_words=500, dim=64)
    tokens = torch.arange(500)[None]
    vectors = model.source(tokens)[0] - sinusoids(500, 64)
    close(vectors, model.source.words.weight * math.sqrt(64), 1e-4)
    assert 0.9 < vectors.var() < 1.1


def test_a_text_beyond_the_learned_positions_is_refused():
    with pytest.raises(DataError, match="a text of 9 tokens is longer than the 8 learned positions"):
        transformer(positions="learned", longest=8).encode(*padded(texts(0, [9])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(order="past"), r"size.order is 'past'. Did you mean 'post'\? known: post, pre"),
        (dict(score="scale"), r"size.score is 'scale'. Did you mean 'scaled'"),
        (dict(dim=0), r"size.dim is 0; expected a whole number from 1"),
        (dict(decoder_depth=0), r"size.decoder_depth is 0"),
        (dict(dim=18), r"size.dim 18 cannot be shared evenly by size.heads 4"),
        (dict(dropout=1.0), r"size.dropout is 1.0; expected 0 or more, less than 1"),
        (dict(source_words=20), r"size.tie is 'all', but the sides know 20 and 13 words. Use a joint vocabulary"),
    ],
)
def test_a_wrong_config_says_which_key_and_what_to_do(changes, message):
    with pytest.raises(ConfigError, match=message):
        TransformerConfig(**{**SMALL, **changes})


@pytest.mark.parametrize("size", ["nano", "tiny"])
def test_each_size_is_a_config(size):
    config = TransformerConfig(source_words=WORDS, target_words=WORDS, **SIZES[size])
    assert Transformer(config).config == config
    assert replace(config, dropout=0.5).dropout == 0.5


def test_every_size_makes_a_valid_config():
    for size in SIZES.values():
        TransformerConfig(source_words=WORDS, target_words=WORDS, **size)
