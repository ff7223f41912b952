"""A translator that reads with a trained BERT: its states, its marks, and everything that any translator does."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from qkv.data.codec import Codec
from qkv.data.labels import LabelCodec
from qkv.data.subwords import Subwords
from qkv.data.targets import Targets
from qkv.data.text_codec import TextCodec
from qkv.data.text_side import TextSide
from qkv.data.texts_batches import padded
from qkv.data.wordpieces import WordPieces
from qkv.decode.search import Search
from qkv.errors import ConfigError, RunError
from qkv.models.bert import BertConfig
from qkv.models.rnn import RnnConfig
from qkv.models.saved import build, load_model, save_model
from qkv.tasks.classify_texts import ClassifyTexts
from qkv.tasks.evaluate import score_files
from qkv.tasks.load import load
from qkv.tasks.pretrain import Pretrain
from qkv.tasks.settings import write_settings
from qkv.tasks.translate import Translate
from qkv.train.loop import train
from qkv.train.options import from_flags, from_mapping

SENTENCES = ["그녀는 빵을 좋아합니다.", "저는 일했습니다.", "누가 노래를 들었습니까?"]
BERT = BertConfig(dim=32, depth=2, heads=2, hidden=64, longest=64)
SMALL = {"dim": 24, "decoder_depth": 2, "heads": 2, "hidden": 48, "dropout": 0.0}


@pytest.fixture(scope="session")
def pairs(pairs, tmp_path_factory) -> Path:
    """Few of the phrases: nothing is to be learned well here."""
    folder = tmp_path_factory.mktemp("few")
    for part, lines in (("train", 400), ("dev", 12)):
        for side in ("ko", "en"):
            found = (pairs / f"{part}.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / f"{part}.{side}").write_text("".join(found[:lines]), encoding="utf-8")
    return folder


def settings(pairs: Path, out: Path, **changes) -> dict:
    return {
        "data": {"folder": str(pairs), "source": "ko", "target": "en", "batch_tokens": 1024},
        "size": SMALL,
        "optimize": {"lr": 5e-3, "warmup": 10},
        "loop": {"steps": 4, "evaluate_every": 4},
        "out": out,
        **changes,
    }


def bert_in(folder: Path, codec: TextCodec | LabelCodec, **changes) -> Path:
    """A run of a random BERT."""
    torch.manual_seed(0)
    words = getattr(codec, "text", codec).size
    save_model(build("bert", replace(BERT, words=words, **changes)), folder)
    codec.save(folder / "codec")
    write_settings(folder, task="pretrain")
    return folder


@pytest.fixture(scope="session")
def codec(pairs) -> TextCodec:
    lines = (pairs / "train.ko").read_text(encoding="utf-8").splitlines()
    return TextCodec(Subwords.learn(lines, 400, "wordpiece"))


@pytest.fixture(scope="session")
def bert(codec, tmp_path_factory) -> Path:
    return bert_in(tmp_path_factory.mktemp("runs") / "bert-ko", codec)


@pytest.fixture(scope="session")
def frozen(bert, pairs, tmp_path_factory) -> Path:
    """A run of some seconds whose encoder stays as it was."""
    out = tmp_path_factory.mktemp("runs") / "ko-en"
    given = settings(pairs, out, learn={"encoder": str(bert)}, loop={"steps": 30, "evaluate_every": 30})
    return train(from_mapping("translate", {**given, "optimize": {**given["optimize"], "freeze": "encoder"}})).folder


def test_the_source_is_what_the_bert_reads_and_says_of_it(frozen, bert, codec):
    translator, own = load(frozen), load_model(bert)
    rows = translator.codec.encode_source(SENTENCES)
    assert rows == [list(codec.encode(text).ids) for text in SENTENCES]
    batch = translator.batch(SENTENCES, [[5]] * 3)
    tokens, lengths, segments = padded(rows, [[0] * len(row) for row in rows], codec.pad)
    assert torch.equal(batch.source, tokens)
    with torch.inference_mode():
        states, mask = translator.model.encode(batch.source, batch.source_lengths)
        theirs = own(tokens, lengths, segments)
    for mine, other, length in zip(states, theirs, lengths.tolist(), strict=True):
        torch.testing.assert_close(mine[:length], other[:length], rtol=0, atol=1e-6)
    assert mask.keep[:, 0, 0].sum(1).tolist() == lengths.tolist()


def test_text_that_looks_like_a_mark_is_text(frozen, codec):
    translator = load(frozen)
    text = "[CLS] 저는 [MASK] 일했습니다. [SEP]"
    (row,) = translator.codec.encode_source([text])
    assert (row[0], row[-1]) == (codec.cls, codec.sep)
    assert not {codec.cls, codec.sep, codec.mask, codec.pad} & set(row[1:-1])
    axis = translator.look(text).last("cross").key
    assert axis.text == text and axis.pieces[0] == "[CLS]" and axis.pieces[-1] == "[SEP]"
    assert [word.text for word in axis.words() if not word.mark] == text.split()


def test_the_users_words_stand_beside_what_a_lower_casing_vocabulary_made_of_them():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "caf", "##e", "don", "'", "t", ",", "是", "我"]
    files = {"vocab.txt": "\n".join(pieces).encode(), "tokenizer_config.json": b'{"do_lower_case": true}'}
    side = TextSide(TextCodec(WordPieces(files)))
    both = Codec(side, side, 3)
    text = side.normalise("CAFÉ,  don't\t我是 Qux [SEP]")
    assert text == "CAFÉ, don't 我是 Qux [SEP]"
    (row,) = both.encode_source([text])
    axis = both.source_axis(text, row)
    assert len(axis) == len(row) and axis.text == text
    assert axis.pieces[:4] == ("[CLS]", "caf", "##e", ",") and row.count(3) == 1
    assert [text[slice(*span)] for span in axis.spans[1:9]] == ["CAF", "É", ",", "don", "'", "t", "我", "是"]
    assert [word.text for word in axis.words() if not word.mark] == text.split()


@pytest.mark.parametrize("how", [Search(), Search(beam=3, n_best=2, length_penalty=0.6)])
def test_it_answers_as_any_translator_does(frozen, how):
    translator = load(frozen)
    alone = [translator(text, how=how) for text in SENTENCES]
    together = list(translator.translate(SENTENCES[::-1], how=how, batch_tokens=16))[::-1]
    translator.search = how
    for one, other in zip(alone, together, strict=True):
        assert one.ids == other.ids
        seen = translator.look_at(one)
        plain = [name for name in seen if not name.startswith(("target.", "encoder.tokens"))]
        assert plain == [
            "encoder.blocks.0.attention", "encoder.blocks.1.attention", "decoder.0.attention", "decoder.0.cross",
            "decoder.1.attention", "decoder.1.cross",
        ]  # fmt: skip
        assert all(map.key.text == one.source for map in seen.select("encoder.*"))
        given = next(translator.score([(one.source, one.text)]))
        if given.ids == one.ids:
            assert given.score == pytest.approx(one.score, abs=1e-4)
            assert given.token_scores == pytest.approx(one.token_scores, abs=1e-4)


def test_alignments_count_the_users_words(frozen, pairs):
    translator = load(frozen)
    assert translator.reader is not None and ".cross" in translator.reader.layer
    for answer in translator.align(list(translator.score([(text, "a b c") for text in SENTENCES]))):
        assert all(0 <= s < len(answer.source.split()) and 0 <= t < 3 for s, t in answer.links)
    saliency = translator.look(SENTENCES[0], gradient=True)["gradient"][0]
    torch.testing.assert_close(saliency.weights.sum(-1), torch.ones_like(saliency.weights.sum(-1)))


def test_a_line_that_is_longer_than_the_bert_reads_is_marked(frozen, tmp_path):
    translator = load(frozen)
    assert translator.longest_source == 64
    long = "저는 " * 63 + "일했습니다."
    assert [a.mark for a in translator([SENTENCES[0], long])] == ["", "over-long"]
    for side, lines in (("ko", [long, SENTENCES[0]]), ("en", ["a", "b"])):
        (tmp_path / side).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [a.mark for a in score_files(translator, tmp_path / "ko", tmp_path / "en")] == ["over-long", ""]


def test_a_run_goes_on_and_is_gone_on_from_when_the_bert_is_gone(bert, pairs, tmp_path):
    """BL-46, with dropout in both halves."""
    mine = shutil.copytree(bert, tmp_path / "mine")

    def given(out: str, steps: int) -> dict:
        loop = {"steps": steps, "evaluate_every": 2, "save_every": 1}
        size = {**SMALL, "dropout": 0.1}
        return settings(pairs, tmp_path / out, learn={"encoder": str(mine)}, loop=loop, size=size)

    whole = train(from_mapping("translate", given("whole", 4))).folder
    part = train(from_mapping("translate", given("part", 2))).folder
    shutil.rmtree(mine)
    with pytest.raises(RunError, match=r"no such folder.*Go on without it: qkv train --config .*part/run.yaml"):
        from_mapping("translate", given("part", 4))
    train(from_flags(["--config", str(part / "run.yaml"), "--loop.steps", "4"]))
    one, other = load_model(whole).state_dict(), load_model(part).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert [a.ids for a in load(whole)(SENTENCES)] == [a.ids for a in load(part)(SENTENCES)]

    more = train(from_mapping("translate", settings(pairs, tmp_path / "more", init=whole, size=None))).folder
    assert load(more).codec.fingerprint() == load(whole).codec.fingerprint()


def test_the_size_may_be_a_name_and_the_model_may_be_named(bert, pairs, tmp_path):
    given = settings(pairs, tmp_path, learn={"encoder": str(bert)}, size="nano", model="transformer")
    run = from_mapping("translate", {**given, "optimize": {}})
    assert (run.model, run.size.dim, run.size.bert.dim) == ("bert-transformer", 64, 32)
    assert (run.optimize.lr, run.data.max_length) == (5e-4, 62)


def test_a_classifier_of_texts_is_a_bert_too(codec, pairs, tmp_path):
    labels = LabelCodec(codec, Targets("class", ("a", "b")), 64)
    folder = bert_in(tmp_path / "classes", labels, head="class", outputs=2, pool="mean")
    given = settings(pairs, tmp_path / "run", learn={"encoder": str(folder)}, loop={"steps": 1, "evaluate_every": 1})
    run = from_mapping("translate", {**given, "optimize": {"lr": 1e-9, "warmup": 0}})
    states = load_model(train(run).folder).encoder.state_dict()
    theirs = load_model(folder).state_dict()
    assert all(torch.allclose(states[name], theirs[name], atol=1e-6) for name in states)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "seq2seq", "size": None}, r"learn\.encoder is for a Transformer, and the model is 'seq2seq'"),
        ({"learn": {"encoder": "no/such"}}, r"no/such: there is no such folder"),
        ({"learn": {}, "model": "bert-transformer"}, r"'bert-transformer' reads with a trained BERT.*--encoder RUN"),
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_is_read(bert, pairs, tmp_path, changes, message):
    given = {**settings(pairs, tmp_path / "run", learn={"encoder": str(bert)}), **changes}
    with pytest.raises((ConfigError, RunError), match=message):
        from_mapping("translate", given)


def test_two_starts_are_refused(bert, frozen, pairs, tmp_path):
    with pytest.raises(ConfigError, match=r"learn\.embeddings and learn\.encoder both say"):
        Translate(embeddings="v.txt", encoder="run")
    given = settings(pairs, tmp_path / "run", learn={"encoder": str(bert)}, size=None, init=frozen)
    with pytest.raises(ConfigError, match=r"learn\.encoder .* and init .* both say what the encoder is"):
        from_mapping("translate", given)


def test_a_run_without_word_vectors_is_no_start_for_them(bert):
    for task in (Translate, Pretrain, ClassifyTexts):
        with pytest.raises(RunError, match="is a run of 'pretrain'; expected one of word vectors"):
            task(embeddings=str(bert))


def test_a_run_of_another_model_is_named(codec, pairs, tmp_path):
    save_model(build("rnn", RnnConfig(words=codec.size, dim=8, outputs=2)), tmp_path / "rnn")
    with pytest.raises(ConfigError, match=r"rnn is a run of the model 'rnn', expected a run of bert|run of bert"):
        from_mapping("translate", settings(pairs, tmp_path / "run", learn={"encoder": str(tmp_path / "rnn")}))


def test_what_the_bert_cannot_read_is_refused(bert, pairs, tmp_path):
    given = settings(pairs, tmp_path / "run", learn={"encoder": str(bert)})
    run = from_mapping("translate", {**given, "data": {**given["data"], "max_length": 63}})
    with pytest.raises(ConfigError, match=r"max_length is 63, and the encoder reads 64.*--data.max_length 62"):
        train(run)
    run = from_mapping("translate", {**given, "data": {**given["data"], "bpe_dropout": 0.1}})
    with pytest.raises(ConfigError, match="BPE vocabulary of our own, and the encoder's vocabulary is not one"):
        train(run)
    run = from_mapping("translate", {**given, "data": {**given["data"], "joint": True}})
    with pytest.raises(ConfigError, match="one vocabulary of both languages, and the encoder brings"):
        train(run)
    run = from_mapping("translate", given)
    with pytest.raises(ConfigError, match="of another BERT than the vocabulary"):
        train(replace(run, learn={}))
