"""A small translator, trained for some seconds on built-in phrases: it says words, and is quick enough for tests."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from qkv.data import phrases
from qkv.tasks.load import load
from qkv.train.loop import train
from qkv.train.options import from_mapping


@pytest.fixture(scope="session")
def pairs(tmp_path_factory) -> Path:
    """A folder with train, dev and test files of phrases, small enough to learn from at once."""
    folder = tmp_path_factory.mktemp("pairs")
    phrases.write(phrases.split(), folder)
    for side in ("ko", "en", "align"):
        file = folder / f"train.{side}"
        file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:2000]), encoding="utf-8")
    return folder


MODELS = {
    "transformer": {
        "size": {"dim": 32, "encoder_depth": 2, "decoder_depth": 2, "heads": 2, "hidden": 64, "dropout": 0.0}
    },
    "seq2seq": {"size": {"dim": 32, "depth": 1, "dropout": 0.0, "attention": "additive", "feed": "state"}},
    "fixed vector": {"model": "seq2seq", "size": {"dim": 32, "depth": 1, "dropout": 0.0, "attention": "none"}},
}


@pytest.fixture(scope="session")
def trained(pairs, tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a run of one of `MODELS`, trained when it is first asked for."""

    @cache
    def folder(name: str) -> Path:
        settings = {
            "model": name,
            "data": {"folder": str(pairs), "source": "ko", "target": "en", "batch_tokens": 1024},
            "optimize": {"lr": 5e-3, "warmup": 20},
            "loop": {"steps": 60, "evaluate_every": 60},
            "out": tmp_path_factory.mktemp("runs") / "ko-en",
        }
        return train(from_mapping("translate", {**settings, **MODELS[name]})).folder

    return folder


@pytest.fixture(scope="session")
def run_folder(trained) -> Path:
    return trained("transformer")


@pytest.fixture(params=["transformer", "seq2seq"])
def translator(request, trained):
    """A trained translator of each kind that attends."""
    return load(trained(request.param))


@pytest.fixture
def unattending(trained):
    """A trained translator without attention."""
    return load(trained("fixed vector"))
