"""What a captioner looked at for each word that it said, as heat over the picture; and whether the word hangs on it."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from PIL import Image

from qkv.axis import Grid, Tokens
from qkv.data.preprocess import Preprocess, resize
from qkv.errors import ConfigError, RunError, nearest
from qkv.look.faithfulness import Faithfulness, deletion_insertion
from qkv.look.record import Map, Trace
from qkv.tasks.captioner import Captioner, Source

__all__ = ["Word", "look_at_picture", "picture_note", "picture_of", "told_words"]

SHOWN = 448  # pixels of the longer side of the picture in the record, where it has as many
SAMPLES = 19  # random orders: enough for a chance of 0.05
MOST = 8  # blocks along a side that are taken away one by one: cells, or squares of cells where there are more


@dataclass(frozen=True)
class Word:
    """A word of a caption.

    Attributes:
        text: as it stands in the caption; of the end mark ``</s>``.
        heat: what was looked at to say it, as the rows and columns of the picture's grid: its pieces' mean.
        chance: probability of the word, the caption before it being given.
        beta: how much of what was seen the gate let through; None without a gate.
    """

    text: str
    heat: Float[np.ndarray, "row column"]
    chance: float
    beta: float | None


def look_at_picture(
    captioner: Captioner, picture: Source, *, how: Any = None, caption: str | None = None, faithful: bool = False,
    **which: Any,
) -> Trace:  # fmt: skip
    """Tell about a picture and see what each word looked at; the trace's notes hold the picture, as it was shown.

    Args:
        how: the search; the run's own if not given.
        caption: look at this caption instead of the model's own.
        faithful: also measure for each word whether it hangs on what it looked at.
        which: goes to `qkv.trace`: layers, heads.
    """
    pixels = captioner.read(picture)
    cells = captioner.see([captioner.codec.preprocess.shown(pixels)])
    answer = captioner.tell(cells, how)[0] if caption is None else captioner.score(cells, [caption])[0]
    name = str(picture) if not isinstance(picture, (bytes, np.ndarray)) else ""
    seen = captioner.look_at(cells, replace(answer, picture=name), **which)
    seen.notes["picture"] = _picture(name, pixels, captioner.codec.preprocess)
    if faithful:
        found = _faithfulness(captioner, pixels, answer.ids, seen)
        seen.notes["faithfulness"] = {
            "words": [
                one.note() | {"deletion": _short(one.curve), "random_deletion": _short(one.random)} for one in found
            ],
            "sentence": _summed(found),
        }
    return seen


def told_words(seen: Trace, layer: str | None = None, head: int | None = None) -> list[Word]:
    """The words of a look's caption, and the end mark, with their heat.

    Args:
        layer: whose map is read; the last that looks at the picture, if not given.
        head: one of its heads; the mean of all, if not given.
    """
    notes, map = seen.notes, _map(seen, layer)
    if head is not None and head not in map.heads:
        raise ConfigError(f"no head {head} in {map.name}", expected=f"one of {list(map.heads)}")
    heads = map.weights.mean(0) if head is None else map.weights[map.heads.index(head)]
    grid, beta = map.key, notes.get("beta")
    words = []
    for text, places in said_words(notes):
        rows = list(places)
        heat = heads[rows].mean(0).unflatten(0, (grid.rows, grid.columns)).numpy()
        chance = math.exp(sum(notes["token_scores"][i] for i in rows))
        gate = sum(beta[i] for i in rows) / len(rows) if beta else None
        words.append(Word(text, heat, chance, gate))
    return words


def said_words(notes: dict) -> list[tuple[str, tuple[int, ...]]]:
    """The words of a caption, and the steps that said each."""
    said = notes["said"]
    tokens = Tokens(tuple(said["pieces"]), tuple(tuple(span) for span in said["spans"]), said["text"])
    return [(word.text, word.positions) for word in tokens.words()]


def picture_of(seen: Trace) -> Image.Image:
    """The picture in a look's notes, as the model was shown it."""
    return Image.open(io.BytesIO(base64.b64decode(picture_note(seen.notes)["png"]))).convert("RGB")


def picture_note(notes: dict) -> dict:
    """What a look's notes hold of the picture; an error where `look_at_picture` did not put it there."""
    if not isinstance(notes["picture"], dict):
        raise RunError(
            "there is no picture in this trace, and nothing to lay the heat over",
            remedy="look with qkv.look.told.look_at_picture(captioner, picture), or save the record (.safetensors)",
        )
    return notes["picture"]


