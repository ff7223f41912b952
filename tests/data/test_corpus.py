"""Running text: how it is read, cut into inputs, and made into pairs whose labels are true."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from qkv.data.corpus import CorpusFiles, read_sentences, sentences_in
from qkv.data.corpus_prepare import prepare_corpus
from qkv.data.corpus_store import CorpusStore, CorpusWriter
from qkv.data.pretraining import FOLLOWS, RANDOM, PretrainingBatches
from qkv.data.subwords import Subwords
from qkv.data.text_codec import TextCodec
from qkv.errors import ConfigError, DataError
from qkv.tasks.task import Position


def documents(where: Path, **settings) -> list[list[str]]:
    """What is read, as documents of sentences."""
    found: list[list[str]] = [[]]
    for _, _, raw, _ in read_sentences(CorpusFiles(train=str(where), **settings), "train"):
        if raw == "":
            found.append([])
        else:
            found[-1].append(raw if isinstance(raw, str) else raw.decode())
    return [document for document in found if document]


def test_blank_lines_end_documents(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("One.\nTwo.\n\n\nThree. And four.\n")
    assert documents(file) == [["One.", "Two."], ["Three. And four."]]
    assert documents(file, lines="documents") == [["One."], ["Two."], ["Three. And four."]]


def test_without_blank_lines_a_line_is_a_document(tmp_path):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"One. Two.\nThree.\n"))
    assert documents(file) == [["One. Two."], ["Three."]]


def test_records_are_documents(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": "One. Two!\nThree"}) + "\n\n" + json.dumps({"text": ["Four", "Five."]}) + "\n"
    )
    assert documents(tmp_path / "a.jsonl") == [["One.", "Two!", "Three"], ["Four", "Five."]]
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"body": ["One. Two."]}), tmp_path / "b.parquet")
    assert documents(tmp_path / "b.parquet", text="body") == [["One.", "Two."]]
    with pytest.raises(DataError, match="no column 'text'"):
        documents(tmp_path / "b.parquet")
    (tmp_path / "c.jsonl").write_text('{"text": "a"}\n{"body": 1}\n')
    with pytest.raises(DataError, match=r"c\.jsonl:2: there is no text called 'text'"):
        documents(tmp_path / "c.jsonl")


def test_a_folder_is_read_file_by_file(tmp_path):
    (tmp_path / "b.txt").write_text("Three.\n\nFour.\n")
    (tmp_path / "a.txt").write_text("One.\n\nTwo.\n")
    (tmp_path / "notes.md").write_text("no text")
    (tmp_path / ".hidden").write_text("no text")
    assert documents(tmp_path) == [["One."], ["Two."], ["Three."], ["Four."]]


def test_sentences_end_where_they_end():
    assert sentences_in('He came. "Why?" she asked!  3.14 is pi.') == [
        "He came.",
        '"Why?"',
        "she asked!",
        "3.14 is pi.",
    ]
    assert sentences_in("서울은 크다. 부산도 크다") == ["서울은 크다.", "부산도 크다"]
    assert sentences_in("  ") == []


def test_there_must_be_text(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match="there is no text in it"):
        prepare_corpus(CorpusFiles(folder=str(tmp_path / "empty.txt")), tmp_path / "run", 0, True)
    with pytest.raises(DataError, match=r"there is no .*emty\.txt. Did you mean 'empty.txt'"):
        prepare_corpus(CorpusFiles(folder=str(tmp_path / "emty.txt")), tmp_path / "run", 0, True)
    for pairs, text in ((True, "One.\nTwo.\n\nThree.\nFour.\n"), (False, "One.\n\n")):
        (tmp_path / "short.txt").write_text(text)
        data = CorpusFiles(folder=str(tmp_path / "short.txt"), words=330, lines="sentences")
        with pytest.raises(DataError, match=r"too little text to hold some out.*--data\.dev"):
            prepare_corpus(data, tmp_path / "run", 0, pairs)
    with pytest.raises(ConfigError, match=r"data\.longest is 4"):
        CorpusFiles(longest=4)


SENTENCE = "the {} dog sleeps and the {} cat runs"


def corpus(tmp_path, sizes, name="text.txt", same=False) -> str:
    """A file of documents of so many sentences; all different, unless they are to be the same."""
    lines = []
    for document, size in enumerate(sizes):
        lines += [SENTENCE.format("d0" if same else f"d{document}", f"s{i}") for i in range(size)] + [""]
    (tmp_path / name).write_text("\n".join(lines))
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([3], "train is one document"),  # BL-43 (a)
        ([1] * 10, "each of the 10 documents of train is one sentence, so none has a next one"),  # BL-43 (b)
    ],
)
def test_what_has_no_next_sentence_is_refused(tmp_path, sizes, message):
    where = corpus(tmp_path, sizes)
    data = CorpusFiles(train=where, dev=corpus(tmp_path, [4, 4], "dev.txt"), lines="sentences", words=330)
    with pytest.raises(DataError, match=message + ".*--learn.next 0"):
        prepare_corpus(data, tmp_path / "run", 0, True)
    prepared = prepare_corpus(data, tmp_path / "run", 0, False)  # as packed sentences they will do
    assert prepared.train.epoch_length(0) >= 1


def test_of_a_table_only_the_column_is_read(tmp_path):
    (tmp_path / "t.tsv").write_text("label\ttext\n1\tOne. Two.\n0\tThree.\n")
    assert documents(tmp_path / "t.tsv") == [["One. Two."], ["Three."]]
    (tmp_path / "u.csv").write_text("label,words\n1,One\n")
    with pytest.raises(DataError, match="text"):
        documents(tmp_path / "u.csv")


def test_a_document_a_line_is_parted_as_it_is_told(tmp_path):
    (tmp_path / "t.txt").write_text("".join(f"The film {i} was long. Nobody slept {i} times.\n" for i in range(60)))
    prepared = prepare_corpus(CorpusFiles(train=str(tmp_path / "t.txt"), words=330), tmp_path / "run", 0, True)
    assert prepared.train.epoch_length(0) >= 1  # each document has a next sentence


def pairs_of(prepared, epochs: int):
    """The texts and label of each pair."""
    batches, codec = prepared.train, prepared.codec
    for epoch in range(epochs):
        for place in range(batches.epoch_length(epoch)):
            batch = batches.batch(Position(epoch, place))
            batch.tokens.view(-1)[batch.places] = batch.words
            for tokens, length, segments, label in zip(
                batch.tokens, batch.lengths, batch.segments, batch.second, strict=True
            ):
                ids = tokens[:length].tolist()
                assert ids[0] == codec.cls and ids[-1] == codec.sep and ids.count(codec.sep) == 2
                split = ids.index(codec.sep)
                assert segments[:length].tolist() == [0] * (split + 1) + [1] * (length - split - 1)
                yield codec.decode(ids[1:split]), codec.decode(ids[split + 1 : -1]), int(label)


def test_half_follow_and_the_others_come_from_another_document(tmp_path):
    """BL-43 (c): two documents of two, and negatives always from the other one."""
    dev = corpus(tmp_path, [3, 3], "dev.txt")
    data = CorpusFiles(train=corpus(tmp_path, [2, 2]), dev=dev, words=330, longest=64, short=0.0)
    prepared = prepare_corpus(data, tmp_path / "run", 0, True)
    found = list(pairs_of(prepared, 100))
    assert len(found) == 200
    for first, second, label in found:
        document = first.split()[1]
        same = second.split()[1] == document
        assert same == (label == FOLLOWS)
        assert label == RANDOM or (first, second) == tuple(SENTENCE.format(document, s) for s in ("s0", "s1"))
    assert 70 <= sum(label for *_, label in found) <= 130


def test_what_is_called_random_never_begins_with_the_true_next_sentence(tmp_path):
    """Documents that repeat each other: another document's sentence may be the next one, word for word."""
    data = CorpusFiles(
        train=corpus(tmp_path, [3] * 6, same=True), dev=corpus(tmp_path, [3, 3], "dev.txt"), words=330, longest=96
    )
    prepared = prepare_corpus(data, tmp_path / "run", 0, True)
    labels = []
    for first, second, label in pairs_of(prepared, 30):
        following = int(first.split()[-3][1:]) + 1
        labels.append(label)
        if label == RANDOM:
            assert not second.startswith(SENTENCE.format("d0", f"s{following}"))
        else:
            assert second.startswith(SENTENCE.format("d0", f"s{following}"))
    assert 0 < sum(labels) < len(labels)


