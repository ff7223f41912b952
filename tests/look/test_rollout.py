"""Rollouts through windows, merged grids and gradients, and distances in pixels: against plain matrix products."""

from dataclasses import replace

import pytest
import torch
from looked import opened, pixels

from qkv.axis import Grid
from qkv.errors import ConfigError, RunError
from qkv.layers.listen import listen
from qkv.look.class_maps import class_rollout, picture_rollout, read_shares
from qkv.look.measures import pixel_distance
from qkv.look.record import Map, Trace
from qkv.look.rollout import gradient_rollout, rollout, stacks
from qkv.look.trace import trace
from samples import close, tensor

READING = [("vit", {}), ("vit", {"pool": "mean"}), ("vit", {"pool": "attention"}), ("swin", {})]
GRID = Grid(2, 3, (20, 60), prefix=("[CLS]",))


def a_map(seed: int, axis=GRID, heads: int = 2) -> Map:
    weights = tensor(seed, heads, len(axis), len(axis)).softmax(-1)
    return Map(f"blocks.{seed}.attention", "self", weights, axis, axis, tuple(range(heads)), tuple(range(len(axis))))


def traced(run, rows: int = 40, columns: int = 60) -> tuple[Trace, torch.Tensor]:
    image = run.codec.preprocess(pixels(rows, columns))[None]
    with torch.no_grad(), trace(run.model, axes=run.model.axes(image)) as seen:
        run.model(image)
    return seen, image


@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
@pytest.mark.parametrize("discard", [0.0, 0.5])
def test_fusion_residual_and_discard_by_hand(fusion, discard):
    first, second = a_map(0), a_map(1)
    matrices = []
    for map in (first, second):
        weights = {"mean": map.weights.mean(0), "max": map.weights.amax(0), "min": map.weights.amin(0)}[fusion].double()
        for row in weights:
            row[row.argsort()[: int(discard * len(row))]] = 0
        matrix = 0.7 * weights + 0.3 * torch.eye(len(GRID))
        matrices.append(matrix / matrix.sum(-1, keepdim=True))
    rolled = rollout([first, second], residual=0.3, fusion=fusion, discard=discard)
    close(rolled.weights[0], (matrices[1] @ matrices[0]).float())


def test_what_cannot_be_rolled_out_is_refused():
    with pytest.raises(ConfigError, match=r"cannot be fused by 'mode'\. Did you mean 'mean'"):
        rollout([a_map(0)], fusion="mode")
    with pytest.raises(ConfigError, match=r"discard is 1.5; expected a share from 0 to 1"):
        rollout([a_map(0)], discard=1.5)
    other = a_map(1, Grid(5, 5, (20, 60)))
    with pytest.raises(RunError, match=r"blocks\.1\.attention cannot be rolled out"):
        rollout([a_map(0), other])
    assert stacks(Trace({m.name: [m] for m in (a_map(0), other)})) == {}


