"""The name maps cover full-size published models: every name and shape of theirs, nothing missing and nothing left."""

import json
from pathlib import Path

import pytest
import torch

from qkv import models
from qkv.weights.image_shapes import LAYOUTS, ours_of, recognise

SHAPES = json.loads((Path(__file__).parent.parent / "golden" / "published_shapes.json").read_text())
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
    origin = published.partition("/")[0]
    layout = LAYOUTS[name](origin, config)
    with torch.device("meta"):
        ours = cls(config).state_dict()
        theirs = {key: torch.empty(shape) for key, shape in SHAPES[published].items()}
    saved = layout.save(ours)
    assert {key: tensor.shape for key, tensor in saved.items()} == {key: t.shape for key, t in theirs.items()}
    assert recognise(theirs, origin) == name
    told, loaded = ours_of(name, origin, theirs)
    assert told == config
    assert {key: tensor.shape for key, tensor in loaded.items()} == {key: t.shape for key, t in ours.items()}