def test_packed_sentences_go_on_over_documents(tmp_path):
    data = CorpusFiles(
        train=corpus(tmp_path, [1, 3, 2, 1] * 5), dev=corpus(tmp_path, [3], "dev.txt"), words=330, longest=80
    )
    prepared = prepare_corpus(data, tmp_path / "run", 0, False)
    batches, codec, seen = prepared.train, prepared.codec, []
    batches.short = 0.0
    for place in range(batches.epoch_length(0)):
        batch = batches.batch(Position(0, place))
        batch.tokens.view(-1)[batch.places] = batch.words
        assert batch.tokens.shape[1] <= 80 and len(batch.second) == 0 and not batch.segments.any()
        for tokens, length in zip(batch.tokens, batch.lengths, strict=True):
            ids = tokens[:length].tolist()
            assert ids[0] == codec.cls and ids[-1] == codec.sep
            seen += [codec.decode(part) for part in _parts(ids[1:], codec.sep)]
    words = " ".join(seen).split()
    assert sorted(words) == sorted(Path(data.train).read_text().split())  # every sentence once
    assert int(batches.batch(Position(0, 0)).lengths.max()) > 50


def _parts(ids, mark):
    part = []
    for i in ids:
        if i == mark:
            yield part
            part = []
        else:
            part.append(i)
    assert not part