@pytest.mark.parametrize("size", [(32, 48), (30, 44), (18, 26), (6, 90)])
def test_a_window_rollout_is_the_product_of_whole_matrices(size):
    run = opened("swin", size=size, depths=(2, 2, 2), heads=(2, 2, 4))
    maps = stacks(traced(run)[0])["stages"]
    rows = torch.eye(len(maps[-1].query), dtype=torch.float64)
    for after, map in zip([*maps[1:], None], maps, strict=True):
        whole = map.whole().weights.double().mean(0) * 0.5 + 0.5 * torch.eye(len(map.key))
        step = whole / whole.sum(-1, keepdim=True)
        if after is not None and after.query != map.query:  # merged: each cell is the mean of the four below it
            merge = torch.zeros(len(after.query), len(map.query), dtype=torch.float64)
            for cell in range(len(map.query)):
                row, column = divmod(cell, map.query.columns)
                merge[row // 2 * after.query.columns + column // 2, cell] = 1
            step = merge / merge.sum(-1, keepdim=True) @ step
        rows = step if map is maps[0] else rows
        if map is not maps[0]:
            rows = step @ product
        product = rows
    rolled = rollout(maps)
    assert rolled.query == maps[-1].query and rolled.key == maps[0].key
    close(rolled.weights[0], product.float())
    close(rolled.weights.sum(-1), torch.ones(1, len(rolled.query)))


def test_a_cell_reaches_no_farther_than_its_windows_let_it():
    run = opened("swin", size=(64, 64), depths=(1, 1), heads=(2, 2))  # 32 x 32 cells in windows of 4, no shift
    reach = rollout(stacks(traced(run, 64, 64)[0])["stages"]).weights[0].unflatten(-1, (32, 32))
    seen = reach[0] > 0  # of a merged cell: a window of 4 x 4 of them, which is 8 x 8 below, made of whole windows
    assert seen[:8, :8].all() and seen.sum() == 64


def test_gradient_rollout_against_its_equations():
    maps, gradients = [a_map(0), a_map(1)], [tensor(5, 2, 7, 7), tensor(6, 2, 7, 7)]
    relevance = torch.eye(7, dtype=torch.float64)
    for map, gradient in zip(maps, gradients, strict=True):
        relevance = relevance + (gradient * map.weights).clamp_min(0).double().mean(0) @ relevance
    rows = torch.eye(7, dtype=torch.float64)[:1]
    close(gradient_rollout(maps, gradients, rows), rows @ relevance)


@pytest.mark.parametrize("name, changes", READING)
def test_weights_heard_through_the_layer_have_the_gradient_of_the_answer(name, changes):
    run = opened(name, **changes)
    seen, image = traced(run)
    layer = run.model.get_submodule(next(iter(seen)))
    plain = run.model(image)
    with listen(layer, through=True) as heard:
        logits = run.model(image)
        (gradient,) = torch.autograd.grad(logits[0, 1], heard.weights)
    close(logits, plain)
    place = tuple(int(i) for i in torch.unravel_index(gradient.abs().argmax(), gradient.shape))

    def nudged(by: float):
        def edit(_, weights):
            moved = weights.clone()
            moved[place] += by
            return moved

        with torch.no_grad(), trace(run.model, layers=next(iter(seen)), edit=edit):
            return run.model(image)[0, 1]

    found = [nudged(by) for by in (1e-2, -1e-2)]
    close((found[0] - found[1]) / 2e-2, gradient[place], 2e-3)


def test_what_the_head_reads():
    shares = {
        "class": read_shares(opened("vit", registers=1).model, Grid(4, 6, (32, 48), ("[CLS]", "[REG 0]"))),
        "both": read_shares(opened("vit", distilled=True).model, Grid(4, 6, (32, 48), ("[CLS]", "[DIST]"))),
        "mean": read_shares(opened("vit", pool="mean").model, Grid(4, 6, (32, 48), ("[CLS]",))),
        "grid": read_shares(opened("swin").model, Grid(8, 12, (32, 48))),
    }
    assert shares["class"].nonzero().tolist() == [[0]] and shares["both"].tolist()[:3] == [0.5, 0.5, 0.0]
    assert shares["mean"][0] == 0 and all(abs(float(one.sum()) - 1) < 1e-9 for one in shares.values())
    assert (shares["grid"] == 1 / 96).all()


@pytest.mark.parametrize("name, changes", [*READING, ("vit", {"registers": 2, "distilled": True})])
def test_a_pictures_rollout_is_a_share_of_every_position(name, changes):
    run = opened(name, **changes)
    seen, _ = traced(run)
    row, rolled = picture_rollout(run.model, seen)
    assert row.weights.shape == (1, 1, len(row.key)) and float(row.weights.sum()) == pytest.approx(1)
    assert [map.query for map in rolled] == list(dict.fromkeys(map.query for map in stacks(seen).popitem()[1]))
    assert all(map.key == row.key for map in rolled)


@pytest.mark.parametrize("name, changes", READING)
def test_a_class_rollout_is_that_of_its_own_class(name, changes):
    run = opened(name, **changes)
    seen, image = traced(run)
    both = class_rollout(run.model, image, {"a": 0, "b": 2}, seen)
    (alone,) = class_rollout(run.model, image, {"b": 2}, seen).weights
    close(both.weights[0, 1:], alone, 1e-6)
    assert both.query.pieces == ("a", "b") and (both.weights >= 0).all() and both.weights.sum() > 0


# --- Distance ------------------------------------------------------------------------------------------------------


def test_distance_in_pixels_by_hand():
    weights = torch.zeros(1, 7, 7)
    weights[0, :, 0] = 0.5  # to [CLS], which has no place
    weights[0, [1, 2, 3], [1, 6, 3]] = 0.5  # cell 0 at itself, cell 1 at cell 5, cell 2 at itself
    weights[0, 4, [1, 2]] = 0.25  # cell 3 at cells 0 and 1
    far = pixel_distance(replace(a_map(0, heads=1), weights=weights))
    assert far[0, [1, 3]].tolist() == [0, 0] and far[0, 0].isnan() and far[0, 5:].isnan().all()
    assert float(far[0, 2]) == pytest.approx((10**2 + 20**2) ** 0.5)  # a cell is 10 x 20 pixels
    assert float(far[0, 4]) == pytest.approx((10 + (10**2 + 20**2) ** 0.5) / 2)


def test_distance_of_a_window_is_that_of_the_grid():
    run = opened("swin", size=(30, 44))
    for map in traced(run)[0].select():
        close(pixel_distance(map), pixel_distance(map.whole()), 1e-4)


def test_two_texts_have_no_distance_in_pixels():
    from traces import korean_english

    with pytest.raises(RunError, match="does not look from cell to cell"):
        pixel_distance(korean_english()["encoder.blocks.0.attention"][0])
