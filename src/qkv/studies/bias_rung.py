"""One model of the study of inductive biases: train it, and see how it does on test pictures, moved ones too."""

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from qkv.data.pictures import decode
from qkv.layers.attention import KeyValue, attend, attention_weights
from qkv.layers.score import ScaledDot
from qkv.studies.apart import Stopped, peak_memory
from qkv.tasks.picture_classifier import PictureClassifier
from qkv.train.folder import read_scores
from qkv.train.loop import train
from qkv.train.run import Run

__all__ = ["attention_memory", "learn", "moved"]

BATCH = 200
MOVED = 300  # test pictures, drawn from all, that are also tried moved, each four ways


def learn(run: Run, test: Path, shifts: Sequence[int]) -> dict[str, Any]:
    """Train, and tell accuracy on the pictures of a table, also with each moved by so many pixels."""
    if train(run).interrupted:
        raise Stopped
    memory = peak_memory()
    classifier = PictureClassifier.load(run.out, None if run.spread.device == "auto" else run.spread.device)
    pictures, labels = _read(test)
    begun = time.monotonic()
    accuracy = _accuracy(classifier, pictures, labels)
    seconds = time.monotonic() - begun
    lines = [line for line in read_scores(run.out) if "seconds" in line]
    told = {
        "parameters": sum(parameter.numel() for parameter in classifier.model.parameters()),
        "minutes": max(line["seconds"] for line in lines) / 60,
        "steps": max(line["step"] for line in lines),
        "pictures_per_second": len(pictures) / seconds,
        "memory_mb": memory,
        "accuracy": accuracy,
        "test_pictures": len(pictures),
    }
    if shifts:
        some = np.random.default_rng(0).permutation(len(pictures))[:MOVED]  # a table may go class by class
        pictures, labels = [pictures[i] for i in some], [labels[i] for i in some]
        told["shifted"] = {
            str(by): float(
                np.mean([
                    _accuracy(classifier, [moved(picture, *way) for picture in pictures], labels)
                    for way in ((by, 0), (-by, 0), (0, by), (0, -by))
                ])
            )
            for by in shifts
        }  # fmt: skip
    return told


def moved(pixels: UInt8[np.ndarray, "row column 3"], down: int, right: int) -> UInt8[np.ndarray, "row column 3"]:
    """The picture moved; what comes in repeats the border."""
    height, width = pixels.shape[:2]
    rows, columns = (np.arange(side) - by for side, by in ((height, down), (width, right)))
    return pixels[rows.clip(0, height - 1)[:, None], columns.clip(0, width - 1)]


def attention_memory(side: int, materialised: bool) -> dict[str, float]:
    """Megabytes that one head takes to let every pixel of a square picture look at every pixel.

    Args:
        side: of the picture; it has side^2 tokens, and the matrix of weights side^4 numbers.
        materialised: make the matrix, as the textbook does; else the fused kernel, which never holds all of it.
    """
    states = torch.zeros(1, 1, side * side, 16)
    memory, score = KeyValue(states, states), ScaledDot()
    attend(states[:, :, :64], KeyValue(states[:, :, :64], states[:, :, :64]), score)  # whatever the first call takes
    before = peak_memory()
    with torch.inference_mode():
        if materialised:
            attention_weights(score.scores(states, states)) @ states
        else:
            attend(states, memory, score)
    return {"memory_mb": peak_memory() - before}


def _read(table: Path) -> tuple[list[np.ndarray], list[str]]:
    with open(table, encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [decode(table.parent / row["path"]).pixels for row in rows], [row["label"] for row in rows]


def _accuracy(classifier: PictureClassifier, pictures: Sequence[np.ndarray], labels: Sequence[str]) -> float:
    answers = classifier.answers(pictures, batch=BATCH)
    return sum(answer.label == label for answer, label in zip(answers, labels, strict=True)) / len(labels)