def test_batches_are_a_function_of_seed_and_place(tmp_path):
    data = CorpusFiles(
        train=corpus(tmp_path, [7, 9, 12, 5] * 3), dev=corpus(tmp_path, [3, 3], "dev.txt"), words=330, longest=64
    )
    one = prepare_corpus(data, tmp_path / "run", 5, True)
    again = prepare_corpus(data, tmp_path / "run", 5, True, one.codec)  # kept, and read back
    places = [(1, 0), (0, 0), *[(0, i) for i in range(one.train.epoch_length(0))][::-1]]
    batches = {place: one.train.batch(Position(*place)) for place in places}
    for place in sorted(batches):
        other = again.train.batch(Position(*place))
        for name in ("tokens", "lengths", "segments", "places", "words", "second"):
            assert np.array_equal(getattr(batches[place], name), getattr(other, name))
    assert not np.array_equal(batches[0, 0].words, batches[1, 0].words)
    assert all(batch.targets == len(batch.places) == len(batch.words) for batch in batches.values())
    assert len(one.dev) == len(again.dev) and np.array_equal(one.dev[0].tokens, again.dev[0].tokens)


def test_nothing_of_dev_is_in_train(tmp_path):
    """Of many documents some are held out; of few the end of each."""
    for sizes, held_out in (([2] * 400, 20), ([100, 200], 2)):
        data = CorpusFiles(folder=corpus(tmp_path, sizes), words=400, longest=64)
        prepared = prepare_corpus(data, tmp_path / f"run{len(sizes)}", 0, True)
        store = prepared.train.store
        dev = CorpusStore(next((tmp_path / f"run{len(sizes)}" / "data").glob("*/dev")))
        assert len(dev.documents) == held_out
        assert len(store.documents) == len(sizes) - (held_out if len(sizes) >= 200 else 0)
        kept = {tuple(store.run(i, i + 1).tolist()) for i in range(len(store.sentences))}
        others = {tuple(dev.run(i, i + 1).tolist()) for i in range(len(dev.sentences))}
        assert not kept & others and len(kept) + len(others) == sum(sizes)


