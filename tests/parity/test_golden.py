"""Our image models against tensors of timm and torchvision, imported from a file of theirs: logits, maps, and back."""

import tempfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from qkv.errors import RunError
from qkv.layers.window import Windows
from qkv.look.trace import trace
from qkv.models.mixer import Mixer, MixerConfig
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.saved import build, fill_but_head, load_model
from qkv.models.swin import Swin, SwinConfig
from qkv.models.vit import ViT, ViTConfig
from qkv.tasks.settings import read_settings
from qkv.weights.image_shapes import LAYOUTS
from qkv.weights.images import export_images, import_images

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = {ViT: "vit", Swin: "swin", Mixer: "mixer", ResNet: "resnet"}
VIT = dict(classes=5, image=(32, 32), patch=8, dim=32, depth=2, heads=4, hidden=128)
SWIN = dict(classes=5, window=4, dim=16, depths=(2, 2), heads=(2, 4))
RESNET = dict(classes=5, widths=(8, 16, 24, 32))
FILES = {
    "timm_vit_cls": (ViT, ViTConfig(**VIT)),
    "timm_vit_avg": (ViT, ViTConfig(**VIT, pool="mean")),
    "timm_vit_rect": (ViT, ViTConfig(**VIT)),
    "timm_deit_distilled": (ViT, ViTConfig(**VIT, distilled=True)),
    "torchvision_vit": (ViT, ViTConfig(**{**VIT, "hidden": 64}, resampling="torchvision")),
    "timm_swin": (Swin, SwinConfig(**SWIN)),
    "timm_swin_odd": (Swin, SwinConfig(**SWIN)),
    "torchvision_swin": (Swin, SwinConfig(**SWIN)),
    "timm_mixer": (Mixer, MixerConfig(5, (32, 32), 8, 32, 2, 16, 128)),
    "timm_resnet_bottleneck": (ResNet, ResNetConfig(**RESNET, block="bottleneck", depths=(2, 1, 1, 1))),
    "timm_resnet_basic": (ResNet, ResNetConfig(**RESNET, depths=(1, 2, 1, 1))),
}
every_file = pytest.mark.parametrize("name", FILES)


def read(name: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """``(state, what went in and came out)``."""
    tensors = load_file(GOLDEN / f"{name}.safetensors")
    state = {key.removeprefix("state."): tensor for key, tensor in tensors.items() if key.startswith("state.")}
    return state, {key: tensor for key, tensor in tensors.items() if not key.startswith("state.")}


def names(name: str):
    cls, config = FILES[name]
    return LAYOUTS[MODELS[cls]](name.partition("_")[0], config)


def imported(name: str, folder: Path, **options) -> tuple[Path, list[str]]:
    """The run that is made of a file with these weights alone, and what the user is told."""
    save_file(read(name)[0], folder / "weights.safetensors")
    known = {"heads": 4, "scaling": "half"} if FILES[name][0] is ViT else {}
    origin, run = name.partition("_")[0], folder / "run"
    return run, import_images(origin, str(folder / "weights.safetensors"), run, **known, **options)


def load(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(imported(name, Path(folder))[0])
    assert model.config == FILES[name][1]
    return model, read(name)[1]


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("timm_swin")])
@torch.no_grad()
def test_logits(name):
    model, told = load(name)
    torch.testing.assert_close(model(told["input"]), told["logits"], atol=1e-4, rtol=0)
    torch.testing.assert_close(model(told["input"]), told["logits"], atol=2e-6, rtol=0)  # what it really is


@pytest.mark.parametrize("name", ["timm_vit_cls", "timm_vit_avg", "timm_vit_rect", "timm_deit_distilled"])
@torch.no_grad()
def test_attention_maps(name):
    model, told = load(name)
    with trace(model, axes=model.axes(told["input"])) as seen:
        model(told["input"])
    assert len(seen) == 2
    for block in (0, 1):
        found = torch.stack([map.weights for map in seen[f"blocks.{block}.attention"]])
        torch.testing.assert_close(found, told[f"attention.{block}"], atol=1e-5, rtol=0)


