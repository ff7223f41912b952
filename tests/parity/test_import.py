"""A published folder becomes a run of ours, and a folder that transformers loads again."""

import json
import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from published import sentences, tiny_marian

from qkv.data.codec import Codec
from qkv.data.sentencepieces import SentencePieces
from qkv.decode.search import Marks, Search, search
from qkv.errors import RunError
from qkv.models.saved import load_model, save_model
from qkv.store import read_json, read_tensors
from qkv.tasks.settings import read_settings
from qkv.weights.marian import export_marian, import_marian

transformers = pytest.importorskip("transformers")
LINES = [*sentences("source", 12, seed=9), "가나 다라", "ﬁ ① 가", "<pad> 가 </s> 나 <unk>", ">>xx<< 가 나"]


@pytest.fixture(scope="module")
def run(marian_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "imported"
    import_marian(str(marian_folder), folder)
    return folder


@pytest.fixture(scope="module")
def theirs(marian_folder):
    return transformers.MarianMTModel.from_pretrained(marian_folder).eval()


def same_tensors(one, other) -> bool:
    (ours, tied), (theirs, also_tied) = (read_tensors(folder / "model.safetensors") for folder in (one, other))
    equal = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    return equal and tied == also_tied


def test_the_run_is_the_model(run, theirs):
    model, codec = load_model(run), Codec.load(run / "codec")
    assert model.source.words.weight is model.output.weight
    rows = codec.encode_source(LINES)
    for row in rows:
        source = torch.tensor([row])
        target = torch.tensor([[codec.start, *row[:-1]]])
        with torch.inference_mode():
            wanted = theirs(input_ids=source, decoder_input_ids=target).logits
            found = model.output(model(source, torch.tensor([len(row)]), target))
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_ids_and_text_are_theirs(run, marian_folder):
    codec = Codec.load(run / "codec")
    theirs = transformers.MarianTokenizer.from_pretrained(marian_folder)
    for line in LINES:
        if "</s>" not in line:  # theirs takes the user's text for a mark there
            assert codec.encode_source([line])[0] == theirs(line).input_ids, line
    for line in sentences("target", 12, seed=4):
        assert codec.encode_target([line])[0][1:] == theirs(text_target=line).input_ids
        ids = codec.target.encode([line])[0]
        if codec.target.unknown not in ids:
            assert codec.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


def test_text_that_looks_like_a_mark_stays_text(run):
    codec = Codec.load(run / "codec")
    line = "<pad> 가 </s> 나"
    ids = codec.encode_source([line])[0]
    assert ids.count(codec.end) == 1 and ids[-1] == codec.end and codec.pad not in ids
    assert codec.source.decode(ids).replace("⁇", "") == "<p> 가 </s> 나"  # a and d are in no piece of this side


def test_decoding_as_its_maker_does(run, theirs):
    codec, model = Codec.load(run / "codec"), load_model(run)
    told = read_settings(run)
    assert told["search"] == {"beam": 4, "length_penalty": 1.0, "length_penalty_rule": "hf"}
    assert (told["longest"], told["never"]) == (60, [codec.pad])
    row = codec.encode_source(["가나 다라"])[0]
    with torch.inference_mode():
        state = model.start(torch.tensor([row]), torch.tensor([len(row)]))
    how = Search(**told["search"])
    marks = Marks(codec.start, codec.end, tuple(told["never"]))
    found = search(model, state, marks, torch.tensor([told["longest"] - 1]), how)[0][0]
    wanted = theirs.generate(torch.tensor([row]), early_stopping="never")[0].tolist()
    assert [i for i in wanted if i != codec.pad] == [*found.tokens, *([codec.end] if found.ended else [])]


def test_the_way_back(run, theirs, marian_folder, tmp_path):
    export_marian(run, tmp_path / "out")
    again, report = transformers.MarianMTModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    wanted = transformers.MarianTokenizer.from_pretrained(marian_folder)
    assert type(tokenizer) is type(wanted)
    assert [tokenizer(line).input_ids for line in LINES] == [wanted(line).input_ids for line in LINES]
    row = tokenizer("가나 다라", return_tensors="pt").input_ids
    assert torch.equal(again.generate(row), theirs.generate(row))
    assert again.generation_config.num_beams == 4 and again.config.activation_function == "swish"
    import_marian(str(tmp_path / "out"), tmp_path / "twice")
    assert (tmp_path / "twice" / "model.json").read_bytes() == (run / "model.json").read_bytes()
    assert same_tensors(tmp_path / "twice", run)
    assert read_settings(tmp_path / "twice") == read_settings(run)
    assert Codec.load(tmp_path / "twice" / "codec").fingerprint() == Codec.load(run / "codec").fingerprint()


def test_two_vocabularies(marian_pieces, tmp_path):
    source, target, numbers = marian_pieces
    targets = {piece: i for i, piece in enumerate(p for p in numbers if p not in ("가", "▁가"))}
    extra = [f"<extra{i}>" for i in range(len(targets) - 41)]  # the padding word must have one id on both sides
    sources = {piece: i for i, piece in enumerate([*list(numbers)[:40], *extra, "<pad>"])}
    folder = tmp_path / "published"
    tiny_marian(seed=5, words=len(sources), target_words=len(targets)).save_pretrained(folder)
    for file, text in (("vocab.json", sources), ("target_vocab.json", targets)):
        folder.joinpath(file).write_text(json.dumps(text), encoding="utf-8")
    folder.joinpath("source.spm").write_bytes(source)
    folder.joinpath("target.spm").write_bytes(target)
    import_marian(str(folder), tmp_path / "run")
    codec = Codec.load(tmp_path / "run" / "codec")
    assert codec.source.numbers == sources and codec.target.numbers == targets
    export_marian(tmp_path / "run", tmp_path / "out")
    assert read_json(tmp_path / "out" / "config.json")["share_encoder_decoder_embeddings"] is False
    wanted = transformers.MarianMTModel.from_pretrained(folder).state_dict()
    found = transformers.MarianMTModel.from_pretrained(tmp_path / "out").state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items())
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
    line = sentences("target", 1, seed=3)[0]
    assert tokenizer(text_target=line).input_ids == codec.encode_target([line])[0][1:]


