"""Drawn clips: is the class found, are the frames of the event, and does the class token look there?

    python benchmarks/clips.py --out /tmp/clips [--train 1200] [--steps 400] [--encoder vit]

Clips of 16 frames, of which 1 to 3 hold the event, are drawn and learned three times: from the clips' classes and the
frames' labels, and from the clips' classes alone, read from the class token or as the largest of all frames. Accuracy
and frame F1 are of test clips. The layer and head whose answer puts most weight on event frames is chosen on held-out
clips and measured on test clips, beside what chance would give.
"""

import argparse
import json
import time
from itertools import islice
from pathlib import Path

import torch

from qkv.data.shapes import write_clips
from qkv.look.clips import Film, choose_view, film, share
from qkv.tasks.clip_classifier import ClipClassifier
from qkv.tasks.evaluate_clips import evaluate_clips
from qkv.tasks.load import load
from qkv.train.loop import train
from qkv.train.options import from_mapping

LOOKED_AT = 120  # clips


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train", type=int, default=1200)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=4.0, help="of each training, at most")
    parser.add_argument("--encoder", default="vit")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--only", default="", help="trainings whose name holds this")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    data = asked.out / "data"
    if not data.exists():
        write_clips(data, {"train": asked.train, "val": 180, "test": 300})
    alone = {"frames": 0.0}
    for name, learn, pool in (
        ("clips and frames", {}, "class"),
        ("clips alone", alone, "class"),
        ("clips alone, max", alone, "max"),
    ):
        if asked.only in name:
            print(
                json.dumps({"learned from": name, "encoder": asked.encoder} | measure(asked, data, name, learn, pool))
            )


def measure(asked: argparse.Namespace, data: Path, name: str, learn: dict, pool: str) -> dict:
    begun = time.monotonic()
    settings = {
        "data": {"folder": str(data)},
        "size": {"": "nano", "encoder": asked.encoder, "pool": pool},
        "learn": learn,
        "optimize": {"lr": asked.lr},
        "loop": {"steps": asked.steps, "minutes": asked.minutes, "evaluate_every": 100},
        "spread": {"threads": asked.threads, "device": "cpu"},
        "out": asked.out / name.replace(",", "").replace(" ", "-"),
    }
    classifier = load(train(from_mapping("classify", settings)).folder)
    minutes = (time.monotonic() - begun) / 60
    result = evaluate_clips(classifier, str(data))
    films = {part: looked_at(classifier, data, part) for part in ("val", "test")}
    layer, head = choose_view(*films["val"])
    shares = [share(one.weights(layer, head), on) for one, on in zip(*films["test"], strict=True)]
    last = [share(one.weights(), on)[0] for one, on in zip(*films["test"], strict=True)]
    mean = lambda values: round(sum(values) / len(values), 4)  # noqa: E731
    return {
        "parameters": sum(p.numel() for p in classifier.model.parameters()),
        "minutes": round(minutes, 1),
        "accuracy": result.scores["accuracy"],
        "interval": result.intervals["accuracy"],
        "frame_f1": result.scores.get("frame_f1") if learn == {} else None,
        "layer": layer,
        "head": head,
        "weight on event frames": mean([on for on, _ in shares]),
        "by chance": mean([chance for _, chance in shares]),
        "last layer, mean of heads": mean(last),
    }


def looked_at(classifier: ClipClassifier, data: Path, part: str) -> tuple[list[Film], list[list[bool]]]:
    """Films of some clips, and which of their frames hold the event."""
    with open(data / f"{part}.jsonl", encoding="utf-8") as table:
        rows = [json.loads(line) for line in islice(table, LOOKED_AT)]
    return [film(classifier.look(data / row["path"])) for row in rows], [list(map(bool, row["frames"])) for row in rows]


if __name__ == "__main__":
    main()
