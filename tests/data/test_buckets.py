"""Batches: every pair once an epoch, little padding, and the same in every process and order of asking."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.data.buckets import Buckets, by_length, pad, pad_rows
from qkv.data.codec import Codec
from qkv.data.store import PairStore, StoreWriter
from qkv.data.subwords import END, PAD, START, Subwords
from qkv.tasks.task import Position


def make_codec() -> Codec:
    vocabulary = Subwords.learn(["the dog sleeps", "the dogs sleep soundly"] * 20, 300)
    return Codec(vocabulary, vocabulary, START)


def make_store(folder, pairs: int, seed: int = 0, longest: int = 30) -> PairStore:
    chance = np.random.default_rng(seed)
    target = chance.integers(1, longest, pairs)
    source = np.clip(target + chance.integers(-3, 4, pairs), 1, None)
    with StoreWriter(folder, 300, 1 << 17) as writer:
        for begin in range(0, pairs, 1000):
            some = slice(begin, begin + 1000)
            ids = [chance.integers(3, 230, n).tolist() for n in source[some]]
            theirs = [chance.integers(3, 230, n).tolist() for n in target[some]]
            writer.add(ids, theirs, list(range(begin + 1, begin + 1 + len(ids))))
    return PairStore(folder)


@pytest.fixture(scope="module")
def codec():
    return make_codec()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("store") / "train", 700)


def epoch(buckets: Buckets, number: int = 0) -> list:
    return [buckets.batch(Position(number, place)) for place in range(buckets.epoch_length(number))]


@given(
    seed=st.integers(0, 99),
    number=st.integers(0, 9),
    tokens=st.integers(1, 400),
    block=st.sampled_from([1, 7, 64, 4096]),
)
def test_every_pair_occurs_once_an_epoch_and_batches_are_bounded(store, codec, seed, number, tokens, block):
    buckets = Buckets(store, codec, tokens, seed, block=block)
    length = buckets.epoch_length(number)
    rows = [buckets.rows(Position(number, place)) for place in range(length)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(store)))
    for some in rows:
        widest = max(store.source.lengths(some).max(), store.target.lengths(some).max()) + 1
        assert len(some) == 1 or len(some) * widest <= tokens
    with pytest.raises(IndexError, match=f"no batch {length}"):
        buckets.rows(Position(number, length))


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 200))
def test_by_length_puts_everything_once_into_bounded_batches(widths, tokens):
    batches = by_length(widths, tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(len(widths)))
    assert all(len(batch) == 1 or len(batch) * max(widths[i] for i in batch) <= tokens for batch in batches)
    ordered = [widths[i] for batch in batches for i in batch]
    assert ordered == sorted(widths, reverse=True)


def test_a_batch_is_its_pairs_padded_on_the_right(store, codec):
    for batch in epoch(Buckets(store, codec, 200, seed=3))[:5]:
        for i, line in enumerate(batch.ids.tolist()):
            source, target = store.source[line - 1].tolist(), store.target[line - 1].tolist()
            n, m = batch.source_lengths[i], batch.target_lengths[i]
            assert batch.source[i, :n].tolist() == [*source, END] and (batch.source[i, n:] == PAD).all()
            assert batch.target[i, :m].tolist() == [START, *target, END] and (batch.target[i, m:] == PAD).all()
        assert batch.targets == int((batch.target_lengths - 1).sum())
        assert batch.tokens == int((batch.target_lengths + batch.source_lengths).sum())
        assert batch.size == len(batch.ids) and batch.to("cpu").targets == batch.targets
        assert batch.source.dtype == batch.target.dtype == torch.int64


def test_resuming_is_a_jump(store, codec):
    """The batches after a place are the same for who begins there, in any order, after any other epoch."""
    one, other = Buckets(store, codec, 200, seed=5, block=128), Buckets(store, codec, 200, seed=5, block=128)
    whole = [batch.ids.tolist() for batch in epoch(one, 1)]
    other.batch(Position(7, 0))
    for place in reversed(range(len(whole))):
        assert other.batch(Position(1, place)).ids.tolist() == whole[place]
    ranks = [[one.rows(Position(1, place)) for place in range(rank, len(whole), 2)] for rank in (0, 1)]
    assert sorted(np.concatenate(ranks[0] + ranks[1]).tolist()) == list(range(len(store)))


def test_seed_and_epoch_change_the_order(store, codec):
    orders = [
        [b.ids.tolist() for b in epoch(Buckets(store, codec, 200, seed), e)] for seed, e in ((0, 0), (0, 1), (1, 0))
    ]
    assert orders[0] != orders[1] != orders[2] != orders[0]


def test_batches_are_not_in_order_of_length(store, codec):
    widths = [batch.target.shape[1] for batch in epoch(Buckets(store, codec, 200, seed=0))]
    assert widths != sorted(widths)


def test_little_padding(tmp_path, codec):
    store = make_store(tmp_path / "large", 8000)
    batches = epoch(Buckets(store, codec, 1000, seed=0))
    padded = sum(batch.source.numel() + batch.target.numel() for batch in batches)
    assert sum(batch.tokens for batch in batches) / padded > 0.93


DIGEST = "import sys; sys.path.insert(0, {here!r}); import test_buckets; print(test_buckets.digest({store!r}))"


def digest(folder: str) -> str:
    buckets = Buckets(PairStore(folder), make_codec(), 200, 5, bpe_dropout=0.2, block=128)
    seen = [(batch.ids.tolist(), batch.source.tolist(), batch.target.tolist()) for batch in epoch(buckets, 2)]
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def test_every_process_sees_the_same_batches(tmp_path):
    make_store(tmp_path / "train", 300)
    code = DIGEST.format(here=os.path.dirname(__file__), store=str(tmp_path / "train"))
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == digest(str(tmp_path / "train")) + "\n"


def test_bpe_dropout_changes_pieces_and_not_text(tmp_path, codec):
    texts = ["the dogs sleep", "the dog sleeps soundly"] * 20
    with StoreWriter(tmp_path / "s", codec.source.size, codec.target.size) as writer:
        writer.add(codec.source.encode(texts), codec.target.encode(texts), list(range(1, 41)))
    store = PairStore(tmp_path / "s")
    plain = Buckets(store, codec, 100, seed=1)
    dropped = Buckets(store, codec, 100, seed=1, bpe_dropout=0.3)
    longer = 0
    for place in range(plain.epoch_length(0)):
        one, other = plain.batch(Position(0, place)), dropped.batch(Position(0, place))
        again = dropped.batch(Position(0, place))
        assert torch.equal(other.source, again.source) and torch.equal(other.target, again.target)
        assert one.ids.tolist() == other.ids.tolist()
        longer += other.targets - one.targets
        for row, line in zip(other.target.tolist(), other.ids.tolist(), strict=True):
            assert codec.decode(row) == texts[line - 1]
    assert longer > 0
    limited = Buckets(store, codec, 100, seed=1, bpe_dropout=0.9, max_length=6)
    assert max(int(batch.target_lengths.max()) for batch in epoch(limited)) <= 8


def test_large_vocabularies_and_empty_stores(tmp_path, codec):
    with StoreWriter(tmp_path / "s", 300, 70_000) as writer:
        writer.add([[299], []], [[69_999, 3], [4]], [1, 2])
    store = PairStore(tmp_path / "s")
    assert store.target[0].tolist() == [69_999, 3] and store.source[1].tolist() == []
    with StoreWriter(tmp_path / "e", 300, 300):
        pass
    empty = Buckets(PairStore(tmp_path / "e"), codec, 100)
    assert empty.epoch_length(0) == 0 and by_length([], 10) == []
    batch = pad([], [], codec)
    assert batch.size == 0 and batch.targets == 0
    filled, lengths = pad_rows([[5, 6], [7]], 9)
    assert filled.tolist() == [[5, 6], [7, 9]] and lengths.tolist() == [2, 1]
    assert replace(batch, targets=3).targets == 3
