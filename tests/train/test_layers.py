"""How far each parameter is from the input, and the learning rates that follow."""

import pytest
import torch
import toy

from qkv.errors import ConfigError
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.swin import Swin, SwinConfig
from qkv.models.vit import ViT, ViTConfig
from qkv.train.layers import depths, freeze
from qkv.train.optimizer import optimizer_for, set_rate
from qkv.train.run import Optimize

VIT = ViT(ViTConfig(classes=2, image=(8, 8), patch=4, dim=8, depth=3, heads=2, hidden=8))
SWIN = Swin(SwinConfig(classes=2, patch=2, window=2, dim=8, depths=(1, 2), heads=(1, 2)))


def test_depths_of_a_vit():
    found = depths(VIT)
    assert found["patches.patch.projection.weight"] == found["patches.first.table"] == 0
    assert found["blocks.0.attention.query.weight"] == 1
    assert found["blocks.2.feed_forward_residual.norm.weight"] == 3
    assert found["norm.weight"] == found["head.output.bias"] == 4


def test_depths_of_a_swin_and_a_resnet():
    found = depths(SWIN)
    assert found["stages.1.merge.reduction.weight"] == found["stages.0.blocks.0.attention.query.weight"] == 1
    assert found["stages.1.blocks.1.attention.query.weight"] == 3 and found["head.output.weight"] == 4
    found = depths(ResNet(ResNetConfig(classes=2, stem_width=4, widths=(4, 8), depths=(1, 2))))
    assert found["stem.first.convolution.weight"] == 0 and found["stages.1.1.first.norm.bias"] == 3


@pytest.mark.parametrize("model", [VIT, SWIN])
def test_each_layer_learns_at_a_part_of_the_rate_of_the_next(model):
    optimizer = optimizer_for(model, Optimize(layer_decay=0.5, weight_decay=0.3))
    set_rate(optimizer, 1.0)
    rates = {id(p): g["lr"] for g in optimizer.param_groups for p in g["params"]}
    decays = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    for name, parameter in model.named_parameters():
        assert rates[id(parameter)] == 0.5 ** (4 - depths(model)[name]), name
        assert decays[id(parameter)] == (0.3 if parameter.ndim >= 2 else 0)
    assert optimizer.param_groups[0]["lr"] == 1  # what is logged


def test_a_model_that_does_not_tell_its_layers():
    with pytest.raises(ConfigError, match=r"optimize\.layer_decay: a MLP does not tell its layers"):
        optimizer_for(toy.MLP(toy.MLPConfig(classes=2)), Optimize(layer_decay=0.5))
    with pytest.raises(ConfigError, match=r"layer_decay is 1\.5; expected more than 0, at most 1"):
        Optimize(layer_decay=1.5)


def test_frozen_modules_get_no_gradient_and_do_not_train():
    model = ViT(VIT.config).train()
    freeze(model, "patches, blocks.0,blocks.1*")
    assert {name.split(".")[0] for name, p in model.named_parameters() if p.requires_grad} == {"blocks", "norm", "head"}
    assert [block.training for block in model.blocks] == [False, False, True]
    model(torch.zeros(1, 3, 8, 8)).sum().backward()
    assert model.blocks[1].attention.query.weight.grad is None
    assert model.blocks[2].attention.query.weight.grad is not None
