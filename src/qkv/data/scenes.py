"""Drawn scenes that the package brings along: two coloured shapes, a sentence that tells where they stand, and for each
word of it the shape that it means.

"a red circle left of a blue square": the first shape is always the one on the left, or the upper one, so that a scene
has one right caption in each language. What can be said is split once: some combinations are never in training, though
every colour, shape, relation and coloured shape is. All is a pure function of (seed, number).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from qkv.errors import ConfigError

__all__ = ["COLOURS", "SHAPES", "Language", "Said", "Scene", "combinations", "scenes", "write_scenes"]

Language = Literal["en", "ko"]
Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels

COLOURS = {  # name: red, green, blue, and the Korean for "of this colour"
    "red": ((214, 40, 40), "빨간"),
    "blue": ((38, 70, 200), "파란"),
    "green": ((34, 150, 60), "초록색"),
    "yellow": ((240, 200, 30), "노란"),
    "purple": ((140, 60, 170), "보라색"),
    "orange": ((240, 130, 20), "주황색"),
}
SHAPES = {"circle": "원", "square": "사각형", "triangle": "삼각형", "cross": "십자가"}
RELATIONS = {"left of": "왼쪽에", "above": "위에"}
UNSEEN = 5  # one combination of so many is kept for tests


class Said(NamedTuple):
    """A word of a caption: where it stands in it, in characters, and the box of the shape that it means (or none)."""

    word: str
    span: tuple[int, int]
    box: Box | None


@dataclass(frozen=True)
class Scene:
    """A picture, what it shows, and its two captions word by word."""

    pixels: UInt8[np.ndarray, "row column 3"]
    combination: tuple[str, str, str, str, str]  # colour, shape, relation, colour, shape
    boxes: tuple[Box, Box]

    def caption(self, language: Language = "en") -> str:
        return " ".join(word for word, _ in self._words(language))

    def said(self, language: Language = "en") -> list[Said]:
        """The words of the caption; nouns and colours have the box of their shape."""
        words, at = [], 0
        for word, which in self._words(language):
            words.append(Said(word, (at, at + len(word)), None if which is None else self.boxes[which]))
            at += len(word) + 1
        return words

    def _words(self, language: Language) -> list[tuple[str, int | None]]:
        colour, shape, relation, other_colour, other_shape = self.combination
        if language == "en":
            first = [(_article(colour), None), (colour, 0), (shape, 0)]
            second = [(_article(other_colour), None), (other_colour, 1), (other_shape, 1)]
            return [*first, *((word, None) for word in relation.split()), *second]
        # "a blue square's left-at a red circle": in Korean the other shape comes first.
        second = [(COLOURS[other_colour][1], 1), (SHAPES[other_shape], 1)]
        return [*second, (RELATIONS[relation], None), (COLOURS[colour][1], 0), (SHAPES[shape], 0)]


@cache
def combinations(part: str) -> tuple[tuple[str, str, str, str, str], ...]:
    """What scenes of a part can show: ``test`` has one of five, ``train`` (and ``dev``) the others."""
    every = [
        (*one, relation, *other)
        for one, relation, other in product(product(COLOURS, SHAPES), RELATIONS, product(COLOURS, SHAPES))
        if one != other
    ]
    chance = np.random.default_rng(20)
    unseen = set(chance.permutation(len(every))[: len(every) // UNSEEN].tolist())
    return tuple(one for i, one in enumerate(every) if (i in unseen) == (part == "test"))


def scenes(seed: int, part: str = "train", size: int = 64, skip: int = 0) -> Iterator[Scene]:
    """Scenes of a part without end. ``skip`` begins at a later one: numbers from 0.

    Raises:
        ConfigError: a picture too small for two shapes.
    """
    if size < 32:
        raise ConfigError(f"scenes of {size} pixels", expected="32 or more")
    known, number = combinations(part), skip
    while True:
        chance = np.random.default_rng((seed, ("train", "dev", "test").index(part), number))
        yield _scene(known[int(chance.integers(len(known)))], size, chance)
        number += 1


def write_scenes(
    folder: Path, counts: dict[str, int], language: Language = "en", seed: int = 0, size: int = 64
) -> None:
    """PNG files in ``folder/PART`` and ``folder/PART.jsonl`` as ``qkv train caption`` takes them.

    A line holds ``image`` and ``caption``, and ``words``: for each word, what it is and the box of the shape it means.
    """
    for part, count in counts.items():
        (folder / part).mkdir(parents=True)
        with open(folder / f"{part}.jsonl", "w", encoding="utf-8") as lines:
            for i, scene in enumerate(islice(scenes(seed, part, size), count)):
                name = f"{part}/{i:05}.png"
                Image.fromarray(scene.pixels).save(folder / name)
                words = [{"word": said.word, "box": said.box} for said in scene.said(language)]
                line = {"image": name, "caption": scene.caption(language), "words": words}
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _scene(combination: tuple[str, str, str, str, str], size: int, chance: np.random.Generator) -> Scene:
    colour, shape, relation, other_colour, other_shape = combination
    sides = [int(chance.integers(size // 5, size // 3)) for _ in range(2)]
    # Along the relation the two stand apart; across it they may stand anywhere that keeps the relation the plain one.
    while True:
        corners = [[int(chance.integers(0, size - side + 1)) for _ in range(2)] for side in sides]
        middles = [[place + side / 2 for place in corner] for corner, side in zip(corners, sides, strict=True)]
        down, across = middles[1][0] - middles[0][0], middles[1][1] - middles[0][1]
        along, beside = (across, down) if relation == "left of" else (down, across)
        if along >= sum(sides) / 2 + 2 and abs(beside) <= 0.6 * along:
            break
    ground = chance.uniform(200, 255, 3)
    pixels = np.clip(ground + chance.normal(0, 6, (size, size, 3)), 0, 255)
    boxes = []
    for (name, form), (top, left), side in zip(
        ((colour, shape), (other_colour, other_shape)), corners, sides, strict=True
    ):
        paint = np.clip(np.array(COLOURS[name][0]) + chance.normal(0, 8, 3), 0, 255)
        inside = pixels[top : top + side, left : left + side]
        inside[_form(form, side)] = paint
        boxes.append((left, top, left + side, top + side))
    return Scene(pixels.astype(np.uint8), combination, tuple(boxes))


def _form(shape: str, side: int) -> Bool[np.ndarray, "row column"]:
    rows, columns = np.mgrid[:side, :side]
    middle = (side - 1) / 2
    across, down = abs(columns - middle), abs(rows - middle)
    return {
        "circle": np.hypot(across, down) <= side / 2,
        "square": np.ones((side, side), bool),
        "triangle": across <= (rows + 1) / 2,
        "cross": np.minimum(across, down) <= side / 6,
    }[shape]
