"""What the tasks on texts share: the models that can learn them, and how these start."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from qkv.data.text_codec import TextCodec
from qkv.errors import ConfigError
from qkv.models.saved import fill_but_head
from qkv.store import read_tensors
from qkv.tasks.warmup import warmup
from qkv.tasks.word_start import refuse_other_runs, start_from_vectors

__all__ = ["Reads"]

FINE_RATES = ((256, 5e-4), (512, 1e-4), (1 << 30, 3e-5))  # up to which width, which rate of a trained model


class Reads:
    """A task whose model reads a text and gives an answer for all of it, or for each of its tokens.

    Args:
        embeddings: a file of word vectors that a new model starts from; vocabulary "word" has most of them.
    """

    models = ("bert", "rnn")
    from_codec = ("words", "head", "outputs")
    head = "class"
    kept = ("dim", "depth", "heads", "hidden", "longest", "segments", "cell", "both_ways")
    """Of the size, what another run's weights are made for."""
    names_of: Callable[[Path], tuple[str, ...] | None]
    """Names of what the model of a codec's folder says; None if that is of another task. Each task's own method."""
    short: Mapping[str, str] = {"embeddings": "learn.embeddings"}

    def __init__(self, embeddings: str = ""):
        refuse_other_runs(embeddings)
        self.embeddings = embeddings
        self.names: tuple[str, ...] = ()  # of the outputs, once the config is made

    def codec_from(self, folder: Path) -> TextCodec:
        """The vocabulary of another run; classes are those of the new data."""
        return TextCodec.load(folder)

    def config(self, codec: Any, size: Any) -> Any:
        """The model's config with what only the codec knows filled in."""
        longest = getattr(size, "longest", codec.longest)
        if longest < codec.longest:
            raise ConfigError(
                f"data.max_length is {codec.longest}, and the model reads {longest} tokens",
                remedy=f"say --data.max_length {longest}",
            )
        self.names = self.outputs(codec)
        return replace(size, words=codec.text.size, head=self.head, outputs=max(1, len(self.names)))

    def outputs(self, codec: Any) -> tuple[str, ...]:
        """Names of what the model says."""
        return codec.targets.classes

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """All weights but those of the head are the other run's; the head too, if it says the same things."""
        file = init / "model.safetensors"
        tensors, _ = read_tensors(file)
        if self.names_of(init / "codec") != self.names:
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("head.")}
        new = fill_but_head(model, tensors, file)
        told = f"weights and vocabulary are those of {init}"
        return [told + (f"; new, and to be learned: {', '.join(new)}" if new else "")]

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """Rates that suit a new model or a trained one, and no more tokens than it reads; an epoch is short here, so
        scores come often. A short run warms up shortly.

        The larger a trained model, the smaller its steps: Turc et al. 2019 (section 4.2) take 3e-4 to 3e-5 for all
        widths from 128, over few classes; docs/texts.md has what a small one makes of 77 at 1e-4.
        """
        if run.init:
            rate, epochs = next(rate for width, rate in FINE_RATES if getattr(run.size, "dim", 0) <= width), 5
        else:
            rate, epochs = (2e-3 if run.model == "rnn" else 5e-4), 15
        longest = getattr(run.size, "longest", run.data.max_length)
        return {
            "data": {"max_length": min(longest, run.data.max_length)},
            "optimize": {"lr": rate, "warmup": warmup(run.loop.steps), "schedule": "cosine", "betas": [0.9, 0.999]},
            "loop": {"epochs": epochs, "evaluate_every": 200, "patience": 10},
        }

    def fill(self, model: nn.Module, codec: Any) -> list[str]:
        """Start the token vectors of a new model from word vectors, if any are named."""
        return start_from_vectors(model.tokens.words, codec.text.vocabulary, self.embeddings)
