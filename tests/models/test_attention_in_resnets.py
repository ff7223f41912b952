"""Attention between the stages of a residual network, and in place of its convolutions."""

import pytest
import torch

from qkv.errors import ConfigError
from qkv.layers.position import NearBias, RelativeBias
from qkv.models.local_attention import LocalAttention, LocalAttentionConfig, LocalAttentionNet
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.resnet_attention import AttentionResNet, AttentionResNetConfig
from samples import close, tensor

SMALL = dict(classes=5, stem="small", stem_width=8, widths=(8, 12), depths=(1, 2))


@torch.no_grad()
def test_at_first_attention_between_the_stages_adds_nothing():
    looking = AttentionResNet(AttentionResNetConfig(**SMALL, looks_after=(0, 1))).eval()
    plain = ResNet(ResNetConfig(**SMALL)).eval()
    loaded = plain.load_state_dict(looking.state_dict(), strict=False)
    assert not loaded.missing_keys
    image = tensor(0, 2, 3, 9, 14)
    close(looking(image), plain(image))


@torch.no_grad()
def test_a_cell_sees_as_far_as_its_reach_and_no_further():
    layer = LocalAttention(8, 2, reach=2, stride=1, stream="cells").eval()
    maps, changed = tensor(1, 1, 8, 7, 9), tensor(1, 1, 8, 7, 9)
    changed[:, :, 3, 4] += 1
    differs = (layer(maps) - layer(changed)).abs().sum(1)[0] > 1e-6
    expected = torch.zeros(7, 9, dtype=torch.bool)
    expected[1:6, 2:7] = True
    assert torch.equal(differs, expected)


def test_no_convolution_is_made_to_be_dropped(monkeypatch):
    made = []
    monkeypatch.setattr("qkv.layers.convolution.nn.init.kaiming_normal_", lambda weight, **_: made.append(weight))
    kept = {id(weight) for weight in LocalAttentionNet(LocalAttentionConfig(**SMALL, heads=2)).parameters()}
    assert made and all(id(weight) in kept for weight in made)


def test_near_biases_are_relative_biases_where_everything_is_near():
    near, relative = NearBias(3, reach=4), RelativeBias(3, size=5)
    near.table.data, relative.table.data = (tensor(2, 81, 3),) * 2
    close(near(5, 3), relative(5, 3))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (lambda: AttentionResNetConfig(looks_after=(4,)), "size.looks_after has 4; expected stages, from 0 to 3"),
        (lambda: AttentionResNetConfig(heads=7), "heads"),
        (lambda: LocalAttentionConfig(block="basic"), "size.block is 'basic'.*expected bottleneck"),
        (lambda: LocalAttentionConfig(reach=0), "size.reach is 0"),
    ],
)
def test_what_cannot_be(config, message):
    with pytest.raises(ConfigError, match=message):
        config()
