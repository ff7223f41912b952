"""Accuracy of each picture model on scikit-learn's digits (1,797 pictures of 8 x 8 pixels), by k-fold cross-validation.

Trains by the product's own recipe, without flips, since digits have a left and a right; scores each fold by what
``qkv evaluate`` uses. The best weights are chosen on held-out pictures of the training folds, never on the fold scored.

    python benchmarks/digits.py                                  # four models, 5 folds, 100 epochs: hours on one core
    python benchmarks/digits.py --models vit --fold 0 --epochs 40
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

MODELS = ("resnet", "vit", "swin", "mixer")
FOLDS = 5


def write_fold(folder: Path, fold: int, seed: int = 0) -> None:
    """``train`` and ``test`` folders of PNG files; every digit is in the test set of one fold."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold

    digits = load_digits()
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(digits.images, digits.target)
    for part, rows in zip(("train", "test"), list(splits)[fold], strict=True):
        for i in rows:
            file = folder / part / str(digits.target[i]) / f"{i:04}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((digits.images[i] * 255 / 16).round().astype(np.uint8)).save(file)


def measure(model: str, fold: int, epochs: int | None, place: Path) -> dict:
    """Train and score one fold."""
    from qkv.data.image_files import ImageFiles
    from qkv.tasks.evaluate_pictures import evaluate_pictures
    from qkv.tasks.load import load
    from qkv.train.loop import train
    from qkv.train.options import from_mapping

    data, begun = place / f"fold-{fold}", time.monotonic()
    if not data.exists():
        write_fold(data, fold)
    settings = {
        "model": model,
        "data": {"train": str(data / "train"), "augment": {"flip": 0.0}},
        "out": place / f"{model}-{fold}",
        "spread": {"threads": 1},
    }
    if epochs:
        settings["loop"] = {"epochs": epochs}
    run = train(from_mapping("classify", settings))
    if run.interrupted:
        raise SystemExit(f"stopped; with --out {place} the same command goes on")
    result = evaluate_pictures(load(run.folder), ImageFiles(str(data / "test")))
    return {
        "model": model,
        "fold": fold,
        "pictures": result.pictures,
        **{name: round(value, 4) for name, value in result.scores.items()},
        "calibration_error": round(result.calibration_error, 4),
        "minutes": round((time.monotonic() - begun) / 60, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--fold", type=int, help="one of them only, from 0")
    parser.add_argument("--epochs", type=int, help="the recipe's if not given")
    parser.add_argument("--out", type=Path, help="where runs are kept, to go on with them; else they are removed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qkv-digits-") as scratch:
        for model in asked.models:
            folds = range(FOLDS) if asked.fold is None else [asked.fold]
            scores = [measure(model, fold, asked.epochs, asked.out or Path(scratch)) for fold in folds]
            for score in scores:
                print(json.dumps(score), flush=True)
            accuracies = [score["accuracy"] for score in scores]
            spread = statistics.stdev(accuracies) if len(accuracies) > 1 else float("nan")
            mean = statistics.mean(accuracies)
            print(f"RESULT {model}: accuracy {mean:.4f}, deviation {spread:.4f}, {len(scores)} folds", flush=True)


if __name__ == "__main__":
    main()
