"""Learning a language from running text: words that are hidden, and whether a second text follows a first."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from qkv.data.corpus import CorpusFiles
from qkv.data.corpus_prepare import prepare_corpus
from qkv.data.pretraining import MaskedBatch
from qkv.data.text_codec import TextCodec
from qkv.errors import ConfigError
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.models.saved import fill_but_head, load_model
from qkv.tasks.settings import write_settings
from qkv.tasks.task import Loss, Prepared, Scores
from qkv.tasks.word_start import refuse_other_runs, start_from_vectors

__all__ = ["Pretrain"]

SAMPLES, SHOWN = 3, 24  # dev inputs that are shown, and tokens of each
RATES = ((256, 1e-3), (512, 5e-4), (1 << 30, 2e-4))  # up to which width, which rate: smaller models bear larger steps


class Pretrain:
    """Train BERT's encoder on running text (Devlin et al. 2019, section 3.1).

    Args:
        words: weight of the loss of hidden words, a mean over them.
        next: weight of the loss of telling whether the second text follows the first, a mean over inputs. 0 leaves it
            out, and inputs are then full packed sentences and no pairs (RoBERTa's way, Liu et al. 2019, section 4.2).
        embeddings: a file of word vectors, or a run that has them, that a new model starts from.
    """

    name = "pretrain"
    Data = CorpusFiles
    models = ("bert",)
    from_codec = ("words", "head", "outputs", "next")
    unit = "words"
    best = "loss"
    higher_is_better: Mapping[str, bool] = {
        "loss": False,
        "perplexity": False,
        "accuracy": True,
        "next_accuracy": True,
    }

    short: Mapping[str, str] = {"embeddings": "learn.embeddings"}

    def __init__(self, words: float = 1.0, next: float = 1.0, embeddings: str = ""):
        for key, value in (("words", words), ("next", next)):
            if not 0 <= value < math.inf:
                raise ConfigError(f"learn.{key} is {value}", expected="0 or more")
        if not words and not next:
            raise ConfigError("learn.words and learn.next are both 0", expected="something to learn")
        refuse_other_runs(embeddings)
        self.words, self.next, self.embeddings = words, next, embeddings
        self.longest = 0  # of the data, once they are prepared

    def prepare(self, data: CorpusFiles, folder: Path, seed: int, codec: TextCodec | None = None) -> Prepared:
        """Read and encode the user's text; see `qkv.data.corpus`."""
        self.longest = data.longest
        prepared = prepare_corpus(data, folder, seed, bool(self.next), codec)
        write_settings(folder, task=self.name)
        return prepared

    def fill(self, model: nn.Module, codec: TextCodec) -> list[str]:
        """Start the token vectors of a new model from word vectors, if any are named."""
        return start_from_vectors(model.tokens.words, codec.vocabulary, self.embeddings)

    def load_codec(self, folder: Path) -> TextCodec:
        """The codec of a run that is gone on with, or started from."""
        return TextCodec.load(folder)

    def config(self, codec: TextCodec, size: Any) -> Any:
        """The model's config with the codec's vocabulary and the heads of the losses."""
        if size.longest < self.longest:
            raise ConfigError(
                f"data.longest is {self.longest}, and the model reads {size.longest} tokens",
                remedy=f"set --size.longest {self.longest}",
            )
        return replace(size, words=codec.size, head="pretrain", next=bool(self.next))

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """The weights of another run; of one that was trained for something else, all but its head."""
        new = fill_but_head(model, load_model(init).state_dict(), init / "model.safetensors")
        told = f"weights and codec are those of {init}: what --data says of a codec does not matter"
        return [told, *([f"new, to be learned: {', '.join(new)}"] if new else [])]

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """A rate that suits the width, and Adam's numbers of the paper."""
        width = getattr(run.size, "dim", 1 << 30)
        return {"optimize": {"lr": next(r for w, r in RATES if width <= w), "betas": [0.9, 0.999], "eps": 1e-6}}

    def loss(self, model: nn.Module, batch: MaskedBatch, step: int = 0) -> Loss:
        """Cross entropy of hidden words, summed over them, and of what follows, as heavy as a mean over inputs is.

        Only the states of hidden words go through the output layer.
        """
        states = model(batch.tokens, batch.lengths, batch.segments)
        head = model.head["words"]
        told = head.transform(states.flatten(0, 1)[batch.places])
        words, _, correct = linear_cross_entropy(told, head.output.weight, head.output.bias, batch.words)
        total, parts = self.words * words, {"nll": words.detach(), "accuracy": correct}
        if self.next:
            logits = model.follows(states, batch.lengths).float()
            share = batch.targets / len(batch.second)
            follows = functional.cross_entropy(logits, batch.second, reduction="sum") * share
            total = total + self.next * follows
            right = (logits.argmax(-1) == batch.second).sum()
            parts |= {"next_nll": follows.detach(), "next_accuracy": right * share}
        return Loss(total, parts)

    def score(self, model: nn.Module, prepared: Prepared) -> Scores:
        """Loss, accuracy and perplexity of hidden words of dev, and how often it is right about what follows."""
        device = next(model.parameters()).device
        totals = dict.fromkeys(("nll", "accuracy", "next_accuracy"), 0.0)
        targets = inputs = 0
        with torch.inference_mode():
            for batch in prepared.dev:
                parts = self.loss(model, batch.to(device)).parts
                for name in ("nll", "accuracy"):
                    totals[name] += float(parts[name])
                if self.next:
                    totals["next_accuracy"] += float(parts["next_accuracy"]) * batch.size / batch.targets
                targets += batch.targets
                inputs += batch.size
        loss = totals["nll"] / targets
        values = {"loss": loss, "perplexity": math.exp(min(loss, 700)), "accuracy": totals["accuracy"] / targets}
        if self.next:
            values["next_accuracy"] = totals["next_accuracy"] / inputs
        return Scores(values, self._samples(model, prepared, device))

    def _samples(self, model: nn.Module, prepared: Prepared, device: torch.device) -> list[str]:
        """The beginnings of some dev inputs, with what is said and what was there: ``{said|there}``."""
        batch, codec = prepared.dev[len(prepared.dev) // 2].to(device), prepared.codec
        with torch.inference_mode():
            states = model(batch.tokens, batch.lengths, batch.segments)
            said = model.words(states.flatten(0, 1)[batch.places]).argmax(-1).tolist()
        guesses = dict(zip(batch.places.tolist(), zip(said, batch.words.tolist(), strict=True), strict=True))
        width, samples = batch.tokens.shape[1], []
        for row in range(min(SAMPLES, batch.size)):
            ids = batch.tokens[row, : min(SHOWN, int(batch.lengths[row]))].tolist()
            shown = codec.shown(ids)
            for place in range(len(ids)):
                if (guess := guesses.get(row * width + place)) is not None:
                    shown[place] = "{" + "|".join(codec.shown(guess)) + "}"
            samples.append(" ".join(shown))
        return samples

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv fill {folder} 'a sentence with a [MASK] in it'",
            f"qkv embed {folder} < lines.txt > vectors.npy",
            f"qkv train classify --data labelled.tsv --model {folder} --out runs/classes",
        ]