def test_an_old_pickle_is_read_as_plain_tensors(marian_folder, run, tmp_path):
    folder = shutil.copytree(marian_folder, tmp_path / "old")
    weights = transformers.MarianMTModel.from_pretrained(folder).state_dict()  # every tied name, and the sinusoids
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    import_marian(str(folder), tmp_path / "run")
    assert same_tensors(tmp_path / "run", run)


def test_a_pickle_that_runs_code_is_refused(marian_folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "marker"), "w"))

    folder = shutil.copytree(marian_folder, tmp_path / "trap")
    (folder / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Trap()}, folder / "pytorch_model.bin")
    with pytest.raises(RunError, match="more than tensors"):
        import_marian(str(folder), tmp_path / "run")
    assert not (tmp_path / "marker").exists() and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"model_type": "bart"}, "expected marian"),
        ("config.json", {"normalize_before": True}, "normalize_before = True"),
        ("config.json", {"scale_embedding": False}, "scale_embedding = False"),
        ("config.json", {"encoder_attention_heads": 2}, "the same in encoder and decoder"),
        ("config.json", {"activation_function": "tanh"}, "activation 'tanh'"),
        ("config.json", {"pad_token_id": 3}, "pad_token_id = 3"),
        ("config.json", {"encoder_layers": 1}, "encoder.1"),
        ("source.spm", None, "source.spm: is missing"),
        ("config.json", None, "config.json: is missing"),
        ("model.safetensors", None, "no model.safetensors and no pytorch_model.bin"),
    ],
)
def test_what_is_refused(marian_folder, tmp_path, file, change, message):
    folder = shutil.copytree(marian_folder, tmp_path / "bad")
    if change is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(json.dumps({**read_json(folder / file), **change}))
    with pytest.raises(RunError, match=message):
        import_marian(str(folder), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_no_such_model(tmp_path, monkeypatch):
    with pytest.raises(RunError, match="there is no folder nowhere"):
        import_marian("nowhere", tmp_path / "run")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RunError, match="cannot be reached"):
        import_marian("nobody/opus-mt-xx-yy", tmp_path / "run")


def test_a_run_with_our_own_vocabulary_cannot_go_there(run, tmp_path):
    from qkv.data.subwords import Subwords

    own = Subwords.learn(["a b c"] * 9, words=320)
    save_model(load_model(run), tmp_path)
    Codec(own, own, own.start).save(tmp_path / "codec")
    with pytest.raises(RunError, match="needs SentencePiece vocabularies"):
        export_marian(tmp_path, tmp_path / "out")


PARTS = ["가", "나다", "▁", "  ", "<pad>", "</s>", "<unk>", ">>xx<<", "ﬁ", "é", "\n"]


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=30) | st.lists(st.sampled_from(PARTS)).map("".join))
def test_spans_slice_back_to_the_text(marian_pieces, text):
    source, _, numbers = marian_pieces
    vocabulary = SentencePieces(source, numbers)
    ids = vocabulary.encode([text])[0]
    assert vocabulary.pad not in ids and vocabulary.end not in ids
    seen = vocabulary.tokens([vocabulary.pad, *ids, vocabulary.end])
    assert seen.text == vocabulary.decode(ids) == " ".join(seen.text.split())
    assert vocabulary.encode([vocabulary.normalise(text)])[0] == ids
    if vocabulary.unknown not in ids:
        assert seen.text == vocabulary.normalise(text)
    assert seen.spans[0][0] == seen.spans[0][1] and seen.spans[-1][0] == seen.spans[-1][1]
    covered = set()
    for i, (begin, end) in zip(ids, seen.spans[1:-1], strict=True):
        shown = vocabulary.decode([i])
        assert seen.text[begin:end] == shown or (shown == "" and end - begin <= 1)
        covered |= set(range(begin, end))
    assert covered == {place for place, character in enumerate(seen.text) if character != " "}
    seen.words()
