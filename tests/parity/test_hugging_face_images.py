"""Our image models and those of transformers, tiny and random, imported from their folders: logits, maps, and back."""

from pathlib import Path

import pytest
import torch
from torch import nn

from qkv.look.trace import trace
from qkv.models.resnet import ResNetConfig
from qkv.models.saved import load_model
from qkv.models.swin import SwinConfig
from qkv.models.vit import ViTConfig
from qkv.store import read_tensors
from qkv.weights.images import export_images, import_hf
from samples import tensor

transformers = pytest.importorskip("transformers")
SHAPE = dict(
    image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
    num_labels=5, attn_implementation="eager",
)  # fmt: skip
VIT = dict(
    classes=5, image=(32, 32), patch=8, dim=32, depth=2, heads=4, hidden=48, eps=1e-12, resampling="hf"
)  # fmt: skip
SWIN = dict(classes=5, patch=2, window=4, dim=8, depths=(2, 2), heads=(2, 4), ratio=4)


def randomised(model: nn.Module, seed: int) -> nn.Module:
    """Every weight, norm, bias and running statistic away from its neutral start, in evaluation mode."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            size = 0.3 if parameter.dim() < 2 or "token" in name or "table" in name else parameter[0].numel() ** -0.5
            parameter.copy_(around + size * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffer.copy_(torch.rand_like(buffer) + 0.5)
    return model.eval()


def ours_of(config, theirs: nn.Module, folder: Path) -> nn.Module:
    """Our model, imported from their folder; exported again it has the same tensors, and transformers says the same."""
    theirs.save_pretrained(folder / "theirs")
    import_hf(str(folder / "theirs"), folder / "run", scaling="half")
    model = load_model(folder / "run")
    assert model.config == config
    export_images(folder / "run", folder / "again")
    back, published = (read_tensors(folder / name / "model.safetensors")[0] for name in ("again", "theirs"))
    assert back.keys() == published.keys() and all(torch.equal(back[key], published[key]) for key in back)
    again, image = (
        transformers.AutoModelForImageClassification.from_pretrained(folder / "again"),
        tensor(0, 2, 3, 32, 32),
    )
    if "Teacher" in type(theirs).__name__:  # "auto" takes the class that leaves the second head out
        again = type(theirs).from_pretrained(folder / "again")
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(image).logits, theirs(image).logits, atol=1e-6, rtol=0)
    return model


def compare(ours: nn.Module, theirs: nn.Module, image: torch.Tensor, **settings) -> None:
    with torch.no_grad(), trace(ours, axes=ours.axes(image)) as seen:
        found = ours(image)
    with torch.no_grad():
        wanted = theirs(image, output_attentions=True, **settings)
    torch.testing.assert_close(found, wanted.logits, atol=1e-4, rtol=0)
    assert len(seen) == len(wanted.attentions)
    for maps, weights in zip(seen.values(), wanted.attentions, strict=True):
        torch.testing.assert_close(torch.stack([map.weights for map in maps]), weights, atol=1e-5, rtol=0)


def test_vit(tmp_path):
    config = ViTConfig(**VIT)
    theirs = randomised(transformers.ViTForImageClassification(transformers.ViTConfig(**SHAPE)), 1)
    ours = ours_of(config, theirs, tmp_path)
    compare(ours, theirs, tensor(0, 2, 3, 32, 32))
    compare(ours, theirs, tensor(0, 2, 3, 24, 48), interpolate_pos_encoding=True)


def test_deit(tmp_path):
    config = ViTConfig(**VIT, distilled=True)
    theirs = transformers.DeiTForImageClassificationWithTeacher(transformers.DeiTConfig(**SHAPE))
    ours = ours_of(config, randomised(theirs, 2), tmp_path)
    compare(ours, theirs, tensor(0, 2, 3, 32, 32))


@pytest.mark.parametrize("size", [(32, 32), (36, 44), (19, 26)])
def test_swin(tmp_path, size):
    config = SwinConfig(**SWIN)
    theirs = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=5,
        attn_implementation="eager",
    )  # fmt: skip
    theirs = randomised(transformers.SwinForImageClassification(theirs), 3)
    ours, image = ours_of(config, theirs, tmp_path), tensor(0, 2, 3, *size)
    with torch.no_grad(), trace(ours, axes=ours.axes(image)) as seen:
        found = ours(image)
    with torch.no_grad():
        wanted = theirs(image, output_attentions=True)
    torch.testing.assert_close(found, wanted.logits, atol=1e-4, rtol=0)
    for name, (maps, windowed) in zip(
        seen, zip(seen.values(), _each_block(ours, theirs, image), strict=True), strict=True
    ):
        for example, map in enumerate(maps):
            weights = windowed.unflatten(0, (len(image), -1))[example]  # window, head, cell, cell
            real = map.where >= 0
            rows = weights.transpose(1, 2)[real][map.where[real].argsort()].transpose(0, 1)
            torch.testing.assert_close(map.weights, rows, atol=1e-5, rtol=0, msg=name)


def _each_block(ours: nn.Module, theirs: nn.Module, image: torch.Tensor) -> list[torch.Tensor]:
    """What transformers' windows look at, block by block."""
    kept = []
    hooks = [
        block.attention.register_forward_hook(lambda module, given, made: kept.append(made[1]))
        for layer in theirs.swin.encoder.layers
        for block in layer.blocks
    ]
    with torch.no_grad():
        theirs(image, output_attentions=True)
    for hook in hooks:
        hook.remove()
    return kept


@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_resnet(tmp_path, block):
    widths, expansion = (8, 16), 4 if block == "bottleneck" else 1
    config = ResNetConfig(classes=5, block=block, stem_width=8, widths=widths, depths=(2, 1))
    theirs = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[expansion * width for width in widths], depths=[2, 1], layer_type=block,
        num_labels=5,
    )  # fmt: skip
    theirs = randomised(transformers.ResNetForImageClassification(theirs), 4)
    ours = ours_of(config, theirs, tmp_path)
    image = tensor(0, 2, 3, 40, 56)
    with torch.no_grad():
        torch.testing.assert_close(ours(image), theirs(image).logits, atol=1e-4, rtol=0)