def _map(seen: Trace, layer: str | None) -> Map:
    known = [name for name, maps in seen.items() if maps and isinstance(maps[0].key, Grid)]
    if not known:
        raise RunError(
            "this captioner has no attention: it is given the mean of the picture at every word",
            remedy="to see where words come from, train one with --size.attention additive",
        )
    if layer is not None and layer not in known:
        raise ConfigError(f"no layer {layer!r} looks at the picture", remedy=nearest(layer, known))
    return seen[layer or known[-1]][0]


def _picture(name: str, pixels: np.ndarray, preprocess: Preprocess) -> dict:
    """What the model was shown, as a PNG in base64, larger where the file has more pixels."""
    rows, columns = preprocess.size
    left, top, right, bottom = region = preprocess.region(*pixels.shape[:2])
    larger = max(1.0, min((bottom - top) / rows, (right - left) / columns, SHOWN / max(rows, columns)))
    size = (round(rows * larger), round(columns * larger))
    shown = resize(pixels, size, region, preprocess.interpolation, preprocess.antialias)
    file = io.BytesIO()
    Image.fromarray(shown).save(file, "PNG")
    return {
        "name": name,
        "png": base64.b64encode(file.getvalue()).decode(),
        "size": [rows, columns],
        "region": [round(float(side), 3) for side in region],
        "file_size": list(pixels.shape[:2]),
    }


def _faithfulness(captioner: Captioner, pixels: np.ndarray, ids: Sequence[int], seen: Trace) -> list[Faithfulness]:
    """For each word: how its log-probability falls as the blocks of the picture that it looked at are taken away.

    A block is filled with the mean of the training pictures. What is taken away is so before the encoder, whose cells
    have seen what lies around them too. The random orders are the same for all words, and no picture is seen twice.
    """
    words = told_words(seen)
    grid = _map(seen, None).key
    shown = captioner.codec.preprocess.shown(pixels)
    image = captioner.codec.preprocess.normalise(torch.from_numpy(np.array(shown)))
    down, across = (-(-side // MOST) for side in (grid.rows, grid.columns))
    of_cell, blocks = _cells(grid, down, across), _blocks(grid, down, across)
    places = [places for _, places in said_words(seen.notes)]
    known: dict[bytes, np.ndarray] = {}

    def gains(removed: Bool[np.ndarray, "batch block"]) -> list[np.ndarray]:
        new = [row for row in removed if row.tobytes() not in known]
        for begin in range(0, len(new), 32):
            rows = new[begin : begin + 32]
            gone = torch.from_numpy(np.stack([row[blocks] for row in rows]))[:, None]
            with torch.inference_mode():
                cells = captioner.model.encode(image.masked_fill(gone, 0.0).to(captioner.device))
            own = captioner.gains(cells, [list(ids)] * len(rows)).cpu().numpy()
            known.update({row.tobytes(): gain for row, gain in zip(rows, own, strict=True)})
        return [known[row.tobytes()] for row in removed]

    found = []
    for word, steps in zip(words, places, strict=True):
        importance = np.array([word.heat.ravel()[of_cell == i].sum() for i in range(of_cell.max() + 1)])
        found.append(
            deletion_insertion(
                lambda removed, steps=steps: [float(gain[list(steps)].sum()) for gain in gains(removed)],
                importance,
                baselines={"uniform": np.ones_like(importance)},
                samples=SAMPLES,
            )
        )
    return found


def _cells(grid: Grid, down: int, across: int) -> np.ndarray:
    """The block of each cell of a grid, row by row."""
    columns = -(-grid.columns // across)
    return (np.arange(grid.rows)[:, None] // down * columns + np.arange(grid.columns) // across).ravel()


def _blocks(grid: Grid, down: int, across: int) -> np.ndarray:
    """The block of each pixel of what the model reads."""
    blocks, of_cell = np.zeros(grid.image, int), _cells(grid, down, across)
    for cell in range(len(grid)):
        left, top, right, bottom = (round(side) for side in grid.box(cell))
        blocks[top:bottom, left:right] = of_cell[cell]
    return blocks


def _short(curve: Any) -> list[float]:
    return [round(float(value), 4) for value in curve.deletion]


def _summed(found: list[Faithfulness]) -> str:
    better = sum(one.better_than_chance for one in found)
    return (
        f"{better} of {len(found)} words hang on what they looked at more than on other parts of the picture: taking "
        f"it away makes them less likely sooner than {SAMPLES} random orders do"
    )
