"""Learning to translate: teacher forcing on sentence pairs, scored by greedy translation of held-out ones."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.data.buckets import Batch
from qkv.data.codec import Codec
from qkv.data.pairs import PairFiles
from qkv.data.prepare import prepare_pairs
from qkv.errors import ConfigError
from qkv.layers.attention import Attention
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.layers.listen import Listener, listen
from qkv.look.alignment import choose_reader
from qkv.tasks.encoder_start import check_fits, encoder_recipe, encoder_side, start_from_encoder
from qkv.tasks.forcing import chance_of_truth, partly_own
from qkv.tasks.scores import text_scores
from qkv.tasks.settings import read_settings, write_settings
from qkv.tasks.task import Loss, Prepared, Scores
from qkv.tasks.translator import Translator, default_reader
from qkv.tasks.word_start import refuse_other_runs, start_from_vectors

__all__ = ["Translate"]

SCORED = 500  # held-out sentences translated at each evaluation: enough to rank checkpoints, quick enough to do often
SAMPLES = 3
ALIGNED = 300  # held-out pairs on which the layer and heads of alignments are chosen


class Translate:
    """Train a translator on sentence pairs.

    Args:
        smoothing: label smoothing: this share of each target's mass is spread over all words.
        align: weight of a second loss, which teaches one head to keep where each word came from: the first head of the
            first cross-attention looks, when a word is the input, where the last one looked to predict it. Alignments
            are then read there. 0 is none.
        teacher_forcing: chance that a word which the decoder reads in training is the true one; else it is the one that
            the model itself would say there (scheduled sampling, Bengio et al. 2015). 1 is always: teacher forcing.
        forcing_steps: the chance falls from 1 to that in so many steps, linearly; 0 has it there from the first.
        embeddings: a file of word vectors, or a run that has them, that a new model's source words start from.
        encoder: folder of a run of a BERT, pretrained or imported, that a new Transformer reads its source with (Rothe
            et al. 2020): its weights, its vocabulary and its marks. The model is then bert-transformer, and what
            ``data`` says of a vocabulary is for the target.
    """

    name = "translate"
    Data = PairFiles
    models = ("transformer", "seq2seq", "bert-transformer")
    from_codec = ("source_words", "target_words")
    unit = "tokens"
    only: Mapping[str, tuple[str, ...]] = {"align": ("transformer",)}  # it needs two layers that look at the source
    short: Mapping[str, str] = {
        "attention": "size.attention", "feed": "size.feed", "embeddings": "learn.embeddings",
        "encoder": "learn.encoder",
    }  # fmt: skip
    best = "chrf"
    higher_is_better: Mapping[str, bool] = {
        "loss": False,
        "accuracy": True,
        "bleu": True,
        "bleu_char": True,
        "chrf": True,
    }

    def __init__(
        self,
        smoothing: float = 0.1,
        align: float = 0.0,
        teacher_forcing: float = 1.0,
        forcing_steps: int = 0,
        embeddings: str = "",
        encoder: str = "",
    ):
        if embeddings and encoder:
            raise ConfigError(
                "learn.embeddings and learn.encoder both say what the source's tokens start from",
                remedy="leave one out: an encoder brings its own token vectors",
            )
        refuse_other_runs(embeddings)
        self.embeddings, self.encoder = embeddings, encoder
        for key, value, below in (("smoothing", smoothing, 1), ("align", align, math.inf)):
            if not 0 <= value < below:
                raise ConfigError(f"learn.{key} is {value}", expected="0 or more" + ", less than 1" * (below == 1))
        if not 0 <= teacher_forcing <= 1:
            raise ConfigError(f"learn.teacher_forcing is {teacher_forcing}", expected="a chance: from 0 to 1")
        if forcing_steps < 0:
            raise ConfigError(f"learn.forcing_steps is {forcing_steps}", expected="a whole number from 0")
        self.smoothing, self.align = smoothing, align
        self.teacher_forcing, self.forcing_steps = teacher_forcing, forcing_steps
        self.max_length = 0  # of the data, once they are prepared

    def prepare(self, data: PairFiles, folder: Path, seed: int, codec: Codec | None = None) -> Prepared:
        """Read, check and encode the user's pairs; see `qkv.data.pairs`."""
        self.max_length = data.max_length
        source = encoder_side(Path(self.encoder)) if self.encoder and codec is None else None
        return prepare_pairs(data, folder, seed, codec, source)

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """With ``encoder`` the model that reads with it, no more tokens than it reads, and a rate that suits it."""
        return encoder_recipe(run, run.learn.get("encoder", ""))

    def fill(self, model: nn.Module, codec: Codec) -> list[str]:
        """Start the encoder of a new model from a BERT, or its source's token vectors from word vectors, if any is
        named."""
        if self.encoder:
            return start_from_encoder(model.encoder, Path(self.encoder))
        return start_from_vectors(model.source.words, codec.source, self.embeddings)

    def load_codec(self, folder: Path) -> Codec:
        """The codec of a run that is gone on with or fine-tuned."""
        return Codec.load(folder)

    def inherit(self, init: Path, folder: Path) -> None:
        """What a fine-tuned run takes over beside weights and codec: how its first run searches."""
        settings = read_settings(init)
        write_settings(folder, **{key: settings[key] for key in ("search", "longest", "never") if key in settings})

    def config(self, codec: Codec, size: Any) -> Any:
        """The model's config with the codec's vocabulary sizes; tables of separate vocabularies cannot be one."""
        needed = self.max_length + 2  # and the marks around it
        if getattr(size, "positions", "") == "learned" and size.longest < needed:
            raise ConfigError(
                f"size.longest is {size.longest}, and lines may have {self.max_length} tokens and two marks",
                remedy=f"set --size.longest {needed}, or --data.max_length {size.longest - 2}",
            )
        if hasattr(size, "encoder"):
            check_fits(size.bert, codec, needed)
            return replace(size, target_words=codec.target.size)
        words = {"source_words": codec.source.size, "target_words": codec.target.size}
        if size.tie == "all" and not codec.joint:
            size = replace(size, tie="output")
        return replace(size, **words)

    def loss(self, model: nn.Module, batch: Batch, step: int = 0) -> Loss:
        """Cross entropy of each next word given the true ones before it, smoothed, summed over real targets."""
        aligning = self.align > 0 and model.training
        forced = chance_of_truth(self.teacher_forcing, self.forcing_steps, step) if model.training else 1.0
        given = batch.target[:, :-1]
        if forced < 1:
            given = partly_own(model, lambda: model.start(batch.source, batch.source_lengths), given, forced)
        with _looks(model) if aligning else nullcontext() as heard:
            states = model(batch.source, batch.source_lengths, given, batch.target_lengths - 1)
        words = batch.target[:, 1:]
        real = torch.arange(words.shape[1], device=words.device) < (batch.target_lengths - 1)[:, None]
        smoothing = self.smoothing if model.training else 0.0
        total, nll, correct = linear_cross_entropy(
            states[real], model.output.weight, model.output.bias, words[real], smoothing
        )
        parts = {"nll": nll, "accuracy": correct}
        if aligning:
            apart = _disagreement(*(listener.weights for listener in heard), real)
            total = total + self.align * apart
            parts["align"] = apart.detach()
        return Loss(total, parts)

    def score(self, model: nn.Module, prepared: Prepared) -> Scores:
        """Dev loss and accuracy a word, and BLEU and chrF of greedy translations of the first dev sentences."""
        translator = Translator(model, prepared.codec)
        totals, targets = {"loss": 0.0, "accuracy": 0.0}, 0
        with torch.inference_mode():
            for batch in prepared.dev:
                loss = self.loss(model, batch.to(translator.device))
                totals["loss"] += float(loss.parts["nll"])
                totals["accuracy"] += float(loss.parts["accuracy"])
                targets += batch.targets
        pairs = list(prepared.dev_texts.values())[:SCORED]
        outputs = [answer.text for answer in translator.translate(source for source, _ in pairs)]
        scores, signatures = text_scores(outputs, [target for _, target in pairs])
        samples = [
            f"{source}\n  = {target}\n  > {output}"
            for (source, target), output in list(zip(pairs, outputs, strict=True))[:SAMPLES]
        ]
        return Scores({name: total / targets for name, total in totals.items()} | scores, samples, signatures)

    def finish(self, model: nn.Module, prepared: Prepared, folder: Path) -> None:
        """Choose on held-out pairs the layer and heads that alignments will be read from."""
        translator = Translator(model.eval(), prepared.codec)
        if default_reader(model) is None:
            return  # no attention, no alignment
        given = list(translator.score(list(prepared.dev_texts.values())[:ALIGNED]))
        traces = [
            seen.example(i)
            for begin in range(0, len(given), 64)
            for seen in [translator.replay(given[begin : begin + 64], layers=_cross(model))]
            for i in range(len(given[begin : begin + 64]))
        ]
        reading = "shifted" if self.align else None
        write_settings(folder, reader=choose_reader(traces, reading=reading).to_json())

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next."""
        return [
            f"qkv translate {folder} < in.txt > out.txt",
            f"qkv look {folder} 'a sentence' --out look.html",
            f"qkv evaluate {folder} --source test.src --reference test.ref",
        ]


def _cross(model: nn.Module) -> list[str]:
    """Names of the attention layers that look from the target into the source."""
    layers = [(name, m) for name, m in model.named_modules() if isinstance(m, Attention)]
    return [name for name, layer in layers if layer.between[0] != layer.between[1]]


@contextmanager
def _looks(model: nn.Module) -> Iterator[tuple[Listener, Listener]]:
    """Hear the first head of the first cross-attention, and all of the last one."""
    cross = [model.get_submodule(name) for name in _cross(model)]
    if len(cross) < 2:
        raise ConfigError(
            f"learn.align needs two cross-attentions, and this model has {len(cross)}",
            remedy="use a Transformer of two decoder blocks or more, or leave it out",
        )
    with listen(cross[0], slice(1)) as keeps, listen(cross[-1]) as finds:
        yield keeps, finds


def _disagreement(
    keeps: Float[Tensor, "batch one target source"],
    finds: Float[Tensor, "batch head target source"],
    real: Bool[Tensor, "batch target"],
) -> Float[Tensor, ""]:
    """Cross entropy between where a word was found and where it is kept, summed over real words.

    Row t reads word t and predicts word t + 1 (Garg et al. 2019, eq. 3, with the model's own attention for the gold).
    """
    found, kept = finds.mean(1)[:, :-1].detach(), keeps[:, 0, 1:]
    return -(found * kept.clamp_min(1e-9).log()).sum(-1)[real[:, 1:]].sum()
