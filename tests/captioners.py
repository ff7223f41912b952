"""Small captioners of random weights that say words of drawn scenes, as objects and as runs' folders."""

from itertools import islice
from pathlib import Path

import torch

from qkv.data.caption_codec import CaptionCodec
from qkv.data.preprocess import Preprocess
from qkv.data.scenes import scenes
from qkv.data.subwords import Subwords
from qkv.models import find
from qkv.models.saved import build, save_model
from qkv.tasks.captioner import Captioner
from qkv.tasks.settings import write_settings

ENCODER = dict(encoder="resnet", encoder_size='{"stem_width": 8, "widths": [8, 12], "depths": [1, 1]}')
MODELS = {
    "captioner": dict(dim=16, positions="learned"),
    "caption-transformer": dict(dim=16, depth=2, heads=2, hidden=32),
    "no attention": dict(dim=16, attention="none"),
}


def captioner(kind: str = "captioner", seed: int = 0, size: tuple[int, int] = (32, 40)) -> Captioner:
    """A captioner of random weights, sharp enough that its words differ and some captions end."""
    texts = [scene.caption() for scene in islice(scenes(0), 200)]
    codec = CaptionCodec(Preprocess(size), Subwords.learn(texts, 400, "word"))
    name = "captioner" if kind == "no attention" else kind
    torch.manual_seed(seed)
    config = find(name).Config(
        words=codec.vocabulary.size, image=size, dropout=0.0, tie="none", **ENCODER, **MODELS[kind]
    )
    model = build(name, config)
    with torch.no_grad():
        if name == "captioner":
            model.decoder.attention.score.value.weight.mul_(20) if kind == "captioner" else None
        model.output.weight.mul_(8)
        model.output.bias[codec.end] += 2
        for norm in [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]:
            norm.running_mean.normal_(0, 0.2)
    return Captioner(model.eval(), codec, longest=12)


def run_of(folder: Path, kind: str = "captioner") -> Path:
    """A run's folder with such a captioner."""
    own = captioner(kind)
    save_model(own.model, folder)
    own.codec.save(folder / "codec")
    write_settings(folder, task="caption", longest=12)
    return folder


def pixels(count: int, size: int = 48, part: str = "test") -> list:
    return [scene.pixels for scene in islice(scenes(5, part, size), count)]
