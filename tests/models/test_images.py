"""Image models: what their configs refuse, images of any size, what Swin costs. See `every_model.py` too."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from qkv import models
from qkv.errors import ConfigError, DataError
from qkv.look.trace import trace
from qkv.models.mixer import Mixer, MixerConfig
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.swin import Swin, SwinConfig
from qkv.models.vit import ViT, ViTConfig
from samples import close, tensor


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("vit", {"pool": "max"}, r"size\.pool is 'max'\. Did you mean 'mean'\? known: attention, class, mean"),
        ("vit", {"resampling": "tim"}, "Did you mean 'timm'"),
        ("vit", {"classes": 2, "patch": 15}, "size.patch 15 does not divide size.image 224 x 224"),
        ("vit", {"heads": 5}, "size.dim 768 cannot be shared evenly by size.heads 5"),
        ("vit", {"depth": 0}, "size.depth is 0; expected a whole number from 1"),
        ("vit", {"dropout": 1.0}, "size.dropout is 1.0"),
        ("vit", {"class_token": False}, "no class token to read"),
        ("vit", {"distilled": True, "pool": "mean"}, "size.distilled reads two tokens"),
        ("swin", {"depths": (2, 2)}, "size.depths has 2 stages and size.heads 4"),
        ("swin", {"heads": (3, 6, 12, 5)}, "size.dim 768 cannot be shared evenly by size.heads 5"),
        ("swin", {"window": 0}, "size.window is 0"),
        ("mixer", {"classes": 2, "image": (224, 200)}, "size.patch 16 does not divide size.image 224 x 200"),
        ("resnet", {"block": "bottle"}, "Did you mean 'bottleneck'"),
        ("resnet", {"depths": (1, 2)}, "size.widths has 4 stages and size.depths 2"),
        ("resnet", {"shortcut": "padded", "stem_width": 128}, "channels become fewer"),
    ],
)
def test_what_a_config_refuses(name, changes, message):
    with pytest.raises(ConfigError, match=message):
        models.find(name).Config(**changes)


@pytest.mark.parametrize("name", ["vit", "swin", "mixer", "resnet"])
def test_every_size_makes_a_model(name):
    cls = models.find(name)
    for size in cls.SIZES.values():
        with torch.device("meta"):
            cls(cls.Config(classes=10, **size))


def test_swin_pads_7_cells_to_8_merges_them_to_4_and_clips_the_window():  # BL-14
    swin = Swin(SwinConfig(classes=2, dim=4, depths=(1, 1, 1, 2), heads=(1, 1, 1, 1))).eval()
    image = tensor(0, 1, 3, 112, 112)
    with torch.no_grad(), trace(swin, axes=swin.axes(image)) as seen:
        assert swin(image).isfinite().all()
    assert [(grid.rows, grid.columns) for (grid,) in swin.axes(image).values()] == [(28, 28), (14, 14), (7, 7), (4, 4)]
    assert [maps[0].where.shape for maps in seen.values()] == [(16, 49), (4, 49), (1, 49), (1, 16), (1, 16)]


def test_a_mixer_refuses_another_grid_and_names_its_own():  # BL-14
    mixer = Mixer(MixerConfig(2, (32, 32), 8, 8, 1, 4, 8))
    with pytest.raises(DataError, match=r"48 x 48 pixels; expected 32 x 32: .* its grid of 4 x 4 patches"):
        mixer(tensor(0, 1, 3, 48, 48))
    with pytest.raises(DataError, match="48 x 48"):
        mixer.axes(tensor(0, 1, 3, 48, 48))


def test_a_vit_refuses_an_image_that_its_patches_do_not_divide():  # BL-14
    with pytest.raises(DataError, match="220 x 220"):
        ViT(ViTConfig(2, depth=1, dim=8, heads=1, hidden=8))(tensor(0, 1, 3, 220, 220))


@torch.no_grad()
def test_a_turned_image_has_turned_maps():  # BL-12 c: a model that nothing but positions tells rows from columns
    torch.manual_seed(0)
    vit = ViT(ViTConfig(2, (16, 16), 8, 8, 1, 2, 8)).eval()
    weight, positions = vit.patches.patch.projection.weight, vit.patches.position.table
    weight.copy_((weight + weight.transpose(2, 3)) / 2)
    cells = positions[:, 1:].view(2, 2, 8)
    positions[:, 1:] = ((cells + cells.transpose(0, 1)) / 2).reshape(1, 4, 8)
    image = tensor(1, 1, 3, 16, 40)
    maps = []
    for each in (image, image.transpose(2, 3)):
        with trace(vit, axes=vit.axes(each)) as seen:
            vit(each)
        maps.append(seen["blocks.0.attention"][0].onto_image(0))
    assert maps[0].shape == (2, 2, 5)
    close(maps[0], maps[1].transpose(1, 2))


@torch.no_grad()
def test_the_axes_of_a_residual_network_are_those_of_its_maps():
    for stem in ("large", "small"):
        resnet = ResNet(ResNetConfig(2, stem=stem, widths=(4, 4, 4), depths=(1, 1, 1), stem_width=4))
        image, shapes = tensor(0, 2, 3, 37, 50), []
        for stage in resnet.stages:
            stage.register_forward_hook(lambda module, given, made, shapes=shapes: shapes.append(made.shape[2:]))
        resnet(image)
        assert [(grid.rows, grid.columns) for grid, _ in resnet.axes(image).values()] == shapes


def products(model: torch.nn.Module, side: int) -> int:
    """Multiply-adds of one image."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model.requires_grad_(False).eval()(torch.zeros(1, 3, side, side))
    return counter.get_total_flops() // 2


def test_the_cost_of_swin_is_linear_in_the_image_and_that_of_a_vit_is_not():
    swin = Swin(SwinConfig(classes=2, patch=4, window=7, dim=8, depths=(2, 2), heads=(1, 2)))
    head = 2 * 16  # of the head, which sees one vector however large the image is
    once, twice, fourfold = (products(swin, side) - head for side in (56, 112, 224))
    assert (twice, fourfold) == (4 * once, 16 * once)
    vit = ViT(ViTConfig(2, (56, 56), 4, 8, 2, 1, 8))
    assert products(vit, 112) > 8 * products(vit, 56)


def test_attention_in_windows_costs_the_window_times_the_image():
    """Two products of C x M^2 for each of HW cells (Liu et al. 2021, eq. 2), where looking everywhere costs (HW)^2."""
    dim, window, grid = 8, 4, 16
    cells = grid * grid

    def attention_only(config: SwinConfig) -> int:
        projections = 4 * dim * dim + 2 * config.ratio * dim * dim
        return products(Swin(config), grid) - dim * 3 * cells - projections * cells - 2 * dim

    config = dict(classes=2, patch=1, dim=dim, depths=(1,), heads=(2,))
    assert attention_only(SwinConfig(window=window, **config)) == 2 * dim * window**2 * cells
    assert attention_only(SwinConfig(window=grid, **config)) == 2 * dim * cells * cells
