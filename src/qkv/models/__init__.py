"""The models: a name each, and where its class is. Nothing is imported until it is asked for."""

import importlib
import importlib.util
from pathlib import Path

from qkv.errors import ConfigError, nearest

__all__ = ["MODELS", "find"]

MODELS = {
    "transformer": "qkv.models.transformer:Transformer",
    "seq2seq": "qkv.models.seq2seq:Seq2Seq",
    "vit": "qkv.models.vit:ViT",
    "swin": "qkv.models.swin:Swin",
    "mixer": "qkv.models.mixer:Mixer",
    "resnet": "qkv.models.resnet:ResNet",
    "resnet-attention": "qkv.models.resnet_attention:AttentionResNet",
    "local-attention": "qkv.models.local_attention:LocalAttentionNet",
    "bert": "qkv.models.bert:Bert",
    "rnn": "qkv.models.rnn:Rnn",
    "video": "qkv.models.video:Video",
    "skipgram": "qkv.models.word2vec:SkipGram",
    "cbow": "qkv.models.word2vec:CBOW",
    "glove": "qkv.models.glove:GloVe",
    "word-table": "qkv.models.word_table:WordTable",
    "efficientnet": "qkv.models.efficientnet:EfficientNet",
    "captioner": "qkv.models.captioner:Captioner",
    "caption-transformer": "qkv.models.caption_transformer:CaptionTransformer",
    "bert-transformer": "qkv.models.bert_transformer:BertTransformer",
}


def find(name: str) -> type:
    """The class of a model: a name in `MODELS`, or ``own.py:Mine`` for a class in a file of the user's own.

    A model class has ``Config`` (a frozen dataclass), ``SIZES`` (name -> some of its fields) and ``__init__(config)``.

    Raises:
        ConfigError: there is no such model, file or class.
    """
    if ".py:" in name:
        return _own(name)
    if name not in MODELS:
        raise ConfigError(f"no model is called {name!r}", remedy=nearest(name, MODELS) + ", or own.py:Class")
    module, cls = MODELS[name].split(":")
    return getattr(importlib.import_module(module), cls)


def _own(name: str) -> type:
    file, _, cls = name.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise ConfigError(f"model {name!r}: there is no file {file}", expected="own.py:Class")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, cls):
        raise ConfigError(f"model {name!r}: {file} has no class {cls}", remedy=nearest(cls, vars(module)))
    found = getattr(module, cls)
    if not hasattr(found, "Config"):
        raise ConfigError(
            f"model {name!r}: the class has no Config", expected="a frozen dataclass as its attribute Config"
        )
    return found
