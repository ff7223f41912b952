"""Each picture model learns scikit-learn's digits within some hundred steps."""

import numpy as np
import pytest
from PIL import Image

from qkv.data.image_files import ImageFiles
from qkv.tasks.evaluate_pictures import evaluate_pictures
from qkv.tasks.load import load
from qkv.train.loop import train
from qkv.train.options import from_mapping

# What each is made of, its steps, and what it must reach; chance is 0.1.
LEARNS = {
    "vit": ({"patch": 2, "dim": 64, "depth": 2, "heads": 2, "hidden": 128, "pool": "mean"}, 150, 0.75),
    "swin": ({"patch": 2, "window": 4, "dim": 32, "depths": [1, 1], "heads": [2, 4]}, 120, 0.85),
    "mixer": ({"patch": 2, "dim": 64, "depth": 2, "token_hidden": 32, "channel_hidden": 128}, 100, 0.85),
    "resnet": ({"stem": "small", "stem_width": 16, "widths": [16, 32], "depths": [1, 1]}, 70, 0.85),
}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """``train`` and ``test`` with a folder of PNG files a digit."""
    folder, data = tmp_path_factory.mktemp("digits"), pytest.importorskip("sklearn.datasets").load_digits()
    for i, (image, digit) in enumerate(zip(data.images, data.target, strict=True)):
        file = folder / ("test" if i % 5 == 0 else "train") / str(digit) / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 255 / 16).round().astype(np.uint8)).save(file)
    return folder


@pytest.mark.learning
@pytest.mark.parametrize("model", LEARNS)
def test_digits(digits, tmp_path, model):
    size, steps, least = LEARNS[model]
    settings = {
        "model": model,
        "size": size,
        "data": {"folder": str(digits), "augment": {"flip": 0.0, "scale": 1.0}},
        "optimize": {"lr": 4e-3},
        "loop": {"steps": steps, "evaluate_every": 1000},
        "out": tmp_path / "run",
    }
    run = train(from_mapping("classify", settings)).folder
    scores = evaluate_pictures(load(run), ImageFiles(str(digits / "test"))).scores
    assert scores["accuracy"] >= least
