"""Captions of emoji drawings, English or Korean, from what EfficientNet-Lite0 sees; beside two baselines.

    python benchmarks/emoji_captions.py DATA --language en           # DATA: a folder with train.jsonl and test.jsonl
    python benchmarks/emoji_captions.py DATA --language ko --size 224 --steps 4000

A line of the tables holds ``images`` (a list of paths) and a short name in each language. Baselines: the caption of the
training picture whose mean features are nearest (cosine), and the most frequent training caption. The captioner is
trained with attention and without (the mean of the cells at every word), on the same features.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import normalize

from qkv.data.caption_files import CaptionFiles
from qkv.data.caption_listing import list_captions
from qkv.data.pictures import decode
from qkv.data.report import Report
from qkv.decode.search import Search
from qkv.tasks.caption import Caption
from qkv.tasks.caption_scores import caption_scores
from qkv.tasks.evaluate_captions import evaluate_captions
from qkv.tasks.load import load
from qkv.train.loop import train
from qkv.train.options import from_mapping
from qkv.weights.efficientnet import import_lite0

SHOWN = ("bleu1", "bleu4", "cider_d", "rouge_l", "chrf")


def settings(data: Path, lite0: Path, out: Path, wanted: argparse.Namespace, attention: str) -> dict:
    return {
        "model": "captioner",
        "size": {"dim": 256, "dropout": 0.4, "attention": attention, "tie": "output"},
        "data": {
            "train": str(data / "train.jsonl"), "path": "images", "caption": wanted.language, "size": wanted.size,
            "words": 2000, "vocabulary": "bpe",
        },
        "learn": {"encoder": str(lite0), "cells": str(wanted.cells), "doubly": 0.0},
        "optimize": {"lr": 1e-3, "warmup": 100, "schedule": "cosine"},
        "loop": {"steps": wanted.steps, "evaluate_every": max(1, wanted.steps // 4), "best": "chrf"},
        "out": out,
    }  # fmt: skip


def nearest(captioner, task: Caption, files: CaptionFiles, run: Path, examples: list) -> list[str]:
    """The caption of the training picture whose mean features are nearest (cosine) to those of each picture."""
    prepared = task.prepare(files, run, 0, captioner.codec)  # what the encoder sees of train is kept there
    images, cells = prepared.train.captions.images, prepared.train.captions.cells
    known = torch.cat([cells[part].mean(1) for part in np.array_split(np.arange(len(images)), 50)])
    seen = []
    for begin in range(0, len(examples), 32):
        shown = [captioner.codec.preprocess.shown(decode(e.key).pixels) for e in examples[begin : begin + 32]]
        seen.append(captioner.see(shown).mean(1))
    nearest = (normalize(torch.cat(seen)) @ normalize(known).T).argmax(1).tolist()
    return [images.examples[images.rows[i]].label[0] for i in nearest]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--language", choices=("en", "ko"), default="en")
    parser.add_argument("--size", type=int, default=128, help="pixels of a picture's side; cells are 32 x 32")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--cells", type=Path, help="keep what the encoder sees here")
    parser.add_argument("--attentions", nargs="+", default=["additive", "none"])
    parser.add_argument("--baselines", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    wanted = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        lite0 = Path(scratch) / "lite0"
        wanted.cells = wanted.cells or Path(scratch) / "cells"
        import_lite0(lite0)
        listed = {
            part: list_captions(
                CaptionFiles(train=str(wanted.data / f"{part}.jsonl"), path="images", caption=wanted.language), Report()
            )["train"]
            for part in ("train", "test")
        }
        references = [example.label for example in listed["test"]]
        for attention in wanted.attentions:
            out, begun = Path(scratch) / attention, time.monotonic()
            train(from_mapping("caption", settings(wanted.data, lite0, out, wanted, attention)))
            seconds = time.monotonic() - begun
            captioner = load(out)
            files = CaptionFiles(test=str(wanted.data / "test.jsonl"), path="images", caption=wanted.language)
            result = evaluate_captions(captioner, files, "test", Search(beam=5, length_penalty=1.0))
            figures[f"attention {attention}"] = result.scores
            print(f"attention {attention}: trained in {seconds:.0f} s, told in {result.seconds:.0f} s", flush=True)
        if wanted.baselines:
            common = Counter(caption for example in listed["train"] for caption in example.label).most_common(1)[0][0]
            figures[f"most frequent ({common!r})"] = caption_scores([common] * len(references), references)[0]
            run = from_mapping("caption", settings(wanted.data, lite0, out, wanted, "additive"))
            said = nearest(captioner, Caption(**run.learn), run.data, out, listed["test"])
            figures["nearest training picture"] = caption_scores(said, references)[0]
    print(f"\n{len(references)} test pictures, {wanted.language}, {wanted.size} pixels, {wanted.steps} steps")
    print(f"{'':40}" + "".join(f"{name:>10}" for name in SHOWN))
    for name, scores in figures.items():
        print(f"{name:40}" + "".join(f"{scores[key]:10.1f}" for key in SHOWN))
    if wanted.out:
        wanted.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
