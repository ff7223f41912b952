"""Looking at image models: windowed maps laid back on the grid, mixing matrices, positions, boxes inside the image."""

import pytest
import torch

from qkv.axis import Grid
from qkv.errors import ConfigError, RunError
from qkv.layers.attention import Attention
from qkv.layers.window import Window
from qkv.look.record import Trace
from qkv.look.trace import ablate, position_maps, trace
from qkv.models.mixer import Mixer, MixerConfig
from qkv.models.resnet import ResNet, ResNetConfig
from qkv.models.swin import Swin, SwinConfig
from qkv.models.vit import ViT, ViTConfig
from samples import close, tensor

SWIN = SwinConfig(classes=3, patch=2, window=4, dim=8, depths=(2, 2), heads=(2, 4))
IMAGE = tensor(0, 2, 3, 15, 22)  # 8 x 11 cells, then 4 x 6


@pytest.fixture
def swin() -> Swin:
    torch.manual_seed(1)
    return Swin(SWIN).eval()


@torch.no_grad()
def test_windowed_maps_stay_windowed_and_are_laid_back_on_the_grid(swin):
    with trace(swin, axes=swin.axes(IMAGE)) as seen:
        swin(IMAGE)
    assert list(seen) == [f"stages.{stage}.blocks.{block}.attention" for stage in (0, 1) for block in (0, 1)]
    for example in (0, 1):
        map = seen["stages.0.blocks.1.attention"][example]
        assert map.kind == "self" and map.query == map.key == Grid(8, 11, (15, 22), cell=(2, 2))
        assert map.weights.shape == (2, 88, 16) and map.where.shape == (6, 16)
        for position in range(88):
            own = map.where[(map.where == position).any(1)][0]
            row = map.row(position)
            close(row[:, own[own >= 0]], map.weights[:, position, own >= 0])
            assert row.count_nonzero() <= 2 * (own >= 0).sum()
            assert torch.equal(map.whole().weights[:, position], row)
    assert seen["stages.1.blocks.1.attention"][0].key == Grid(4, 6, (15, 22), cell=(4, 4))


@torch.no_grad()
def test_a_row_laid_back_is_the_weights_of_the_layer(swin):
    layer = swin.stages[0].blocks[1].attention
    layer.bias.table.data *= 50
    states = tensor(3, 1, 8, 8, 8)
    with trace(layer) as seen:
        output = layer(states)
    (map,) = seen[""]
    assert map.key == Grid(8, 8, (8, 8))
    values = layer._split(layer.value(states.flatten(1, 2)))[0]
    for position in (0, 9, 27, 63):
        row = map.row(position)  # nothing is padded here: what it looked at is what it got
        close(row.sum(-1), torch.ones(2))
        got = torch.cat([weights @ value for weights, value in zip(row, values, strict=True)])
        close(layer.output(got), output[0].flatten(0, 1)[position])


@torch.no_grad()
def test_a_shifted_corner_sees_its_four_true_neighbours():
    layer = Attention(8, 2, window=Window(4, shift=2))
    with trace(layer) as seen:
        layer(tensor(0, 1, 8, 8, 8))
    image = seen[""][0].onto_image(0)
    assert image.shape == (2, 8, 8)
    assert (image[:, :2, :2] > 0).all() and image.count_nonzero() == 2 * 4


@torch.no_grad()
def test_only_the_rows_and_heads_asked_for(swin):
    with trace(swin, layers="*blocks.1*") as whole:
        swin(IMAGE)
    with trace(swin, layers="*blocks.1*", queries=[3, -1], heads=[1]) as some:
        swin(IMAGE)
    for name, maps in some.items():
        for map, other in zip(maps, whole[name], strict=True):
            assert map.heads == (1,) and map.queries == (3, len(map.query) - 1)
            assert torch.equal(map.weights, other.weights[[1]][:, list(map.queries)])
            assert torch.equal(map.row(3), other.row(3)[[1]])
    with pytest.raises(RunError, match="was not recorded"):
        map.row(4)


