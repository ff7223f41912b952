"""The name maps cover full-size published models: every name and shape of theirs, nothing missing and nothing left."""

import json
from pathlib import Path

import pytest
import torch

from qkv import models
from qkv.models.mixer_names import mixer
from qkv.models.resnet_names import resnet
from qkv.models.swin_names import swin
from qkv.models.vit_names import vit

SHAPES = json.loads((Path(__file__).parent.parent / "golden" / "published_shapes.json").read_text())
NAMES = {"vit": vit, "swin": swin, "mixer": mixer, "resnet": resnet}
PUBLISHED = {  # name -> model, size, and what the size does not say
    "timm/vit_tiny_patch16_224": ("vit", "tiny", {}),
    "timm/vit_small_patch16_224": ("vit", "small", {}),
    "timm/vit_base_patch16_224": ("vit", "base", {}),
    "timm/vit_base_patch16_384": ("vit", "base", {"image": (384, 384)}),
    "timm/deit_tiny_distilled_patch16_224": ("vit", "tiny", {"distilled": True}),
    "timm/swin_tiny_patch4_window7_224": ("swin", "tiny", {}),
    "timm/swin_base_patch4_window7_224": ("swin", "base", {}),
    "timm/mixer_b16_224": ("mixer", "base", {}),
    "timm/resnet18": ("resnet", "18", {}),
    "timm/resnet50": ("resnet", "50", {}),
    "torchvision/vit_b_16": ("vit", "base", {}),
    "torchvision/swin_t": ("swin", "tiny", {}),
    "torchvision/resnet18": ("resnet", "18", {}),
    "torchvision/resnet50": ("resnet", "50", {}),
}


def test_every_published_image_model_is_here():
    assert {name for name in SHAPES if "efficientnet" not in name} == PUBLISHED.keys()


@pytest.mark.parametrize("published", PUBLISHED)
def test_names_and_shapes(published):
    name, size, changes = PUBLISHED[published]
    cls = models.find(name)
    config = cls.Config(classes=1000, **{**cls.SIZES[size], **changes})
    layout = NAMES[name](published.partition("/")[0], config)
    with torch.device("meta"):
        ours = cls(config).state_dict()
        theirs = {key: torch.empty(shape) for key, shape in SHAPES[published].items()}
    computed = {key for key in theirs if "relative_position_index" in key}  # by us too, from the window's size
    saved = layout.save(ours)
    assert {key: tensor.shape for key, tensor in saved.items()} == {
        key: tensor.shape for key, tensor in theirs.items() if key not in computed
    }
    loaded = layout.load(theirs)
    assert {key: tensor.shape for key, tensor in loaded.items()} == {key: t.shape for key, t in ours.items()}
