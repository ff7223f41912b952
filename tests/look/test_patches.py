"""Patches taken away and put back: fills, orders, plain sentences; and drawn shapes, whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from known_answer import CLASSES, PATCH, SIZE, drawn, trained

from qkv.axis import Grid
from qkv.errors import ConfigError, RunError
from qkv.look.cells import choose_head, mass_inside, onto_pixels
from qkv.look.patches import FILLS, centre, patch_faithfulness
from qkv.look.pictures import look_at
from qkv.look.record import Trace
from qkv.look.trace import trace
from samples import tensor

GRID = Grid(4, 6, (16, 24))


def brightness(images: torch.Tensor) -> torch.Tensor:
    return images.mean((1, 2, 3))


def ladder() -> tuple[torch.Tensor, torch.Tensor]:
    """A picture whose cells are brighter and brighter, and how bright each is."""
    bright = 0.8 ** torch.arange(24.0)
    return onto_pixels(bright, GRID).expand(1, 3, -1, -1), bright


def test_the_brightest_first_is_the_order_of_brightness():
    image, bright = ladder()
    found = patch_faithfulness(brightness, image, {"right": (bright, GRID), "wrong": (-bright, GRID)})
    for fill in found.fills.values():
        assert fill.curve.area > fill.random.area > fill.baselines["wrong"].area
        assert fill.chance == 0.02 and set(fill.baselines) == {"wrong", "centre"}
    assert found.better_than_chance and found.sentence.startswith("Taking away what right points at changes")
    assert found.sentence.endswith("better than chance here.") and "no better" not in found.sentence
    note = found.note()
    assert note["grid"] == [4, 6] and note["better"]
    assert note["fills"]["blur"]["shares"][0] == 0 and note["fills"]["blur"]["shares"][-1] == 1
    assert len(note["fills"]["mean"]["curves"]["random"]["deletion"]) == 13

    wrong = patch_faithfulness(brightness, image, {"wrong": (-bright, GRID)})
    assert not wrong.better_than_chance and wrong.sentence.endswith("no better than chance here.")


def test_what_holds_with_one_fill_only_is_said_so():
    image, bright = ladder()
    found = patch_faithfulness(brightness, image, {"map": (bright, GRID)})
    mixed = replace(found, fills={**found.fills, "blur": replace(found.fills["blur"], chance=0.5)})
    assert not mixed.better_than_chance and mixed.sentence.endswith("better than chance here with the fill mean only.")


def test_the_same_seed_gives_the_same_figures_whatever_the_batch():
    image, importance = tensor(0, 1, 3, 16, 24), {"map": (tensor(1, 24), GRID)}
    one, two, other = (
        patch_faithfulness(brightness, image, importance, seed=seed, batch=batch).note()["fills"]["mean"]
        for seed, batch in ((3, 7), (3, 32), (4, 32))
    )
    assert one["area"] == pytest.approx(two["area"]) and one["random"] == pytest.approx(two["random"])
    assert one["random"] != pytest.approx(other["random"])


def test_the_fills():
    image = tensor(0, 1, 3, 16, 24) + 3
    assert torch.allclose(FILLS["mean"](image, 4)[0, :, 5, 5], image[0].mean((1, 2)))
    blurred = FILLS["blur"](image, 4.0)
    assert blurred.shape == image.shape and blurred.std() < 0.3 * image.std()
    assert torch.allclose(FILLS["blur"](torch.ones(1, 3, 5, 70), 16.0), torch.ones(1, 3, 5, 70))  # also of a thin one
    with pytest.raises(ConfigError, match=r"no fill is called 'grey'\. Known: blur, mean"):
        patch_faithfulness(brightness, image, {"map": (torch.ones(24), GRID)}, fills=("grey",))


def test_the_centre_is_nearest_in_pixels():
    order = np.argsort(-centre(Grid(3, 4, (24, 16))), kind="stable")  # cells of 8 x 4 pixels
    assert order[:4].tolist() == [5, 6, 4, 7] and set(order[-4:]) == {0, 3, 8, 11}


def test_mass_in_a_region_counts_cells_in_part():
    grid = Grid(2, 2, (8, 8), prefix=("[CLS]",))
    row = torch.tensor([0.5, 0.1, 0.2, 0.1, 0.1])
    assert float(mass_inside(row, grid, (4, 0, 8, 4))) == pytest.approx(0.4)
    assert float(mass_inside(row, grid, (2, 0, 8, 4))) == pytest.approx(0.5)  # and half of the cell beside it
    assert float(mass_inside(torch.tensor([1.0, 0, 0, 0, 0]), grid, (0, 0, 8, 8))) == 0


def test_a_head_is_chosen_among_layers_that_look():
    with pytest.raises(RunError, match="1 records and 0 regions"):
        choose_head([Trace()], [])
    with pytest.raises(RunError, match="no layer looks at the cells"):
        choose_head([Trace()], [(0, 0, 1, 1)])


# --- Drawn shapes: the class hangs on one patch of sixteen -----------------------------------------------------------


@pytest.fixture(scope="module")
def known():
    return trained()


@pytest.mark.learning
@torch.no_grad()
def test_the_head_that_looks_at_the_object_is_found_on_other_pictures(known):
    pictures = drawn(0, 60)
    images = known.codec.preprocess.normalise(torch.stack([torch.from_numpy(shape.pixels) for shape in pictures]))
    with trace(known.model, axes=known.model.axes(images)) as seen:
        answers = known.model(images).argmax(1)
    assert (answers == torch.tensor([shape.label for shape in pictures])).float().mean() >= 0.95
    traces, regions = [seen.example(i) for i in range(60)], [shape.region for shape in pictures]
    head = choose_head(traces[:30], regions[:30])
    mass = head.mass_in(traces[30:], regions[30:])
    print(f"{head.layer}, head {head.head}: {mass:.3f} of the mass in the gold patch (chance {PATCH**2 / SIZE**2:.3f})")
    assert mass >= 0.6


@pytest.mark.learning
def test_rollout_and_gradient_weights_beat_random_orders_and_a_random_map_does_not(known):
    random = np.random.default_rng(0)
    areas = {"rollout": [], "gradient-rollout": [], "a random map": [], "random": []}
    for shape in drawn(100, 12):
        seen = look_at(known, shape.pixels, top=1)
        image = known.codec.preprocess(shape.pixels)[None]
        grid = Grid(4, 4, (SIZE, SIZE))
        orders = {name: (seen[name][0].weights[0, 0, 1:], grid) for name in ("rollout", "gradient-rollout")}
        orders["a random map"] = (torch.from_numpy(random.random(16)), grid)

        @torch.no_grad()
        def score(images, label=shape.label):
            return known.model(images).softmax(-1)[:, label]

        found = patch_faithfulness(score, image, orders, fills=("mean",), samples=9).fills["mean"]
        areas["rollout"].append(found.curve.area)
        areas["random"].append(found.random.area)
        for name, curve in found.baselines.items():
            areas.setdefault(name, []).append(curve.area)
    mean = {name: float(np.mean(area)) for name, area in areas.items()}
    print({name: round(area, 3) for name, area in mean.items()}, f"{CLASSES} classes")
    assert mean["rollout"] > mean["random"] + 0.3
    assert mean["gradient-rollout"] > mean["random"] + 0.1
    assert abs(mean["a random map"] - mean["random"]) < 0.25