@torch.no_grad()
@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_record_keeps_the_windows(swin, tmp_path, suffix):
    with trace(swin, axes=swin.axes(IMAGE)) as seen:
        swin(IMAGE)
    seen.save(path := tmp_path / f"look{suffix}")
    for name, maps in Trace.load(path).items():
        for map, other in zip(maps, seen[name], strict=True):
            assert map.key == other.key and torch.equal(map.where, other.where)
            close(map.onto_image(5), other.onto_image(5))


@torch.no_grad()
def test_a_silenced_head_of_a_windowed_layer_is_silent(swin):
    before = swin(IMAGE)
    with trace(swin, edit=ablate({"stages.0.blocks.1.attention": [0]})) as seen:
        assert not torch.allclose(before, swin(IMAGE))
    weights = seen["stages.0.blocks.1.attention"][1].weights
    assert weights[0].abs().max() == 0 and (weights[1].sum(-1) - 1).abs().max() < 1e-5
    assert torch.equal(before, swin(IMAGE))


@torch.no_grad()
def test_extra_tokens_are_apart_and_positions_have_their_grid():
    config = ViTConfig(3, (16, 24), 8, 16, 1, 4, 32, distilled=True, registers=2)
    vit, image = ViT(config).eval(), tensor(0, 1, 3, 24, 16)
    axes = vit.axes(image)
    with trace(vit, axes=axes) as seen:
        vit(image)
    map = seen["blocks.0.attention"][0]
    assert map.key.prefix == ("[CLS]", "[DIST]", "[REG 0]", "[REG 1]") and map.weights.shape == (4, 10, 10)
    assert torch.equal(map.onto_image(0), map.weights[:, 0, 4:].view(4, 3, 2))
    (alike,) = position_maps(vit, axes)["patches.position"]
    assert alike.key.prefix == ("[CLS]", "[DIST]") and alike.weights.shape == (1, 8, 8)
    close(alike.weights[0].diagonal(), torch.ones(8))


@torch.no_grad()
def test_a_mixer_reports_its_mixing_and_has_nothing_to_edit():
    mixer, image = Mixer(MixerConfig(3, (16, 24), 8, 16, 2, 5, 32)).eval(), tensor(0, 2, 3, 16, 24)
    with trace(mixer, axes=mixer.axes(image), queries=[2]) as seen:
        mixer(image)
    maps = seen["blocks.1.mixing"]
    assert [map.kind for map in maps] == ["mixing"] * 2 and maps[0].weights.shape == (1, 1, 6)
    assert maps[1].onto_image(2).shape == (1, 2, 3)
    states = mixer.patches(image).flatten(1, 2)
    block = mixer.blocks[0]
    close(seen["blocks.0.mixing"][0].weights[0], block.mixing.matrix(block.mixing_residual.norm(states))[0, [2]])
    with pytest.raises(ConfigError, match="no attention layer"), trace(mixer, edit=ablate({"*": [0]})):
        pass


def test_keys_that_are_no_image_have_no_rows_and_columns():
    with trace(layer := Attention(8, 2)) as seen:
        layer(tensor(0, 1, 3, 8))
    with pytest.raises(RunError, match="Tokens; expected the grid of an image"):
        seen[""][0].onto_image(0)


@pytest.mark.parametrize("size", [(15, 22), (32, 32), (37, 5)])
def test_cells_of_every_stage_tile_the_image_also_where_it_is_padded(size):
    image = torch.zeros(1, 3, *size)
    models = [
        Swin(SWIN),
        ResNet(ResNetConfig(3, widths=(4, 4), depths=(1, 1), stem_width=4)),
        ResNet(ResNetConfig(3, stem="small", widths=(4, 4), depths=(1, 1), stem_width=4)),
    ]
    for model in models:
        with torch.no_grad():
            model(image)
        for (grid,) in model.axes(image).values():
            area = 0.0
            for position in range(len(grid)):
                left, top, right, bottom = grid.box(position)
                assert left < right and top < bottom
                area += (right - left) * (bottom - top)
            assert area == size[0] * size[1]
