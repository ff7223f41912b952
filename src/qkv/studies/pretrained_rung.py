"""One start of the study of pretraining: pretrain, or do not, then learn to classify, and see how it does on test."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.corpus_prepare import prepare_corpus
from qkv.data.text_codec import TextCodec
from qkv.data.texts_doctor import examine_all
from qkv.data.texts_prepare import prepare_texts
from qkv.studies.apart import Stopped
from qkv.tasks.class_scores import class_scores
from qkv.tasks.text_classifier import TextClassifier
from qkv.train.folder import read_scores
from qkv.train.loop import train
from qkv.train.options import from_flags
from qkv.train.run import Run

__all__ = ["fine_tuning", "learn", "text_folder"]

FILLED = ("words", "head", "outputs", "next")  # of a BERT's config, which the codec and the task say


def text_folder(study: Path, pairs: bool) -> Path:
    """Where a study keeps the text that it pretrains on, as pairs or packed."""
    return study / "text" / ("pairs" if pairs else "packed")


def fine_tuning(run: Run, flags: Sequence[str], start: Path | None, out: Path | None = None) -> Run:
    """The run that learns to classify after ``run``: from a pretrained run, or as large as it and new.

    Each has the recipe of its kind: a new model takes larger steps, and more of them.
    """
    sizes = [f"--size.{key}={str(value).lower()}" for key, value in asdict(run.size).items() if key not in FILLED]
    begin = ["bert", *sizes] if start is None else [str(start)]
    end = [f"--seed={run.seed}", "--out", str(out or run.out)]
    own = from_flags(["classify", "--kind", "texts", "--model", *begin, *flags, *end])
    return replace(own, spread=run.spread)


def learn(run: Run, name: str, next: float | None, flags: Sequence[str]) -> dict[str, Any]:
    """What came of one start with the seed of ``run``, whose ``out`` is the study's folder.

    Args:
        name: of the start.
        next: weight of next sentences in pretraining; None is no pretraining.
        flags: of `qkv train classify`.
    """
    codec, where = TextCodec.load(run.out / "codec"), run.out / "runs" / f"{name}-{run.seed}"
    told, start = {}, None
    if next is not None:
        pretraining = replace(run, learn={**run.learn, "next": next}, out=where / "pretrained")
        prepared = prepare_corpus(run.data, text_folder(run.out, bool(next)), run.seed, bool(next), codec)
        result = train(pretraining, prepared)
        if result.interrupted:
            raise Stopped
        start = result.folder
        told = {f"pretrained_{key}": value for key, value in {**_spent(start), **result.scores}.items()}
        told["pretrained_curve"] = _curve(start)
    own = fine_tuning(run, flags, start, where / "classes")
    result = train(own, None if start else prepare_texts(own.data, own.out, own.seed, codec))
    if result.interrupted:
        raise Stopped
    classifier = TextClassifier.load(own.out, None if run.spread.device == "auto" else run.spread.device)
    tests = examine_all(own.data)[1]["test"]
    said = np.array([answer.probabilities for answer in classifier.answers_to([one.texts for one in tests])])
    true = np.array([classifier.classes.index(one.label) for one in tests])
    return {
        **told, **_spent(own.out), **class_scores(said, true), "test_texts": len(tests), "curve": _curve(own.out),
        "parameters": sum(parameter.numel() for parameter in classifier.model.parameters()),
        "majority": float(np.bincount(true).max() / len(true)),
    }  # fmt: skip


def _spent(folder: Path) -> dict[str, float]:
    lines = [line for line in read_scores(folder) if "seconds" in line]
    return {"minutes": max(line["seconds"] for line in lines) / 60, "steps": max(line["step"] for line in lines)}


def _curve(folder: Path) -> list[dict[str, float]]:
    """Accuracy on dev at each evaluation."""
    lines = [line for line in read_scores(folder) if "dev" in line]
    return [{"step": line["step"], "accuracy": line["dev"]["accuracy"]} for line in lines]
