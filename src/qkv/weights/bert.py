"""Published encoders of texts as runs of ours, and back: BERT, DistilBERT, and sentence encoders made of them.

A published folder holds ``config.json``, weights, and ``vocab.txt`` or ``tokenizer.json`` (WordPiece). A folder of
sentence-transformers also says in ``modules.json`` and the files that it names how a text's one vector is made.
Nothing that is read here can run code.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from qkv.data.labels import LabelCodec
from qkv.data.spans import find_scheme
from qkv.data.tags_codec import TagCodec
from qkv.data.targets import Targets
from qkv.data.text_codec import TextCodec
from qkv.data.wordpieces import FILES as VOCABULARY
from qkv.data.wordpieces import WordPieces
from qkv.errors import RunError
from qkv.models.bert import BertConfig
from qkv.models.bert_names import bert, bert_config, bert_config_of, modern
from qkv.models.saved import build, fill, load_model, save_model
from qkv.store import new_file, read_json, write_json, write_tensors
from qkv.tasks.settings import read_settings, write_settings
from qkv.weights.files import find_published, read_weights

__all__ = ["export_bert", "import_bert"]

FILES = (
    "config.json", *VOCABULARY, "model.safetensors", "pytorch_model.bin", "modules.json", "sentence_bert_config.json",
    "*/config.json",
)  # fmt: skip


def import_bert(name: str, out: str | Path) -> list[str]:
    """Make a run of ours in ``out`` of a published encoder of texts.

    Args:
        name: its folder, or its name on the Hugging Face hub (``klue/bert-base``).

    Returns:
        Lines that tell the user what the run is.

    Raises:
        RunError: there is no such model, a file is missing or broken, or the model does something that ours does not.
    """
    folder, out = find_published(name, FILES), Path(out)
    config, weights = read_json(folder / "config.json"), modern(read_weights(folder))
    try:
        ours = bert_config(config, weights)
        if ours.head in ("class", "tag"):
            ours = replace(ours, outputs=len(weights["classifier.bias"]))
    except RunError as error:
        raise RunError(str(error), file=folder / "config.json") from None
    if ours.head == "none":  # some files of a bare encoder have its prefix all the same
        weights = {re.sub(r"^(distil)?bert\.", "", name): tensor for name, tensor in weights.items()}
    vocabulary = WordPieces.read(folder)
    if vocabulary.size > ours.words:
        raise RunError(f"the vocabulary numbers {vocabulary.size} pieces, the model {ours.words}", file=folder)
    how, notes = _sentence_vectors(folder, ours)
    model = build("bert", ours)
    tensors = bert(config["model_type"], ours).load({key: tensor.float() for key, tensor in weights.items()})
    fill(model, tensors, folder)
    codec, settings = _codec(TextCodec(vocabulary), ours, config, how)
    save_model(model, out)
    codec.save(out / "codec")
    write_settings(out, **settings)
    count = sum(weight.numel() for weight in model.parameters())
    what = {"pretrain": "words", "class": "one answer a text", "tag": "one answer a token", "none": "none"}[ours.head]
    told = f"{name}: {config['model_type']} of {count / 1e6:.1f} million weights, {ours.words} words, head: {what}"
    return [told, *notes]


def export_bert(run: str | Path, out: str | Path) -> None:
    """Write a run as a folder that ``transformers`` loads as the model it was, or the like.

    Raises:
        RunError: the run's vocabulary is not a published WordPiece, or its model none that others have.
    """
    run, out = Path(run), Path(out)
    model, settings = load_model(run), read_settings(run)
    codec = _read_codec(run)
    text = codec if isinstance(codec, TextCodec) else codec.text
    if not isinstance(text.vocabulary, WordPieces):
        raise RunError(
            f"a BERT folder needs a WordPiece vocabulary as others have it, and this run's is of the kind "
            f"{text.vocabulary.kind!r}: its weights could be written, but transformers could not make ids of text",
            file=run,
            remedy="export a run that was imported, or trained from one; or share the run's own folder",
        )
    kind, config = bert_config_of(model.config)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "config.json", {**config, "pad_token_id": text.pad, **_labels(codec)})
    for name, content in text.vocabulary.files.items():
        with new_file(out / name) as partial:
            partial.write_bytes(content)
    write_tensors(out / "model.safetensors", bert(kind, model.config).save(model.state_dict()), {"format": "pt"})
    if settings.get("sentences"):
        _write_sentence_vectors(out, settings, model)


def _codec(text: TextCodec, config: BertConfig, theirs: Mapping[str, Any], how: dict[str, Any]):
    """The run's codec, and how it answers."""
    names = theirs.get("id2label") or {}
    labels = tuple(names.get(str(i), f"LABEL_{i}") for i in range(config.outputs))
    match config.head:
        case "tag":
            return TagCodec(text, labels, find_scheme(labels), False, config.longest), {"task": "tag"}
        case "class" if theirs.get("problem_type") == "regression" or config.outputs == 1:
            return LabelCodec(text, Targets((), "number"), config.longest), {"task": "regress", "kind": "texts"}
        case "class":
            several = "several" if theirs.get("problem_type") == "multi_label_classification" else "class"
            return LabelCodec(text, Targets(labels, several), config.longest), {"task": "classify", "kind": "texts"}
    return text, {"task": "pretrain", **how}


