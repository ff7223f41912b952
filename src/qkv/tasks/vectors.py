"""Learning word vectors: word2vec over windows of a text, GloVe over its counts."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from qkv.data.word_ids import WordIds, read_text
from qkv.data.word_text import WordText, files_of
from qkv.data.word_vectors import vectors_in
from qkv.data.words import Words
from qkv.errors import ConfigError
from qkv.layers.mask import real_places
from qkv.models.saved import read_config
from qkv.models.word2vec import binary_loss, softmax_loss
from qkv.store import read_tensors
from qkv.tasks.settings import write_settings
from qkv.tasks.task import Loss, Scores

__all__ = ["Vectors"]

# Of the published programs; where CBOW's mean has its own gradient, which theirs do not divide, its rate is higher.
RATES = {"skipgram": 0.025, "cbow mean": 0.2, "cbow sum": 0.025, "cbow undivided": 0.05, "glove": 0.05}
FEW = 1_000_000  # words of text: of fewer, most vectors are what chance made of them
EPOCHS = {"skipgram": 5, "cbow": 5, "glove": 25}


@dataclass
class PreparedWords:
    """The text as ids, and its vocabulary."""

    train: Any  # batches, once `begin` makes them for autograd
    text: WordIds
    codec: Words
    report: list[str]
    summary: dict[str, Any]
    dev: tuple = ()


class Vectors:
    """Learn a vector for each word of a text.

    Args:
        engine: compiled, the kernels of `qkv.models`; or torch, the same by autograd: slow, but on any device.
        memory: GB that GloVe's counting may take before it writes to the disk.
    """

    name = "vectors"
    Data = WordText
    models = ("skipgram", "cbow", "glove")
    adopts = ("skipgram", "cbow", "glove", "word-table")  # whose vectors a run can start from, whatever it trains
    from_codec = ("words",)
    unit = "words"
    best = "loss"
    higher_is_better: Mapping[str, bool] = {"loss": False}
    short: Mapping[str, str] = {
        "dim": "size.dim", "window": "size.window", "negatives": "size.negatives", "sample": "size.sample",
        "epochs": "loop.epochs", "lr": "optimize.lr", "threads": "spread.threads", "min_count": "data.min_count",
    }  # fmt: skip

    def __init__(self, engine: Literal["compiled", "torch"] = "compiled", memory: float = 1.0):
        if engine not in ("compiled", "torch"):
            raise ConfigError(f"learn.engine is {engine!r}", expected="compiled or torch")
        if not memory > 0:
            raise ConfigError(f"learn.memory is {memory}", expected="gigabytes, above 0")
        self.engine, self.memory = engine, memory

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """Rates and epochs: see `RATES`."""
        compiled = run.learn.get("engine", "compiled") == "compiled"
        if not compiled or getattr(run.size, "output", "") == "softmax":
            epochs = {"epochs": EPOCHS.get(run.model, 5), "log_every": 10}
            return {"optimize": {"lr": 0.01, "schedule": "constant", "warmup": 0, "weight_decay": 0.0}, "loop": epochs}
        how = f"{run.model} {getattr(run.size, 'combine', '')}".strip()
        return {
            "optimize": {"lr": RATES.get(how, 0.025)},
            "loop": {"epochs": EPOCHS.get(run.model, 5), "log_every": 1},
        }

    def compiled(self, run: Any) -> bool:
        """Whether kernels make the steps; the softmax over all words has none: it is the reference of the others."""
        return self.engine == "compiled" and getattr(run.size, "output", "") != "softmax"

    def prepare(self, data: WordText, folder: Path, seed: int, codec: Words | None = None) -> PreparedWords:
        """Read the text once, choose the words, keep both in ``folder``."""
        files = files_of(data.place) if data.place != "-" else []
        size = sum(file.stat().st_size for file in files)
        first = [f"{size / 1e6:,.1f} MB of files; ids take about as much disk as plain text"] if size else []
        words, text = read_text(data, folder / "text", codec)
        return PreparedWords(None, text, words, [*first, *text.report(), *_warned(text.summary)], text.summary)

    def load_codec(self, folder: Path) -> Words:
        return Words.load(folder)

    def config(self, codec: Words, size: Any) -> Any:
        return replace(size, words=len(codec))

    def begin(self, run: Any, prepared: PreparedWords) -> list[str]:
        """Batches for autograd."""
        from qkv.tasks.word_windows import WordWindows

        if run.model == "glove":
            raise ConfigError(
                "learn.engine torch has windows and no counts", remedy="train glove with the compiled one"
            )
        prepared.train = WordWindows(prepared.text, prepared.codec, run.size, run.seed)
        return [f"{len(prepared.text.ids):,} words an epoch, by autograd"]

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """Vectors of the words that another run knows; the others stay as they begin."""
        known, words = len(Words.load(init / "codec")), model.config.words
        name, config = read_config(init)
        if config.dim != model.config.dim:
            raise ConfigError(
                f"size.dim is {model.config.dim}, and the vectors of --init have {config.dim}",
                remedy="leave --size.dim out: it is taken from --init",
            )
        own = model.state_dict()
        if (name == "glove") == ("input_bias.weight" in own):
            theirs = read_tensors(init / "model.safetensors")[0]
        else:  # of GloVe the sums, which are what its users see
            theirs = {"input.weight": torch.tensor(vectors_in(init))}
        if "hierarchical" in (getattr(model.config, "output", ""), getattr(config, "output", "")):
            theirs.pop("output.weight", None)  # a tree of other counts has other nodes
        with torch.no_grad():
            for key in own.keys() & theirs.keys():
                own[key][:known] = theirs[key]
        new = [key for key in own if key not in theirs]
        lines = [f"vectors of {known:,} words are those of {init}; {words - known:,} words are new"]
        return lines + ([f"new and to be learned: {', '.join(new)}"] if new else [])

    def learner(self, model: nn.Module, prepared: PreparedWords, run: Any, rank: int, ranks: int, tell: Callable):
        """The kernels, on the model's own tables."""
        from qkv.tasks.word_learner import CountLearner, WindowLearner

        threads = run.spread.threads or len(os.sched_getaffinity(0)) // ranks or 1
        given = (model, prepared.codec, prepared.text, run.loop.epochs, run.optimize.lr, run.seed, threads, rank, ranks)
        if run.model == "glove":
            return CountLearner(*given, folder=run.out / "counts", memory=int(self.memory * 1e9), tell=tell)
        return WindowLearner(*given)

    def loss(self, model: nn.Module, batch: Any, step: int = 0) -> Loss:
        """Of every pair of a context and a centre, by whatever the model predicts, summed."""
        logits = model(batch.contexts, batch.lengths, batch.rows)
        heads = real_places(batch.lengths, batch.contexts.shape[1])
        if model.together:
            heads = torch.ones(logits.shape[:2], dtype=torch.bool, device=logits.device)
        if batch.rows is None:
            return Loss(softmax_loss(logits, batch.centres, heads))
        return Loss(binary_loss(logits, batch.labels, heads, batch.real_rows))

    def score(self, model: nn.Module, prepared: PreparedWords) -> Scores:
        return Scores({})

    def finish(self, model: nn.Module, prepared: PreparedWords, folder: Path) -> None:
        write_settings(folder, task="vectors")

    def next_commands(self, folder: Path) -> list[str]:
        word = Words.load(folder / "codec").words[0]
        return [
            f"qkv vectors {folder} nearest {word}",
            f"qkv vectors {folder} evaluate --questions questions-words.txt --pairs wordsim353.tsv",
            f"qkv look {folder} {word} --out look.html",
        ]


def _warned(summary: Mapping[str, Any]) -> list[str]:
    """What to expect of little text."""
    if summary["kept"] >= FEW:
        return []
    return [
        f"WARNING: {summary['kept']:,} words of text are few to learn {summary['words']:,} vectors from. Expect the "
        f"neighbours of frequent words to make sense at best, and analogies not to: that takes {FEW:,} words and more. "
        "More text helps, and so does starting from vectors of a larger one (--init)"
    ]
