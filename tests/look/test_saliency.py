"""Gradients as a map: row by row what autograd says, for a model with attention and without."""

import pytest
import torch

from qkv.axis import Tokens
from qkv.look.saliency import saliency, state_norms
from qkv.models.seq2seq import Seq2Seq, Seq2SeqConfig
from samples import RECURRENT, START, close, padded, texts, transformer

SOURCE, LENGTHS = padded(texts(0, [4]))
TARGET, WORDS = torch.tensor([[START, 5, 6]]), torch.tensor([5, 6, 7])


def axis(length: int) -> Tokens:
    return Tokens(tuple(map(str, range(length))), ((0, 0),) * length, "")


def recurrent() -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(Seq2SeqConfig(**RECURRENT, attention="none")).eval()


def chances_of(model):
    def chances(first: int, last: int, copies: int):
        states = model(SOURCE.expand(copies, -1), LENGTHS.expand(copies), TARGET.expand(copies, -1))
        own = states[torch.arange(copies), torch.arange(first, last)]
        return model.output(own).log_softmax(-1).gather(1, WORDS[first:last, None])[:, 0]

    return chances


@pytest.mark.parametrize("make", [transformer, recurrent])
def test_each_row_is_the_length_of_its_words_own_gradient(make):
    model = make()
    found = saliency(model.source, chances_of(model), axis(3), axis(4))
    for row in range(3):
        vectors = []
        handle = model.source.register_forward_hook(
            lambda module, given, made, kept=vectors: kept.append(made.detach().requires_grad_()) or kept[-1]
        )
        logits = model.output(model(SOURCE, LENGTHS, TARGET)[0, row])
        handle.remove()
        (gradient,) = torch.autograd.grad(logits.log_softmax(-1)[WORDS[row]], vectors[0])
        by_hand = gradient[0].norm(dim=-1)
        close(found.weights[0, row], by_hand / by_hand.sum())
    assert (found.kind, found.queries) == ("gradient", (0, 1, 2))


def test_norms_are_those_of_the_states_of_a_recurrent_model_alone():
    model = recurrent()
    norms = state_norms(model, lambda: model(SOURCE, LENGTHS, TARGET))
    states, _ = model.encoder(model.source(SOURCE), LENGTHS)
    close(torch.tensor(norms["source"]), states[0].norm(dim=-1))
    assert len(norms["target"]) == 3
    other = transformer()
    assert state_norms(other, lambda: other(SOURCE, LENGTHS, TARGET)) == {}
