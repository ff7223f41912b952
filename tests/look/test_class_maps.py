"""Gradients of classes: by pixels, and Grad-CAM, against their equations; which module makes the features."""

import pytest
import torch
from looked import opened, pixels
from torch import nn

from qkv.axis import Grid
from qkv.errors import ConfigError
from qkv.look.cells import coarser, onto_cells, onto_pixels, pixel_cells
from qkv.look.class_maps import grad_cam, pixel_gradient
from samples import close, tensor


class Linear(nn.Module):
    """Features on a grid of 2 x 3 whose channels are summed by a class each: every gradient is known."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 2, 4, 4, bias=False)

    def forward(self, image):
        return self.features(image).mean((2, 3)) @ torch.tensor([[1.0, 0.0], [2.0, -1.0]])


IMAGE = tensor(0, 1, 3, 8, 12)


def test_grad_cam_by_hand():
    model, grid = Linear(), Grid(2, 3, (8, 12))
    first, second = model.features(IMAGE)[0].detach()
    found = grad_cam(model, IMAGE, {"a": 0, "b": 1}, grid)
    # the mean over six cells of a gradient of 1/6 for each unit of a channel's weight
    close(found.weights[0, 0], ((first + 2 * second) / 6).relu().flatten())
    close(found.weights[0, 1], (-second / 6).relu().flatten())
    assert found.kind == "gradient" and found.query.pieces == ("a", "b") and found.key == grid


def test_a_pixels_gradient_by_hand():
    model, grid = Linear(), Grid(2, 3, (8, 12))
    by_pixel = (model.features.weight[1] / 6).norm(dim=0).mean()  # of class b, the same in every patch
    found = pixel_gradient(model, IMAGE, {"b": 1}, grid)
    close(found.weights[0, 0], by_pixel.detach().expand(6))


@pytest.mark.parametrize(
    "name, changes, layer",
    [
        ("resnet", {}, "stages.1"),
        ("swin", {}, "norm"),
        ("mixer", {}, "norm"),
        ("vit", {"pool": "mean"}, "blocks.1"),
        ("vit", {"registers": 1}, "blocks.1.attention_residual.norm"),  # nothing after it but the class token is read
    ],
)
def test_features_are_of_the_last_module_that_the_answer_hangs_on(name, changes, layer):
    run = opened(name, **changes)
    image = run.codec.preprocess(pixels())[None]
    grid = list(run.model.axes(image).values())[-1][0]
    classes = {"cat": 0, "bird": 2}
    found, named = (grad_cam(run.model, image, classes, grid, layer=which) for which in (None, layer))
    close(found.weights, named.weights)
    assert found.weights.shape == (1, 2, grid.rows * grid.columns) and not found.key.prefix
    with pytest.raises(ConfigError, match="there is no module 'normm'"):
        grad_cam(run.model, image, classes, grid, layer="normm")
    with pytest.raises(ConfigError, match="head makes no features on a grid"):
        grad_cam(run.model, image, classes, grid, layer="head")


def test_frozen_weights_have_gradients_too():
    run = opened("vit")
    image = run.codec.preprocess(pixels())[None]
    before = pixel_gradient(run.model, image, {"cat": 0}, Grid(4, 6, (32, 48))).weights
    run.model.requires_grad_(False)
    close(pixel_gradient(run.model, image, {"cat": 0}, Grid(4, 6, (32, 48))).weights, before)
    assert all(parameter.grad is None for parameter in run.model.parameters())


@pytest.mark.parametrize("grid", [Grid(2, 3, (8, 12)), Grid(3, 4, (9, 14), cell=(4, 4)), Grid(4, 3, (10, 10))])
def test_every_pixel_lies_in_the_cell_whose_box_holds_it(grid):
    cells = pixel_cells(grid)
    assert cells.shape == grid.image
    for row in range(grid.image[0]):
        for column in range(grid.image[1]):
            left, top, right, bottom = grid.box(int(cells[row, column]))
            assert left <= column + 0.5 <= right and top <= row + 0.5 <= bottom
    values = tensor(1, grid.rows * grid.columns)
    close(onto_cells(onto_pixels(values, grid), grid)[cells.unique()], values[cells.unique()])


def test_a_coarser_grid_holds_whole_cells():
    fine = Grid(56, 28, (224, 112), cell=(4, 4))
    coarse = coarser(fine)
    assert (coarse.rows, coarse.columns, coarse.cell) == (14, 7, (16, 16))
    assert coarser(Grid(4, 6, (32, 48), ("[CLS]",))) == Grid(4, 6, (32, 48), cell=(8, 8))
    of = pixel_cells(coarse)[::4, ::4].flatten()  # the block of each cell
    close(onto_cells(onto_pixels(of.double(), fine), coarse), torch.arange(98.0).double())
