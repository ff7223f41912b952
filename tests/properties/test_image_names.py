"""The original releases of ViT and Mixer: the names in their .npz files, and the arithmetic that their shapes mean."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import RunError
from qkv.models.mixer import Mixer, MixerConfig
from qkv.models.mixer_names import mixer
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.resnet_names import resnet
from qkv.models.swin import SwinConfig
from qkv.models.swin_names import swin
from qkv.models.vit import ViT, ViTConfig
from qkv.models.vit_names import vit
from samples import close, tensor

VIT = ViTConfig(5, (16, 24), 8, 12, 2, 3, 20, prelogits=7)
MIXER = MixerConfig(5, (16, 24), 8, 12, 2, 4, 20)


def test_a_vit_of_the_original_release():
    model = ViT(VIT).eval()
    theirs = vit("npz", VIT).save(model.state_dict())
    attention = "Transformer/encoderblock_{}/MultiHeadDotProductAttention_1/"
    shapes = {
        "cls": (1, 1, 12), "embedding/kernel": (8, 8, 3, 12), "embedding/bias": (12,),
        "Transformer/posembed_input/pos_embedding": (1, 7, 12),
        "Transformer/encoder_norm/scale": (12,), "Transformer/encoder_norm/bias": (12,),
        "pre_logits/kernel": (12, 7), "pre_logits/bias": (7,), "head/kernel": (7, 5), "head/bias": (5,),
    }  # fmt: skip
    for block in (0, 1):
        for name in ("query", "key", "value"):
            shapes[attention.format(block) + f"{name}/kernel"] = (12, 3, 4)
            shapes[attention.format(block) + f"{name}/bias"] = (3, 4)
        shapes[attention.format(block) + "out/kernel"] = (3, 4, 12)
        shapes[attention.format(block) + "out/bias"] = (12,)
        for name, shape in (("LayerNorm_0", (12,)), ("LayerNorm_2", (12,))):
            for part in ("scale", "bias"):
                shapes[f"Transformer/encoderblock_{block}/{name}/{part}"] = shape
        for number, inside, outside in ((0, 12, 20), (1, 20, 12)):
            dense = f"Transformer/encoderblock_{block}/MlpBlock_3/Dense_{number}"
            shapes |= {f"{dense}/kernel": (inside, outside), f"{dense}/bias": (outside,)}
    assert {name: tuple(tensor.shape) for name, tensor in theirs.items()} == shapes

    layer, states = model.blocks[1].attention, tensor(0, 2, 5, 12)
    kernel, bias = (theirs[attention.format(1) + f"query/{part}"] for part in ("kernel", "bias"))
    close(layer._split(layer.query(states)), torch.einsum("btd,dhk->bhtk", states, kernel) + bias[:, None])
    kernel, heads = theirs[attention.format(1) + "out/kernel"], tensor(1, 2, 3, 5, 4)
    wanted = torch.einsum("bhtk,hkd->btd", heads, kernel) + theirs[attention.format(1) + "out/bias"]
    close(layer.output(heads.transpose(1, 2).flatten(2)), wanted)
    patch, kernel = tensor(2, 1, 3, 8, 8), theirs["embedding/kernel"]
    wanted = torch.einsum("bcij,ijcd->bd", patch, kernel) + theirs["embedding/bias"]
    close(model.patches.patch(patch)[:, 0, 0], wanted)


def test_a_mixer_of_the_original_release():
    model = Mixer(MIXER)
    theirs = mixer("npz", MIXER).save(model.state_dict())
    assert len(theirs) == 2 + 2 * 12 + 2 + 2
    assert theirs["MixerBlock_1/token_mixing/Dense_0/kernel"].shape == (6, 4)
    assert theirs["MixerBlock_0/channel_mixing/Dense_1/kernel"].shape == (20, 12)
    assert theirs["stem/kernel"].shape == (8, 8, 3, 12) and theirs["head/kernel"].shape == (12, 5)


@given(origin=st.sampled_from(["timm", "torchvision", "hf", "npz"]), prelogits=st.sampled_from([0, 7]))
def test_a_vit_there_and_back(origin, prelogits):
    config = ViTConfig(5, (16, 24), 8, 12, 2, 3, 20, prelogits=prelogits if origin != "hf" else 0)
    _there_and_back(ViT(config).state_dict(), vit(origin, config))


@given(origin=st.sampled_from(["timm", "npz"]))
def test_a_mixer_there_and_back(origin):
    _there_and_back(Mixer(MIXER).state_dict(), mixer(origin, MIXER))


@given(origin=st.sampled_from(["timm", "torchvision", "hf", "cifar"]), block=st.sampled_from(["basic", "bottleneck"]))
def test_a_resnet_there_and_back(origin, block):
    config = ResNetConfig(5, block, stem_width=4, widths=(4, 8), depths=(2, 1))
    _there_and_back(ResNet(config).state_dict(), resnet(origin, config))


def _there_and_back(ours: dict[str, torch.Tensor], layout) -> None:
    theirs = layout.save(ours)
    back = layout.load(theirs)
    assert back.keys() == ours.keys() and all(torch.equal(back[name], ours[name]) for name in ours)


@pytest.mark.parametrize(
    ("names", "config"), [(vit, VIT), (mixer, MIXER), (swin, SwinConfig()), (resnet, ResNetConfig())]
)
def test_an_origin_that_is_unknown(names, config):
    with pytest.raises(RunError, match=r"no names of 'tim' are known for a .* Did you mean 'timm'"):
        names("tim", config)


def test_the_names_of_networks_for_cifar():
    config = ResNetConfig(10, **ResNet.SIZES["20"])
    theirs = resnet("cifar", config).save(ResNet(config).state_dict())
    assert len(theirs) == 5 + 9 * 10 + 2  # they are older than the count of batches in a batch norm
    assert theirs["module.layer3.0.conv1.weight"].shape == (64, 32, 3, 3) and "module.linear.bias" in theirs
