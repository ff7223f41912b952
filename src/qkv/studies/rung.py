"""One rung of the ladder: train, then measure everything that the study shows of it."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.data.codec import Codec
from qkv.data.prepare import prepare_pairs
from qkv.look.saliency import gradient_lengths
from qkv.studies.apart import Stopped, peak_memory
from qkv.tasks.evaluate import alignment_error
from qkv.tasks.scores import text_scores
from qkv.tasks.translate import Translate
from qkv.tasks.translator import Translator, default_reader
from qkv.train.folder import read_scores
from qkv.train.loop import train
from qkv.train.run import Run

__all__ = ["by_length", "climb", "gradient_by_step"]

LENGTHS = (1, 6, 11, 16, 21, 26, 31, 41, 61)  # words of the source at which a class begins
FEWEST = 10  # test sentences of a class that is worth a score
SHOWN = 5  # sentences whose pictures stand side by side
LONGEST = 100  # dev pairs, the longest ones, whose gradients are followed


def climb(run: Run, study: Path, tests: list[tuple[str, str]], gold: Path | None, beam: int) -> dict[str, Any]:
    """What came of training ``run``: scores, curves, and pictures of what it looked at."""
    prepared = prepare_pairs(run.data, study, run.seed, Codec.load(study / "codec"))
    if train(run, prepared).interrupted:
        raise Stopped
    memory = peak_memory()
    anywhere = "cuda" if torch.cuda.is_available() else "cpu"
    translator = Translator.load(run.out, anywhere if run.spread.device == "auto" else run.spread.device)
    translator.search = replace(translator.search, beam=beam)
    answers = list(translator.translate(source for source, _ in tests))
    outputs, references = [answer.text for answer in answers], [target for _, target in tests]
    scores, signatures = text_scores(outputs, references)
    lines = [line for line in read_scores(run.out) if "seconds" in line]
    evaluations = [line for line in lines if "dev" in line]
    told = {
        "parameters": sum(parameter.numel() for parameter in translator.model.parameters()),
        "dim": translator.model.config.dim,
        "minutes": max(line["seconds"] for line in lines) / 60,
        "steps": max(line["step"] for line in lines),
        "tokens_per_second": statistics.median([v for x in lines if (v := x.get("tokens_per_second"))] or [0.0]),
        "memory_mb": memory,
        **scores,
        "exact": sum(a == b for a, b in zip(outputs, references, strict=True)) / len(tests),
    }
    if gold and default_reader(translator.model):
        told["aer"] = alignment_error(translator, tests, gold)
    score = next(iter(scores))
    told |= {
        "score": score,
        "signatures": signatures,
        "by_length": by_length(tests, outputs),
        "curve": [
            {"minutes": x["seconds"] / 60, "step": x["step"], "score": x["dev"][score]}
            for x in evaluations
            if score in x["dev"]
        ],
        "gradient": gradient_by_step(translator, list(prepared.dev_texts.values())).tolist(),
        "sentences": _pictures(translator, tests, run.out),
    }
    return told


def by_length(pairs: Sequence[tuple[str, str]], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """Scores of the test sentences of each class of source length in words, the shortest first."""
    groups = []
    for least, beyond in zip(LENGTHS, (*LENGTHS[1:], 10**9), strict=True):
        inside = [i for i, (source, _) in enumerate(pairs) if least <= len(source.split()) < beyond]
        if len(inside) >= FEWEST:
            scores, _ = text_scores([outputs[i] for i in inside], [pairs[i][1] for i in inside])
            name = f"{least}-{beyond - 1}" if beyond < 10**9 else f"{least}+"
            groups.append({"name": name, "sentences": len(inside), "scores": scores})
    return groups


def gradient_by_step(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Float[Tensor, "step"]:
    """Length of the loss's gradient at each vector that the encoder reads, by its distance from the last one read.

    The mean over the longest pairs, as far back as half of them reach; the loss is the mean over a pair's targets.
    """
    longest = sorted(pairs, key=lambda pair: -len(pair[0].split()))[:LONGEST]
    model, task = translator.model, Translate(smoothing=0.0)
    backward = getattr(model.config, "reverse", False)
    norms: list[Float[Tensor, "step"]] = []
    for source, target in longest:
        batch = translator.batch([source], [translator.codec.encode_target([target])[0][1:]])
        steps = gradient_lengths(model.source, lambda: task.loss(model, batch).total / batch.targets)[0]  # noqa: B023
        norms.append(steps if backward else steps.flip(0))
    reach = int(statistics.median(len(steps) for steps in norms))
    deep = [steps[:reach] for steps in norms if len(steps) >= reach]
    return torch.stack(deep).mean(0)


def _pictures(translator: Translator, tests: Sequence[tuple[str, str]], folder: Path) -> list[dict[str, str]]:
    """What it said of a few test sentences, short to long, and the records of what it looked at meanwhile."""
    ranked = sorted(range(len(tests)), key=lambda i: (len(tests[i][0].split()), i))
    places = [ranked[(2 * k + 1) * len(tests) // (2 * SHOWN)] for k in range(SHOWN)]
    shown = []
    for number, place in enumerate(places):
        source, reference = tests[place]
        answer = translator(source)
        record = {"source": source, "reference": reference, "translation": answer.text}
        if answer.ids:
            file = folder / f"look-{number}.safetensors"
            reader = translator.reader or default_reader(translator.model)
            translator.look_at(answer, layers=reader.layer if reader else "*").save(file)
            record["look"] = str(file.relative_to(folder.parent.parent))
        shown.append(record)
    return shown
