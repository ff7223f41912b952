"""The search: greedy, beam and sampling find what a plain loop, or trying everything, finds."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.decode.search import Marks, Sampling, Search, search
from qkv.errors import ConfigError
from samples import END, PAD, START, WORDS, padded, texts, transformer

GREEDY = Search()
MARKS = Marks(START, END, never=(PAD, START))
ALPHAS = pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 1.0])
RULES = pytest.mark.parametrize("rule", ["gnmt", "hf"])
seeds = st.integers(0, 999)


# Two models to search: a Transformer, and a table that a test can write by hand.


class Table:
    """A model whose logits are a function of a sentence and of what was said so far."""

    def __init__(self, logits):
        self.logits, self.steps = logits, 0

    def start(self, sentences: int):
        return [[(sentence,)] for sentence in range(sentences)]

    def step(self, state, tokens):
        self.steps += 1
        state = [[(*w, t) for w, t in zip(*row, strict=True)] for row in zip(state, tokens.tolist(), strict=True)]
        return torch.stack([torch.stack([self.logits(w[0], w[2:]) for w in row]) for row in state]), state

    def select(self, state, parents, sentences=None):
        state = [[row[p] for p in own] for row, own in zip(state, parents.tolist(), strict=True)]
        return state if sentences is None else [state[s] for s in sentences]


def random_table(seed: int, words: int) -> Table:
    def logits(sentence, said):
        mixed = hash((seed, sentence, *said)) % 2**31  # of whole numbers: the same in every process
        return torch.randn(words, generator=torch.Generator().manual_seed(mixed)) * 2

    return Table(logits)


def fixed_table(chances: dict[tuple, dict[int, float]], words: int) -> Table:
    """Log-probabilities by what was said; what is left of the chance is shared by the other words."""

    def logits(sentence, said):
        given = chances.get(said, {})
        left = (1 - sum(math.exp(v) for v in given.values())) / (words - len(given))
        return torch.tensor([given.get(word, math.log(left)) for word in range(words)], dtype=torch.float32)

    return Table(logits)


def talkative(seed: int = 0, end: float = 1.0, **changes):
    """A Transformer with opinions, which ends its sentences sooner or later."""
    model = transformer(seed, tie="none", output_bias=True, encoder_depth=1, decoder_depth=1, **changes)
    with torch.no_grad():
        model.output.weight *= 4
        model.output.bias[END] += end
    return model


def translate(model, sources, how=GREEDY, longest=None, **more):
    with torch.inference_mode():
        state = model.start(*padded(sources))
    limits = [len(source) + 5 for source in sources] if longest is None else [longest] * len(sources)
    return search(model, state, MARKS, torch.tensor(limits), how, **more)


@torch.no_grad()
def teacher_forced(model, source, hypothesis) -> list[float]:
    """What one pass over the output says that each of its words, and its end, scores."""
    said = [*hypothesis.tokens, END] if hypothesis.ended else list(hypothesis.tokens)
    logits = model.output(model(*padded([source]), *padded([[START, *said[:-1]]])))[0]
    return logits.log_softmax(-1).gather(1, torch.tensor(said)[:, None])[:, 0].tolist()


# Greedy


@settings(max_examples=8)
@given(seed=seeds, end=st.sampled_from([0.0, 2.0, 5.0]))
def test_a_beam_of_one_is_the_greedy_loop(seed, end):
    model, source = talkative(seed, end), texts(seed, [5])[0]
    said, scores = [], []
    with torch.no_grad():
        while len(scores) < 10 and said[-1:] != [END]:
            logits = model.output(model(*padded([source]), *padded([[START, *said]])))[0, -1]
            allowed = logits.clone()
            allowed[[PAD, START]] = -math.inf
            said.append(allowed.argmax().item())
            scores.append(logits.log_softmax(-1)[said[-1]].item())
    [[found]] = translate(model, [source])
    ended = said[-1] == END
    assert (found.ended, list(found.tokens)) == (ended, said[:-1] if ended else said)
    assert list(found.token_scores) == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_greedy_stops_at_the_first_end_even_with_two_words_to_choose_from(alpha):
    table = Table(lambda sentence, said: torch.tensor([0.0, 0.2]))
    [[found]] = search(table, table.start(1), Marks(0, 1), torch.tensor([9]), Search(length_penalty=alpha))
    assert (found.tokens, found.ended, table.steps) == ((), True, 1)


# Beams against trying everything


def everything(log_probability, words, longest, how, prefix=()):
    """Each ended output of up to ``longest`` words, best first: tokens and score."""
    found = []
    for length in range(longest):
        for said in itertools.product(words, repeat=length):
            if said[: len(prefix)] == prefix:
                found.append((said, how.score(log_probability((*said, END)), length + 1)))
    return sorted(found, key=lambda pair: -pair[1])


@ALPHAS
@RULES
@settings(max_examples=8)
@given(seed=seeds, longest=st.integers(1, 4))
def test_a_beam_as_wide_as_all_prefixes_is_exhaustive(alpha, rule, seed, longest):
    words, table = (2, 3, 4), random_table(seed, 5)
    how = Search(beam=81, n_best=3, length_penalty=alpha, length_penalty_rule=rule)
    found = search(table, table.start(2), Marks(0, END, never=(0,)), torch.tensor([longest, longest]), how)
    for sentence in range(2):

        def log_probability(said, sentence=sentence):
            logits = (table.logits(sentence, said[:i]).log_softmax(-1)[word] for i, word in enumerate(said))
            return sum(value.item() for value in logits)

        ended = [(h.tokens, h.score) for h in found[sentence] if h.ended]
        for (tokens, score), (best, best_score) in zip(
            ended, everything(log_probability, words, longest, how)[:3], strict=True
        ):
            assert tokens == best
            assert score == pytest.approx(best_score, abs=1e-5)


@ALPHAS
def test_a_transformer_too_is_searched_exhaustively_and_from_a_forced_prefix(alpha):
    model, source = talkative(3, source_words=WORDS, target_words=6), texts(3, [4])[0]
    how = Search(beam=64, n_best=2, length_penalty=alpha)

    @torch.no_grad()
    def log_probability(said):
        logits = model.output(model(*padded([source]), *padded([[START, *said[:-1]]])))[0].log_softmax(-1)
        return sum(logits[i, word].item() for i, word in enumerate(said))

    for prefix in ((), (4,)):
        expected = everything(log_probability, (3, 4, 5), 3, how, prefix)[:2]
        [found] = translate(model, [source], how, longest=3, prefixes=[list(prefix)])
        assert [h.tokens for h in found] == [tokens for tokens, _ in expected]
        assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-5)


@settings(max_examples=8)
@given(
    seed=seeds, beam=st.integers(1, 5),
    alpha=st.sampled_from([-1.0, 0.0, 0.6, 1.0]), rule=st.sampled_from(["gnmt", "hf"]),
)  # fmt: skip
def test_the_returned_score_is_what_one_pass_gives_that_output(seed, beam, alpha, rule):
    model, sources = talkative(seed, end=2), texts(seed, [2, 5])
    how = Search(beam=beam, n_best=beam, length_penalty=alpha, length_penalty_rule=rule)
    for source, found in zip(sources, translate(model, sources, how), strict=True):
        for hypothesis in found:
            forced = teacher_forced(model, source, hypothesis)
            assert list(hypothesis.token_scores) == pytest.approx(forced, abs=1e-5)
            base = len(forced) if rule == "hf" else (5 + len(forced)) / 6
            assert hypothesis.score == pytest.approx(sum(forced) / base**alpha, rel=1e-5)


# Batches


@pytest.mark.parametrize("how", [Search(), Search(beam=5, n_best=5, length_penalty=0.6)], ids=["greedy", "beam 5"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_batch_size_and_order_change_no_output(how, seed):  # BL-34
    model, sources = talkative(seed, end=2), texts(seed, [1, 3, 3, 8, 20])
    alone = [translate(model, [source], how)[0] for source in sources]
    assert len({len(found[0].tokens) for found in alone}) > 1
    for batch in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [0, 1], [4, 3]):
        for line, found in zip(batch, translate(model, [sources[i] for i in batch], how), strict=True):
            assert [h.tokens for h in found] == [h.tokens for h in alone[line]]
            assert [h.score for h in found] == pytest.approx([h.score for h in alone[line]], abs=1e-5)


@settings(max_examples=8)
@given(seed=seeds, beam=st.integers(1, 6))
def test_the_n_best_are_sorted_and_distinct_and_the_best_is_the_same_however_many_are_asked_for(seed, beam):
    model, sources = talkative(seed, end=3), texts(seed, [2, 6, 4])
    one, all = (translate(model, sources, Search(beam, n, length_penalty=1.0)) for n in (1, beam))
    for [best], found in zip(one, all, strict=True):
        assert best.tokens == found[0].tokens
        assert found == sorted(found, key=lambda h: (not h.ended, -h.score))
        assert len({(h.tokens, h.ended) for h in found}) == len(found)


A, B = 2, 3
# A ends at length 2 with sum -1.0; B stands at -1.2 after 2 and ends at 6 with -1.5. Eight other words share the rest.
TWO_WAYS = {
    (): {A: -0.7, B: -0.7},
    (A,): {END: -0.3},
    (B,): {B: -0.5},
    (B,) * 2: {B: -0.075}, (B,) * 3: {B: -0.075}, (B,) * 4: {B: -0.075}, (B,) * 5: {END: -0.075},
}  # fmt: skip


@pytest.mark.parametrize("n_best", [1, 5])
@pytest.mark.parametrize(
    ("alpha", "tokens", "score", "steps"),
    [(1.0, (B,) * 5, -0.25, 6), (0.0, (A,), -1.0, 2), (-1.0, (A,), -2.0, 2)],
    ids=["alpha 1", "alpha 0", "alpha -1"],
)
def test_the_search_stops_when_nothing_better_can_come_and_no_sooner(alpha, tokens, score, steps, n_best):  # BL-35
    table = fixed_table(TWO_WAYS, 12)
    how = Search(beam=5, n_best=n_best, length_penalty=alpha, length_penalty_rule="hf")
    [found] = search(table, table.start(1), Marks(0, END), torch.tensor([6]), how)
    assert found[0].tokens == tokens
    assert found[0].score == pytest.approx(score, abs=1e-6)
    if n_best == 1:
        assert table.steps == steps


def test_the_bound_is_that_of_the_longest_output_not_of_the_next():
    # A: -1.0 / 2. B: -1.9 after 2, at best -1.9 / 3 = -0.63 after the next word, but -2.4 / 6 = -0.40 in the end.
    later = {(B,): {B: -1.2}, **{(B,) * n: {B: -0.125} for n in (2, 3, 4)}, (B,) * 5: {END: -0.125}}
    table = fixed_table({**TWO_WAYS, **later}, 12)
    how = Search(beam=5, length_penalty=1.0, length_penalty_rule="hf")
    [[best]] = search(table, table.start(1), Marks(0, END), torch.tensor([6]), how)
    assert (best.tokens, best.score) == ((B,) * 5, pytest.approx(-0.4, abs=1e-6))


def test_each_sentence_has_its_own_limit_and_what_is_cut_off_says_so():
    table = Table(lambda sentence, said: torch.tensor([0.0, -50.0, 2.0, 1.0]))
    found = search(table, table.start(2), Marks(0, END, (0,)), torch.tensor([2, 4]), Search(beam=2, n_best=2))
    assert [[len(h.tokens) for h in own] for own in found] == [[2, 2], [4, 4]]
    assert not any(h.ended or len(h.token_scores) != len(h.tokens) for own in found for h in own)


def test_an_ended_output_is_better_than_any_that_was_cut_off():
    table = fixed_table({(): {2: -0.1, 3: -3.0}, (2,): {2: -0.01}, (3,): {END: -0.01}, (2, 2): {2: -0.01}}, 6)
    [found] = search(table, table.start(1), Marks(0, END, (0,)), torch.tensor([3]), Search(beam=4, n_best=4))
    assert found[0].ended
    assert [h.ended for h in found] == sorted((h.ended for h in found), reverse=True)
    assert max(h.score for h in found if not h.ended) > found[0].score


# What is forced, and what is forbidden


@settings(max_examples=8)
@given(seed=seeds, beam=st.integers(1, 4))
def test_a_forced_prefix_is_respected_and_scored_by_the_model(seed, beam):
    model, sources = talkative(seed, end=2), texts(seed, [3, 5, 2])
    prefixes = [texts(seed + 1, [2])[0], [], texts(seed + 2, [1])[0]]
    found = translate(model, sources, Search(beam, beam), prefixes=prefixes)
    for source, prefix, own in zip(sources, prefixes, found, strict=True):
        for hypothesis in own:
            assert list(hypothesis.tokens[: len(prefix)]) == prefix
            assert list(hypothesis.token_scores) == pytest.approx(teacher_forced(model, source, hypothesis), abs=1e-5)
    assert found[1][0].tokens == translate(model, sources[1:2], Search(beam, beam))[0][0].tokens


@pytest.mark.parametrize("how", [GREEDY, Search(4, 4), Search(n_best=20, sampling=Sampling())], ids=["1", "4", "draw"])
def test_what_may_never_be_said_is_never_said_and_scores_are_still_the_models(how):
    table = Table(lambda sentence, said: torch.tensor([9.0, 1.0, 0.5, 0.0, 9.0]))
    chances = table.logits(0, ()).log_softmax(-1)
    for hypothesis in search(table, table.start(1), Marks(0, END, (0, 4)), torch.tensor([4]), how)[0]:
        assert not {0, 4} & set(hypothesis.tokens)
        said = [*hypothesis.tokens, END] if hypothesis.ended else hypothesis.tokens
        assert list(hypothesis.token_scores) == pytest.approx([chances[word].item() for word in said], abs=1e-6)


def test_no_sentences_have_no_outputs():
    assert search(Table(None), [], MARKS, torch.tensor([], dtype=torch.long)) == []


@pytest.mark.parametrize("how", [Search(), Search(2, 2)])
def test_logits_in_half_precision_are_summed_in_single(how):
    logits = torch.randn(50).to(torch.bfloat16)
    table = Table(lambda sentence, said: logits.clone())
    for hypothesis in search(table, table.start(1), Marks(0, END), torch.tensor([1]), how)[0]:
        word = hypothesis.tokens[0] if hypothesis.tokens else END
        assert hypothesis.score == pytest.approx(logits.float().log_softmax(-1)[word].item(), abs=1e-5)


# Sampling


@settings(max_examples=3)
@given(seed=seeds)
def test_a_sample_depends_on_the_seed_and_the_line_and_nothing_else(seed):
    model, sources = talkative(seed, end=1), texts(seed, [4, 2, 6])
    how = Search(n_best=3, sampling=Sampling(temperature=1.5, seed=seed))
    together = translate(model, sources, how, lines=[10, 11, 12])
    backwards = translate(model, sources[::-1], how, lines=[12, 11, 10])[::-1]
    for i, source in enumerate(sources):
        [alone] = translate(model, [source], how, lines=[10 + i])
        for other in (together[i], backwards[i]):
            assert [h.tokens for h in other] == [h.tokens for h in alone]
            assert [h.score for h in other] == pytest.approx([h.score for h in alone], abs=1e-5)
        assert alone == sorted(alone, key=lambda h: (not h.ended, -h.score))
        for hypothesis in alone:
            assert list(hypothesis.token_scores) == pytest.approx(teacher_forced(model, source, hypothesis), abs=1e-5)
    other = Search(n_best=3, sampling=Sampling(temperature=1.5, seed=seed + 1))
    assert translate(model, sources, other, lines=[10, 11, 12]) != together


@settings(max_examples=8)
@given(seed=seeds)
def test_sampling_from_the_likeliest_word_only_is_greedy(seed):
    model, sources = talkative(seed, end=2), texts(seed, [4, 2])
    greedy = translate(model, sources)
    for sampling in (Sampling(top_k=1), Sampling(top_p=1e-9), Sampling(temperature=1e-4)):
        sampled = translate(model, sources, Search(sampling=sampling))
        assert [[h.tokens for h in own] for own in sampled] == [[h.tokens for h in own] for own in greedy]


@pytest.mark.parametrize(
    ("sampling", "chances"),
    [
        (Sampling(), [0.4, 0.3, 0.2, 0.1]),
        (Sampling(temperature=0.5), [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        (Sampling(top_k=2), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(top_p=0.8), [4 / 9, 3 / 9, 2 / 9, 0]),
        (Sampling(top_p=0.6), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(top_k=3, top_p=0.5), [4 / 7, 3 / 7, 0, 0]),
    ],
    ids=str,
)
def test_two_thousand_draws_are_as_frequent_as_their_chances(sampling, chances):
    table = Table(lambda sentence, said: torch.tensor([0.1, 0.4, 0.3, 0.2]).log())
    [found] = search(table, table.start(1), Marks(0, 3), torch.tensor([1]), Search(n_best=2000, sampling=sampling))
    drawn = Counter(h.tokens[0] if h.tokens else 3 for h in found)
    for word, chance in zip([1, 2, 3, 0], chances, strict=True):
        assert abs(drawn[word] / 2000 - chance) <= 4 * math.sqrt(chance * (1 - chance) / 2000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Search(beam=0), "beam 0, n-best 1; expected whole numbers from 1"),
        (lambda: Search(beam=2, n_best=3), "n-best 3 is more than beam 2. Use a beam at least as wide"),
        (lambda: Search(length_penalty_rule="marian"), "length-penalty rule 'marian'; expected gnmt or hf"),
        (lambda: Sampling(temperature=0), "temperature is 0; expected a number above 0"),
        (lambda: Sampling(top_p=1.5), "top-p is 1.5"),
    ],
)
def test_a_wrong_setting_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
