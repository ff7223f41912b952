"""Does a picture's answer hang on the patches that a map points at? Take patches away and see."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from qkv.axis import Grid
from qkv.errors import ConfigError, nearest
from qkv.look.cells import coarser, onto_cells, onto_pixels
from qkv.look.faithfulness import Faithfulness, deletion_insertion

__all__ = ["FILLS", "PatchFaithfulness", "centre", "patch_faithfulness"]

Image = Float[Tensor, "1 3 height width"]
SAMPLES = 49  # random orders: one of them may reach by luck what is judged, and it is still called better than chance
STEPS = 12
CURVE_DIGITS = 5


def _blur(image: Image, sigma: float) -> Image:
    """Gaussian, the border repeated outwards."""
    reach = max(1, round(3 * sigma))
    bell = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, device=image.device) / sigma) ** 2)
    bell = (bell / bell.sum()).to(image.dtype)
    for kernel in (bell[:, None], bell[None]):
        down, along = kernel.shape[0] // 2, kernel.shape[1] // 2
        padded = functional.pad(image, (along, along, down, down), mode="replicate")
        image = functional.conv2d(padded, kernel.expand(3, 1, -1, -1), groups=3)
    return image


# What stands in the place of a patch that was taken away, of the image and the side of a patch: nothing is neutral for
# every model, so that an order is called better than chance only by what holds with each of them.
FILLS: dict[str, Callable[[Image, float], Image]] = {
    "mean": lambda image, side: image.mean((2, 3), keepdim=True).expand_as(image),
    "blur": _blur,
}


@dataclass(frozen=True)
class PatchFaithfulness:
    """Curves of one map's order on one picture, for each fill, on the grid of what was taken away."""

    by: str
    grid: Grid
    fills: Mapping[str, Faithfulness]

    @property
    def better_than_chance(self) -> bool:
        """With every fill."""
        return all(found.better_than_chance for found in self.fills.values())

    @property
    def sentence(self) -> str:
        """What the figures say, in plain words."""
        figures = "; ".join(
            f"{fill}: area {found.curve.area:.2f}, random order {found.random.area:.2f}, chance {found.chance:.2f}"
            for fill, found in self.fills.items()
        )
        better = [fill for fill, found in self.fills.items() if found.better_than_chance]
        if not better:
            return f"Taking away other patches changes the answer as much ({figures}): no better than chance here."
        says = f"Taking away what {self.by} points at changes the answer most ({figures}): better than chance here"
        return f"{says}." if self.better_than_chance else f"{says} with the fill {' and '.join(better)} only."

    def note(self) -> dict:
        """Plain data for ``trace.notes["faithfulness"]``."""
        fills = {}
        for fill, found in self.fills.items():
            curves = {self.by: found.curve, "random": found.random, **found.baselines}
            fills[fill] = {
                **found.note(),
                "curves": {
                    name: {"deletion": _short(curve.deletion), "insertion": _short(curve.insertion)}
                    for name, curve in curves.items()
                },
                "shares": _short(found.curve.shares),
            }
        return {
            "sentence": self.sentence,
            "better": self.better_than_chance,
            "by": self.by,
            "grid": [self.grid.rows, self.grid.columns],
            "fills": fills,
        }


def patch_faithfulness(
    score: Callable[[Tensor], Tensor],
    image: Image,
    importance: Mapping[str, tuple[Float[Tensor, " cell"], Grid]],
    *,
    fills: Sequence[str] = tuple(FILLS),
    samples: int = SAMPLES,
    steps: int = STEPS,
    most: int = 16,
    seed: int = 0,
    batch: int = 32,
) -> PatchFaithfulness:
    """Deletion and insertion (Petsiuk, Das & Saenko 2018, section 4.3) of patches, the most important first.

    Beside the first map stand the others that are given, the order from the centre outwards, and random orders. The
    patches taken away are the cells of the first map's grid; of a fine grid, blocks of them.

    Args:
        score: of each image of a batch: the probability of the answer under study, say.
        importance: a figure for each cell of a grid, extra tokens left out, by name; the first is judged.
        fills: what stands in the place of a patch: some of `FILLS`.
        samples: random orders.
        steps: how many steps from the whole image to nothing.
        most: patches along a side, at most.
        batch: images given to ``score`` at once.
    """
    if unknown := [fill for fill in fills if fill not in FILLS]:
        raise ConfigError(f"no fill is called {unknown[0]!r}", remedy=nearest(unknown[0], FILLS))
    by = next(iter(importance))
    patches = coarser(importance[by][1], most)
    orders = {
        name: onto_cells(onto_pixels(cells.double(), grid), patches).numpy()
        for name, (cells, grid) in importance.items()
    }
    own, others = orders.pop(by), {**orders, "centre": centre(patches)}
    found = {}
    for fill in fills:
        filled = FILLS[fill](image, max(patches.sides))

        def scores(removed: Bool[np.ndarray, "batch patch"], filled: Tensor = filled) -> list[float]:
            gone = onto_pixels(torch.from_numpy(removed), patches)[:, None].to(image.device)
            return score(torch.where(gone, filled, image)).tolist()

        found[fill] = deletion_insertion(
            scores, own, baselines=others, samples=samples, seed=seed, batch=batch, steps=steps
        )
    return PatchFaithfulness(by, patches, found)


def centre(grid: Grid) -> Float[np.ndarray, " cell"]:
    """The importance of a map that knows nothing but that photographers aim: the nearer to the middle the more."""
    down, along = (np.arange(side) - (side - 1) / 2 for side in (grid.rows, grid.columns))
    tall, wide = grid.sides
    return -np.hypot(down[:, None] * tall, along * wide).ravel()


def _short(values: Float[np.ndarray, " step"]) -> list[float]:
    return [round(float(value), CURVE_DIGITS) for value in values]
