"""word2vec: the kernel makes the update of the papers, which autograd through the module finds too."""

import heapq
import math

import numpy as np
import pytest
import torch

from qkv.kernels import word2vec as kernel
from qkv.layers.mask import real_places
from qkv.models.word2vec import CBOW, CBOWConfig, SkipGram, Word2VecConfig, binary_loss, softmax_loss

WORDS, DIM = 11, 7
KINDS = {"skipgram": kernel.SKIPGRAM, "mean": kernel.MEAN, "sum": kernel.SUM, "undivided": kernel.UNDIVIDED}


def model_of(kind: str, output: str = "negative"):
    if kind == "skipgram":
        model = SkipGram(Word2VecConfig(WORDS, DIM, output))
    else:
        model = CBOW(CBOWConfig(WORDS, DIM, output, combine=kind))
    draw = np.random.default_rng(1)
    for parameter in model.parameters():
        parameter.data = torch.from_numpy(draw.normal(0, 0.6, parameter.shape).astype(np.float32))
    return model


def one_step(inputs, outputs, contexts, rows, labels, rate, kind) -> None:
    tall = max(len(contexts), len(rows)) + 3
    room = [np.full((tall, inputs.shape[1]), np.nan, np.float32) for _ in range(2)]
    kernel.step(
        inputs, outputs, np.array(contexts, np.uint32), len(contexts), np.array(rows, np.uint32),
        np.array(labels, np.float32), len(rows), np.float32(rate), KINDS[kind], *room,
        np.zeros(tall * tall, np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("contexts", "rows"), [
    ([3], [2, 5]), ([3, 1, 4], [2, 5, 6, 7, 8, 9]), ([3, 3, 1, 4, 3], [2, 5, 5]),
    (list(range(9)), [10, *range(8)]), ([1, 2], [3]),
])  # fmt: skip
def test_the_kernels_update_is_autograds(kind, contexts, rows):
    """Words that stand twice in a window, and negatives drawn twice, included."""
    model, rate = model_of(kind), 0.3
    labels = [1.0] + [0.0] * (len(rows) - 1)
    inputs, outputs = (table.weight.detach().numpy().copy() for table in (model.input, model.output))
    one_step(inputs, outputs, contexts, rows, labels, rate, kind)

    at, lengths = torch.tensor([contexts]), torch.tensor([len(contexts)])
    logits = model(at, lengths, torch.tensor([rows]))
    heads = real_places(lengths, at.shape[1]) if kind == "skipgram" else torch.ones(1, 1, dtype=torch.bool)
    binary_loss(logits, torch.tensor([labels]), heads, torch.ones(1, len(rows), dtype=torch.bool)).backward()
    for table, now in ((model.input, inputs), (model.output, outputs)):
        expected = table.weight.detach() - rate * table.weight.grad
        torch.testing.assert_close(torch.from_numpy(now), expected, atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_pair_and_one_negative_is_the_papers_formula(kind):
    """2013b, eq. 4: v += rate (1 - s(u.v)) u + rate (0 - s(n.v)) n, and each output its part."""
    inputs, outputs = np.array([[0.3, -0.2]], np.float32), np.array([[0.5, 0.1], [-0.4, 0.7]], np.float32)
    v, u, n = inputs[0].astype(float), outputs[0].astype(float), outputs[1].astype(float)
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    rate, true, false = 0.025, 1 - sigmoid(u @ v), -sigmoid(n @ v)
    one_step(inputs, outputs, [0], [0, 1], [1, 0], rate, kind)
    np.testing.assert_allclose(inputs[0], v + rate * (true * u + false * n), atol=1e-6)
    np.testing.assert_allclose(outputs[0], u + rate * true * v, atol=1e-6)
    np.testing.assert_allclose(outputs[1], n + rate * false * v, atol=1e-6)


def test_the_sigmoid_is_right_everywhere():
    x = np.concatenate([np.linspace(-40, 40, 4001), [1e30, -1e30, np.inf, -np.inf]]).astype(np.float32)
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert max(abs(kernel.sigmoid(value) - right) for value, right in zip(x, exact, strict=True)) < 3e-7


def test_the_tree_is_a_distribution_over_all_words_and_the_frequent_are_near():
    counts = np.array([50, 20, 20, 9, 5, 3, 1, 1, 1, 0, 7])
    codes, turns, starts = kernel.paths_of(counts)
    lengths = np.diff(starts)
    assert sum(2.0**-length for length in lengths) == 1  # a full tree
    assert lengths[0] == lengths.min() and lengths[9] == lengths.max()
    assert (counts * lengths).sum() == huffman_cost(counts)
    model, context = model_of("skipgram", "hierarchical"), torch.tensor([[4]])
    logits = model(context, torch.tensor([1]))[0, 0]
    total = 0.0
    for word in range(WORDS):
        way = slice(starts[word], starts[word + 1])
        signs = torch.from_numpy(turns[way]) * 2 - 1
        total += (signs * logits[codes[way].astype(int)]).sigmoid().prod().item()
    assert total == pytest.approx(1, abs=1e-6)


def huffman_cost(counts) -> int:
    """What the best code costs: the sums of all merges of the two smallest."""
    heap, cost = [int(count) for count in counts], 0
    heapq.heapify(heap)
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        cost += merged
        heapq.heappush(heap, merged)
    return cost


def test_the_softmax_is_the_product_of_probabilities():
    """The likelihood of a window: of each context word, the probability of the centre; the reference of the others."""
    model = model_of("skipgram", "softmax")
    contexts, lengths, centres = torch.tensor([[1, 2, 0], [5, 0, 0]]), torch.tensor([2, 1]), torch.tensor([3, 4])
    loss = softmax_loss(model(contexts, lengths), centres, real_places(lengths, contexts.shape[1]))
    scores = model.input.weight @ model.output.weight.T
    chances = scores.softmax(1).detach()
    assert loss.item() == pytest.approx(-math.log(chances[1, 3] * chances[2, 3] * chances[5, 4]), abs=1e-5)


def test_negatives_are_drawn_by_their_share():
    weights = np.array([8.0, 4.0, 2.0, 1.0, 1.0])
    table = kernel.alias_table(weights)
    chance = np.zeros(5)
    for i, (own, other) in enumerate(table):
        share = (int(own) + (own == 0xFFFFFFFF)) / 2**32
        chance[i] += share / 5
        chance[other] += (1 - share) / 5
    np.testing.assert_allclose(chance, weights / 16, atol=1e-8)
