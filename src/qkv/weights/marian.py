"""Published Marian (OPUS-MT) translators as runs of ours, and back.

A published folder holds ``config.json``, ``generation_config.json``, ``vocab.json`` (and ``target_vocab.json`` where
the two sides have a vocabulary each), ``source.spm``, ``target.spm``, and ``model.safetensors`` or
``pytorch_model.bin``.
Nothing that is read here can run code.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from qkv.data.codec import Codec
from qkv.data.sentencepieces import SentencePieces
from qkv.errors import RunError
from qkv.models.saved import build, fill, load_model, save_model
from qkv.models.transformer_names import marian, marian_config, marian_config_of
from qkv.store import read_json, write_json, write_tensors
from qkv.tasks.settings import read_settings, write_settings
from qkv.weights.files import find_published, read_weights

__all__ = ["export_marian", "import_marian"]

FILES = (
    "config.json", "generation_config.json", "tokenizer_config.json", "vocab.json", "target_vocab.json",
    "source.spm", "target.spm", "model.safetensors", "pytorch_model.bin",
)  # fmt: skip


def import_marian(name: str, out: str | Path) -> list[str]:
    """Make a run of ours in ``out`` of a published Marian model.

    Args:
        name: its folder, or its name on the Hugging Face hub (``Helsinki-NLP/opus-mt-ko-en``).

    Returns:
        Lines that tell the user what the run is, and what of its maker's decoding we do otherwise.

    Raises:
        RunError: there is no such model, a file is missing or broken, or the model does something that ours does not.
    """
    folder, out = find_published(name, FILES), Path(out)
    config = read_json(folder / "config.json")
    try:
        ours = marian_config(config)
    except RunError as error:
        raise RunError(str(error), file=folder / "config.json") from None
    weights = read_weights(folder)
    # Old files lack the bias, and transformers then takes zeros.
    weights.setdefault("final_logits_bias", torch.zeros(1, ours.target_words))
    model = build("transformer", ours)
    fill(model, marian(ours.tie).load({name: tensor.float() for name, tensor in weights.items()}), folder)
    codec = _read_codec(folder, config)
    for vocabulary, words in ((codec.source, ours.source_words), (codec.target, ours.target_words)):
        if vocabulary.size > words:
            raise RunError(f"a vocabulary numbers {vocabulary.size} pieces, and the model knows {words}", file=folder)
    decoding, notes = _read_decoding(folder, config, ours.target_words, codec)
    save_model(model, out)
    codec.save(out / "codec")
    write_settings(out, **decoding)
    count = sum(weight.numel() for weight in model.parameters())
    return [f"{name}: a Marian model of {count / 1e6:.1f} million weights, {ours.source_words} words", *notes]


def export_marian(run: str | Path, out: str | Path) -> None:
    """Write a run as a folder that ``transformers`` loads as ``MarianMTModel`` and ``MarianTokenizer``.

    Raises:
        RunError: the run's vocabulary is not of SentencePiece (transformers' Marian tokenizer can read no other), or
            its model is not one that a Marian model can be.
    """
    run, out = Path(run), Path(out)
    codec = Codec.load(run / "codec")
    if not isinstance(codec.source, SentencePieces) or not isinstance(codec.target, SentencePieces):
        raise RunError(
            f"a Marian folder needs SentencePiece vocabularies, and this run's is of the kind {codec.source.kind!r}: "
            "its weights could be written, but transformers could not turn text into their ids",
            file=run,
            remedy="export an imported run, or share the run's own folder",
        )
    model = load_model(run)
    config = marian_config_of(model.config)
    ids = {
        "pad_token_id": codec.pad,
        "eos_token_id": codec.end,
        "forced_eos_token_id": codec.end,  # where an output is cut off
        "decoder_start_token_id": codec.start,
    }
    separate = codec.source.numbers != codec.target.numbers
    settings = read_settings(run)
    search, longest = settings.get("search", {}), settings.get("longest", 512)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "config.json", {**config, **ids, "max_position_embeddings": max(longest, 512)})
    write_json(out / "generation_config.json", {
        **ids,
        "num_beams": search.get("beam", 1),
        "length_penalty": search.get("length_penalty", 1.0),
        "max_length": longest,
        "bad_words_ids": [[i] for i in settings.get("never", [codec.pad])],
    })  # fmt: skip
    write_json(out / "tokenizer_config.json", {
        "tokenizer_class": "MarianTokenizer", "separate_vocabs": separate, "model_max_length": longest,
        "unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>",
    })  # fmt: skip
    write_json(out / "vocab.json", codec.source.numbers)
    if separate:
        write_json(out / "target_vocab.json", codec.target.numbers)
    (out / "source.spm").write_bytes(codec.source.model)
    (out / "target.spm").write_bytes(codec.target.model)
    write_tensors(out / "model.safetensors", marian(model.config.tie).save(model.state_dict()), {"format": "pt"})


def _read_codec(folder: Path, config: Mapping[str, Any]) -> Codec:
    numbers = read_json(folder / "vocab.json")
    target_numbers = numbers
    if (folder / "target_vocab.json").is_file():
        target_numbers = read_json(folder / "target_vocab.json")
    sides = []
    for file, table in (("source.spm", numbers), ("target.spm", target_numbers)):
        try:
            sides.append(SentencePieces((folder / file).read_bytes(), table))
        except FileNotFoundError:
            raise RunError("is missing", file=folder / file) from None
        except RunError as error:
            raise RunError(str(error), file=folder / file) from None
    source, target = sides
    for vocabulary in sides:
        for key, found in (("pad_token_id", vocabulary.pad), ("eos_token_id", vocabulary.end)):
            if config.get(key, found) != found:
                raise RunError(f"config.json says {key} = {config[key]}, and the vocabulary {found}", file=folder)
    return Codec(source, target, config.get("decoder_start_token_id", target.pad))


def _read_decoding(
    folder: Path, config: Mapping[str, Any], words: int, codec: Codec
) -> tuple[dict[str, Any], list[str]]:
    """How the maker decodes, as we say it, and what we cannot say."""
    generation = read_json(folder / "generation_config.json") if (folder / "generation_config.json").is_file() else {}
    told = {**config, **generation}
    notes = []
    # Ids that the model knows and the vocabulary does not are rows that only fill up the table.
    never = {codec.pad, codec.start, *range(codec.target.size, words)} - {codec.end}
    for ids in told.get("bad_words_ids") or []:
        if len(ids) == 1:
            never.add(ids[0])
        else:
            notes.append(f"not done here: its maker forbids the words {ids} in a row")
    unknown = {"no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "min_length": 0, "forced_bos_token_id": None}
    for key, neutral in unknown.items():
        if told.get(key, neutral) not in (neutral, None):
            notes.append(f"not done here: its maker decodes with {key} {told[key]}")
    decoding = {
        "search": {
            "beam": told.get("num_beams") or 1,
            "length_penalty": float(told.get("length_penalty", 1.0)),
            "length_penalty_rule": "hf",
        },
        "longest": told.get("max_length") or config.get("max_position_embeddings") or 512,
        "never": sorted(never),
    }
    return decoding, notes
