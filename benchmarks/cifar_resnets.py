"""Published residual networks for CIFAR-10, imported and scored on a folder of pictures.

    python benchmarks/cifar_resnets.py resnet20-12fca82f.th resnet56-4bfd9763.th --data cifar10_jpg/test

The folder has one folder a class, whose names in order of the alphabet are the classes of the networks.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from qkv.data.image_codec import ImageCodec
from qkv.data.pictures import decode
from qkv.models.saved import load_model
from qkv.weights.images import import_images

options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
options.add_argument("weights", nargs="+", type=Path)
options.add_argument("--data", type=Path, required=True)
options.add_argument("--threads", type=int, default=1)
chosen = options.parse_args()
torch.set_num_threads(chosen.threads)

classes = sorted(folder.name for folder in chosen.data.iterdir() if folder.is_dir())
files = [(path, name) for name in classes for path in sorted((chosen.data / name).iterdir())]
with tempfile.TemporaryDirectory() as folder:
    names = Path(folder) / "classes.txt"
    names.write_text("\n".join(classes))
    for number, weights in enumerate(chosen.weights):
        run = Path(folder) / str(number)
        print("\n".join(import_images("cifar", str(weights), run, classes=str(names))))
        model, codec, right, begun = load_model(run), ImageCodec.load(run / "codec"), 0, time.perf_counter()
        with torch.inference_mode():
            for first in range(0, len(files), 100):
                some = files[first : first + 100]
                pictures = torch.stack([codec.preprocess(decode(path).pixels) for path, _ in some])
                right += sum(said == name for said, (_, name) in zip(codec.decode(model(pictures)), some, strict=True))
        seconds = time.perf_counter() - begun
        print(f"{weights.name}: {right / len(files):.1%} of {len(files)} pictures right, in {seconds:.1f} s")
