"""Our Transformer against transformers' MarianMTModel with the same weights."""

import pytest
import torch
from published import tiny_marian

from qkv.axis import Tokens
from qkv.decode.search import Marks, Search, search
from qkv.look.trace import trace
from qkv.models.saved import build
from qkv.models.transformer_names import marian, marian_config

transformers = pytest.importorskip("transformers")
CLOSE = {"atol": 1e-5, "rtol": 0}
KINDS = {
    "all tied": {},
    "two vocabularies": {"target_words": 70, "pad_token_id": 69, "decoder_start_token_id": 69},
    "nothing tied": {"tie_word_embeddings": False},
    "relu": {"activation_function": "relu"},
}


def ours_of(theirs):
    """Our Transformer with the weights of a MarianMTModel."""
    config = marian_config(theirs.config.to_dict())
    model = build("transformer", config)
    model.load_state_dict(marian(config.tie).load(theirs.state_dict()))
    return model.eval()


def sources(count: int, seed: int, words: int = 68) -> tuple[torch.Tensor, torch.Tensor]:
    """Random sentences of 2 to 14 words with the end mark 0, the first is the longest."""
    chance = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 15, (count,), generator=chance)
    lengths[0] = 14
    tokens = torch.randint(1, words, (count, 14), generator=chance)
    tokens[torch.arange(count), lengths - 1] = 0
    return tokens, lengths


def masked(tokens, lengths, pad):
    keep = torch.arange(tokens.shape[1]) < lengths[:, None]
    return tokens.masked_fill(~keep, pad), keep.long()


@pytest.mark.parametrize("kind", KINDS)
def test_logits(kind):
    theirs = tiny_marian(seed=3, **KINDS[kind])
    ours, pad = ours_of(theirs), theirs.config.pad_token_id
    source, lengths = sources(6, seed=1)
    source, keep = masked(source, lengths, pad)
    target = torch.randint(1, 68, (6, 9), generator=torch.Generator().manual_seed(5))
    target[:, 0] = pad
    with torch.inference_mode():
        wanted = theirs(input_ids=source, attention_mask=keep, decoder_input_ids=target).logits
        found = ours.output(ours(source, lengths, target))
    torch.testing.assert_close(found, wanted, **CLOSE)


def test_a_long_text_has_their_positions():
    theirs = tiny_marian(seed=4, max_position_embeddings=600)
    ours = ours_of(theirs)
    source = torch.randint(1, 68, (1, 400), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        wanted = theirs(input_ids=source, decoder_input_ids=source).logits
        found = ours.output(ours(source, torch.tensor([400]), source))
    torch.testing.assert_close(found, wanted, atol=3e-5, rtol=0)


def test_maps():
    theirs = tiny_marian(seed=2)
    ours, pad = ours_of(theirs), theirs.config.pad_token_id
    source, lengths = sources(4, seed=8)
    source, keep = masked(source, lengths, pad)
    target = torch.randint(1, 68, (4, 7), generator=torch.Generator().manual_seed(6))
    axes = {
        "source": [Tokens(("x",) * n, ((0, 0),) * n, "") for n in lengths.tolist()],
        "target": [Tokens(("x",) * 7, ((0, 0),) * 7, "")] * 4,
    }
    with torch.inference_mode():
        wanted = theirs(input_ids=source, attention_mask=keep, decoder_input_ids=target, output_attentions=True)
        with trace(ours, axes=axes) as seen:
            ours(source, lengths, target)
    assert len(seen) == 2 + 3 + 3
    kinds = {
        "encoder.{}.attention": wanted.encoder_attentions,
        "decoder.{}.attention": wanted.decoder_attentions,
        "decoder.{}.cross": wanted.cross_attentions,
    }
    for name, layers in kinds.items():
        for block, weights in enumerate(layers):
            for example, map in enumerate(seen[name.format(block)]):
                rows, keys = map.weights.shape[1:]
                torch.testing.assert_close(map.weights, weights[example, :, :rows, :keys], **CLOSE)


def both_search(seed: int, count: int, beam: int, penalty: float, longest: int = 24):
    """``(theirs, ours)``: what generate and our search say for the same sentences."""
    theirs = tiny_marian(seed, words=40, tie_word_embeddings=False)  # tied, a random model repeats what it just said
    theirs.final_logits_bias[0, 0] += 2.0  # so that some outputs end early and some late
    ours, pad = ours_of(theirs), theirs.config.pad_token_id
    source, lengths = sources(count, seed=seed + 100, words=pad)
    source, keep = masked(source, lengths, pad)
    wanted = theirs.generate(
        input_ids=source, attention_mask=keep, num_beams=beam, length_penalty=penalty, early_stopping="never",
        max_length=longest + 1, do_sample=False, return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    with torch.inference_mode():
        state = ours.start(source, lengths)
    how = Search(beam=beam, length_penalty=penalty, length_penalty_rule="hf")
    found = search(ours, state, Marks(pad, 0, (pad,)), torch.full((count,), longest), how)
    said = [[token for token in row[1:].tolist() if token != pad] for row in wanted.sequences]
    scores = wanted.sequences_scores.tolist() if beam > 1 else [None] * count
    return list(zip(said, scores, strict=True)), [best[0] for best in found]


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("seed", [10, 13, 31])
def test_greedy_and_beam_say_the_same(seed, count):
    ended = 0
    for beam in (1, 2, 5):
        for (said, score), found in zip(*both_search(seed, count, beam, penalty=0.0), strict=True):
            assert said == [*found.tokens, *([0] if found.ended else [])], beam
            assert score is None or abs(score - found.score) < 1e-4
            ended += found.ended
    assert ended


@pytest.mark.parametrize("penalty", [1.0, 0.6])
def test_their_length_penalty_is_the_rule_hf(penalty):
    compared = 0
    for (said, score), found in zip(*both_search(31, 12, 4, penalty), strict=True):
        if found.ended and said[-1:] == [0]:  # of what the limit cuts off, we rank what ended first and they do not
            assert said == [*found.tokens, 0]
            assert abs(score - found.score) < 1e-4
            compared += 1
    assert compared >= 3
