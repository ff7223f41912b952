"""Starting a translator's encoder from a trained BERT: its config, its way of reading, its weights."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import nn

from qkv.data.codec import Codec
from qkv.data.text_codec import TextCodec
from qkv.data.text_side import TextSide
from qkv.errors import ConfigError, RunError
from qkv.models.bert import BertConfig
from qkv.models.saved import fill, read_config
from qkv.store import read_tensors
from qkv.tasks.load import require_run

__all__ = ["check_fits", "encoder_recipe", "encoder_side", "start_from_encoder"]

MODEL = "bert-transformer"
HEADS = ("head.", "pooler.")  # of a BERT, which nothing here reads
MARKS = 2  # [CLS] and [SEP]
WIDE = 512  # numbers of a token's vector; a wider BERT takes smaller steps


def encoder_recipe(run: Any, folder: str) -> Mapping[str, Any]:
    """The model that reads with a run's BERT, no more pieces than that reads, a vocabulary of the target's own, and a
    rate that suits what was trained.

    A run says itself what its encoder is made of: to go on with it, or from it, the BERT's own run is not needed.

    Raises:
        RunError: there is no trained run in ``folder``.
        ConfigError: it is a run of another model, or the run to be trained cannot read with one.
    """
    if folder and run.model not in ("transformer", MODEL):
        raise ConfigError(
            f"learn.encoder is for a Transformer, and the model is {run.model!r}", remedy="leave one of them out"
        )
    if folder and run.init:
        raise ConfigError(
            f"learn.encoder {folder} and init {run.init} both say what the encoder is", remedy="leave one of them out"
        )
    if getattr(run.size, "encoder", ""):
        return _no_more_than(run, run.size.bert)
    if folder:
        config = _config_of(Path(folder), run.out)
        rate = 5e-4 if config.dim <= WIDE else 1e-4
        size = {"encoder": json.dumps(asdict(config))}
        return {"model": MODEL, "size": size, "optimize": {"lr": rate}, **_no_more_than(run, config)}
    if run.model == MODEL:
        raise ConfigError(f"{MODEL!r} reads with a trained BERT, and none is named", remedy="say --encoder RUN")
    return {}


def _no_more_than(run: Any, bert: BertConfig) -> Mapping[str, Any]:
    return {"data": {"max_length": min(run.data.max_length, bert.longest - MARKS), "joint": False}}


def _config_of(folder: Path, out: Path) -> BertConfig:
    begun = out / "run.yaml"
    if not folder.exists() and begun.is_file():
        raise RunError("there is no such folder", file=folder, remedy=f"go on without it: qkv train --config {begun}")
    require_run(folder)
    name, config = read_config(folder)
    if name != "bert":
        raise ConfigError(
            f"learn.encoder {folder} is a run of the model {name!r}",
            expected="a run of bert: of qkv train pretrain, or classify, tag or regress on texts, or an imported one",
        )
    return config


def encoder_side(folder: Path) -> TextSide:
    """How a run's BERT reads a text."""
    return TextSide(TextCodec.load(folder / "codec"))


def check_fits(bert: BertConfig, codec: Codec, needed: int) -> None:
    """ConfigError if a BERT cannot read what a codec makes of lines of at most ``needed`` tokens, marks counted."""
    if not isinstance(codec.source, TextSide) or codec.source.size > bert.words:
        raise ConfigError(
            f"size.encoder is of another BERT than the vocabulary of the source ({codec.source.size} pieces)",
            remedy="leave it out: --encoder RUN says it",
        )
    if needed > bert.longest:
        raise ConfigError(
            f"data.max_length is {needed - MARKS}, and the encoder reads {bert.longest} tokens, two of them marks",
            remedy=f"say --data.max_length {bert.longest - MARKS}",
        )


def start_from_encoder(encoder: nn.Module, folder: Path) -> list[str]:
    """Give an encoder without a head the weights of a run's BERT; lines for the user.

    Raises:
        RunError: it is another BERT.
    """
    file = folder / "model.safetensors"
    tensors, _ = read_tensors(file)
    fill(encoder, {name: tensor for name, tensor in tensors.items() if not name.startswith(HEADS)}, file)
    return [f"the encoder is that of {folder}; decoder and cross-attention are new, to be learned"]
