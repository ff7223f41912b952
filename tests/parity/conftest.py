"""A tiny published translator as a folder."""

import json
from pathlib import Path

import published
import pytest
from sentencepiece import SentencePieceProcessor


@pytest.fixture(scope="session")
def marian_pieces() -> tuple[bytes, bytes, dict[str, int]]:
    """``source.spm``, ``target.spm``, and one table for both."""
    source, target = published.learn_pieces("source"), published.learn_pieces("target")
    pieces = {"</s>": None, "<unk>": None, ">>xx<<": None}
    for model in (source, target):
        cutter = SentencePieceProcessor(model_proto=model)
        pieces |= dict.fromkeys(cutter.id_to_piece(i) for i in range(len(cutter)))
    return source, target, {piece: i for i, piece in enumerate([*pieces, "<pad>"])}


@pytest.fixture(scope="session")
def marian_folder(tmp_path_factory, marian_pieces) -> Path:
    """A folder as it is published."""
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-xx"
    source, target, numbers = marian_pieces
    model = published.tiny_marian(seed=1, words=len(numbers), forced_eos_token_id=0)
    model.final_logits_bias[0, 0] += 4.0
    model.save_pretrained(folder)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer", "model_max_length": 60}')
    return folder