@pytest.mark.parametrize(
    ("sizes", "pairs", "held_out", "rule"),
    [
        ([3] * 100, True, [3] * 5, "documents"),
        ([3] * 100, False, [3] * 5, "documents"),
        ([1, 4, 1, 5, 1, 6, 1, 7], True, [5, 7], "documents"),  # of those that a pair can be made of
        ([5, 5], False, [5], "documents"),
        ([5, 6], True, [2, 2], "ends of documents"),
        ([9], False, [1], "ends of documents"),
        ([50, 60], True, [2, 3], "ends of documents"),
        ([25, 3], False, [1], "ends of documents"),
    ],
)
def test_of_few_and_short_documents_some_are_held_out(tmp_path, sizes, pairs, held_out, rule):
    data = CorpusFiles(folder=corpus(tmp_path, sizes), words=400, longest=64, lines="sentences")
    prepared = prepare_corpus(data, tmp_path / "run", 0, pairs)
    dev = CorpusStore(next((tmp_path / "run" / "data").glob("*/dev")))
    assert np.diff(dev.documents, prepend=0).tolist() == held_out and len(dev) > 0
    assert len(dev.sentences) + len(prepared.train.store.sentences) == sum(sizes)
    assert f"{len(held_out)} {rule} of train, {sum(held_out)} sentences, are held out" in "\n".join(prepared.report)


def test_a_damaged_store_is_made_again(tmp_path):
    data = CorpusFiles(train=corpus(tmp_path, [7, 9]), dev=corpus(tmp_path, [3, 3], "dev.txt"), words=330, longest=64)
    one = prepare_corpus(data, tmp_path / "run", 5, True)
    (file,) = (tmp_path / "run" / "data").glob("*/train/pieces")
    file.write_bytes(file.read_bytes()[:-2])
    again = prepare_corpus(data, tmp_path / "run", 5, True, one.codec)
    assert np.array_equal(one.dev[0].tokens, again.dev[0].tokens)


@pytest.mark.parametrize("pairs", [True, False])
def test_inputs_fit_and_hold_everything_once(tmp_path, pairs):
    chance, room = np.random.default_rng(0), 20
    with CorpusWriter(tmp_path / "store", 100, room, pairs) as writer:
        for _ in range(60):
            for _ in range(int(chance.integers(1, 12))):
                writer.add([chance.integers(3, 90, chance.integers(1, 50)).tolist()])
            writer.end_document()
    store = CorpusStore(tmp_path / "store")
    every = np.arange(len(store))
    assert store.lengths(every).max() <= room
    assert (store.lengths(every) + (0 if pairs else store.borders(every))).max() <= room
    if pairs:
        assert (store.lasts - store.firsts >= 2).all()
        assert (store.borders(every) == 0).all()
    else:
        assert store.firsts[0] == 0 and store.lasts[-1] == len(store.sentences)
        assert (store.firsts[1:] == store.lasts[:-1]).all()
    assert writer.count["pieces"] == len(store.pieces) and writer.count["parted"] > 0


def test_a_codec_of_its_own(tmp_path):
    """Ids that random tokens are drawn from are none of the marks."""
    codec = TextCodec(Subwords.learn(["the dog sleeps"] * 9, 320, "wordpiece"))
    assert not set(codec.ordinary.tolist()) & {codec.pad, codec.cls, codec.sep, codec.mask}
    assert len(codec.ordinary) == codec.size - 4
    with CorpusWriter(tmp_path / "store", codec.size, 20, True) as writer:
        for _ in range(2):
            writer.add(codec.pieces_of(["the dog", "sleeps"]))
            writer.end_document()
    batches = PretrainingBatches(CorpusStore(tmp_path / "store"), codec, True, batch_tokens=64, whole_words=True)
    batch = batches.batch(Position(0, 0))
    assert batch.size == 2 and batch.targets == 2