def _read_codec(run: Path) -> TextCodec | LabelCodec | TagCodec:
    what = read_settings(run).get("task")
    return {"tag": TagCodec, "classify": LabelCodec, "regress": LabelCodec}.get(what, TextCodec).load(run / "codec")


def _labels(codec: TextCodec | LabelCodec | TagCodec) -> dict[str, Any]:
    """What a config says of the outputs."""
    if isinstance(codec, TextCodec):
        return {}
    if isinstance(codec, LabelCodec) and codec.targets.labels == "number":
        return {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, "problem_type": "regression"}
    names = codec.tags if isinstance(codec, TagCodec) else codec.targets.classes
    told = {"id2label": {str(i): name for i, name in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}
    several = isinstance(codec, LabelCodec) and codec.targets.labels == "several"
    return told | ({"problem_type": "multi_label_classification"} if several else {})


def _sentence_vectors(folder: Path, config: BertConfig) -> tuple[dict[str, Any], list[str]]:
    """How a text's one vector is made, where the folder says so, and a line about it.

    Raises:
        RunError: a module, or a way of pooling, that ours has not.
    """
    if not (folder / "modules.json").is_file():
        return {}, []
    pool, normalise = "", False
    for module in read_json(folder / "modules.json"):
        name, where = module["type"].rsplit(".", 1)[-1], folder / module["path"]
        match name:
            case "Transformer":
                pass
            case "Pooling":
                said = read_json(where / "config.json")
                modes = [key for key, value in said.items() if key.startswith("pooling_mode") and value is True]
                known = {
                    "pooling_mode_cls_token": "cls",
                    "pooling_mode_mean_tokens": "mean",
                    "pooling_mode_max_tokens": "max",
                }
                modes += [said["pooling_mode"]] if isinstance(said.get("pooling_mode"), str) else []
                if len(modes) != 1 or (pool := known.get(modes[0], modes[0])) not in known.values():
                    raise RunError(f"pools by {', '.join(modes) or 'nothing'}", expected="cls, mean or max", file=where)
            case "Normalize":
                normalise = True
            case _:
                raise RunError(f"has a module {name}", expected="Transformer, Pooling, Normalize", file=folder)
    how: dict[str, Any] = {"pool": pool or "mean", "normalise": normalise, "sentences": True}
    if (folder / "sentence_bert_config.json").is_file():
        how["longest"] = read_json(folder / "sentence_bert_config.json").get("max_seq_length") or config.longest
    longest = f", of {how['longest']} tokens at most" if "longest" in how else ""
    return how, [f"a text's vector is its {how['pool']}{', normalised' if normalise else ''}{longest}"]


def _write_sentence_vectors(out: Path, settings: Mapping[str, Any], model: nn.Module) -> None:
    types = "sentence_transformers.models"
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")] + (
        [("2_Normalize", "Normalize")] if settings["normalise"] else []
    )
    write_json(out / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"{types}.{name}"} for i, (path, name) in enumerate(modules)
    ])  # fmt: skip
    names = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    modes = {f"pooling_mode_{name}": pool == settings["pool"] for pool, name in names.items()}
    for path, _ in modules[1:]:
        (out / path).mkdir(exist_ok=True)
    write_json(out / "1_Pooling" / "config.json", {"word_embedding_dimension": model.config.dim, **modes})
    if "longest" in settings:
        write_json(out / "sentence_bert_config.json", {"max_seq_length": settings["longest"], "do_lower_case": False})