@every_file
def test_what_is_exported_is_what_was_imported(name, tmp_path):
    run, lines = imported(name, tmp_path)
    assert lines[-1].startswith("all ") and lines[0].endswith(" 5 classes")
    settings = read_settings(run)
    assert (settings["task"], settings["kind"], settings["origin"]) == ("classify", "pictures", name.partition("_")[0])
    export_images(run, tmp_path / "back.safetensors")
    back, state = load_file(tmp_path / "back.safetensors"), read(name)[0]
    assert back.keys() == state.keys() and all(torch.equal(tensor, state[key]) for key, tensor in back.items())


@every_file
def test_for_other_classes_the_head_is_new_and_all_else_is_loaded(name, tmp_path):
    cls, config = FILES[name]
    heads = ["head.output", "distilled_head.output"][: 1 + getattr(config, "distilled", False)]
    new = [f"{head}.{part}" for head in heads for part in ("weight", "bias")]
    theirs = names(name).load(read(name)[0])
    run, lines = imported(name, tmp_path, classes="9")
    model = load_model(run)
    assert model.config.classes == 9
    told = f"new, to be learned: {', '.join(new)}; the other {len(theirs) - len(new)} tensors are loaded"
    assert lines[-1] == told
    for key, tensor in model.state_dict().items():
        assert (tensor.shape[0] == 9) if key in new else torch.equal(tensor, theirs[key]), key
    model = build(MODELS[cls], config)
    with pytest.raises(RunError, match=r"has no '(norm|stem)"):
        fill_but_head(model, {key: t for key, t in theirs.items() if not key.startswith(("norm", "stem"))}, GOLDEN)


class WithNumbers(nn.Module):
    """A bias with the numbers that stand in the file's place of the mask, for each window of each example."""

    def __init__(self, bias: nn.Module, numbers: Tensor):
        super().__init__()
        self.bias, self.numbers = bias, numbers

    def forward(self, rows: int, columns: int) -> Tensor:
        return self.bias(rows, columns) + self.numbers[:, None]


def place_in_timm(key: str) -> tuple:
    """Sorts a Swin's parameters as timm makes them."""
    parts = ["downsample.norm", "reduction", "norm1", "table", "qkv", "attn.proj", "norm2", "fc1", "fc2", ""]
    tops = ["patch_embed.proj", "patch_embed.norm", "layers", "norm", "head"]
    top = next(i for i, name in enumerate(tops) if key.startswith(name))
    numbers = [int(number) for number in key.split(".") if number.isdecimal()]
    layer, block = [*numbers, -1, -1][:2]
    return top, layer, block, next(i for i, name in enumerate(parts) if name in key), key.endswith("bias")


@torch.no_grad()
def test_the_swin_of_timm_whose_masks_are_random_numbers(monkeypatch):
    model, told = load("timm_swin")
    assert (model(told["input"]) - told["logits"]).abs().max() > 1e-2
    torch.manual_seed(8)
    state, _ = read("timm_swin")
    for key in sorted(state, key=place_in_timm):  # the same numbers come before
        drawn = torch.randn(state[key].shape)
    torch.testing.assert_close(0.3 * drawn, state["head.fc.bias"])
    for stage, windows in zip(model.stages, (16, 4), strict=True):
        shifted = stage.blocks[1].attention
        shifted.bias = WithNumbers(shifted.bias, (torch.randn(windows, 16, 16) / 16).repeat(2, 1, 1))
    masked = Windows.mask
    monkeypatch.setattr(Windows, "mask", lambda self, *_: masked(Windows(self.grid, self.size, (0, 0)), 1))
    torch.testing.assert_close(model(told["input"]), told["logits"], atol=1e-4, rtol=0)


@torch.no_grad()
def test_the_swin_of_timm_that_pads_after_its_shift(monkeypatch):  # BL-15
    model, told = load("timm_swin_odd")
    assert (model(told["input"]) - told["logits"]).abs().max() > 1e-2

    def unshifted(windows: Windows) -> Windows:
        return Windows(windows.grid, windows.size, (0, 0))

    def shift_then_pad(windows: Windows, states: Tensor) -> Tensor:
        return split(unshifted(windows), states.roll([-shift for shift in windows.shift], (1, 2)))

    def crop_then_shift(windows: Windows, cut: Tensor) -> Tensor:
        return join(unshifted(windows), cut).roll(windows.shift, (1, 2))

    split, join = Windows.split, Windows.join
    monkeypatch.setattr(Windows, "split", shift_then_pad)
    monkeypatch.setattr(Windows, "join", crop_then_shift)
    torch.testing.assert_close(model(told["input"]), told["logits"], atol=1e-4, rtol=0)
