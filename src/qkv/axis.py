"""What each row and column of an attention map is, back to characters, pixels or seconds.

A layer only knows that it connects two streams ("source" and "target"); the model's ``axes(batch)`` says what each
stream is for each example, and these small values carry that knowledge to whoever draws or measures a map.
"""

import bisect
import re
from dataclasses import asdict, dataclass, field, replace

__all__ = ["Axis", "Frames", "Grid", "Tokens", "axis_from_json", "axis_to_json"]


@dataclass(frozen=True)
class Tokens:
    """Subword pieces of one text.

    ``pieces[i]`` is what position ``i`` shows; ``spans[i]`` is its ``(start, end)`` in characters of ``text``. A mark
    that stands for no character (``<s>``, ``</s>``) has an empty span.
    """

    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    text: str

    def __len__(self) -> int:
        return len(self.pieces)

    def words(self) -> list["Word"]:
        """The blank-separated words of ``text``, each with the positions of the pieces that begin in it.

        A mark without characters is a word of its own, so that every position belongs to exactly one word.
        """
        runs = [match.span() for match in re.finditer(r"\S+", self.text)]
        ends = [end for _, end in runs]
        words: list[Word] = []
        for position, (start, end) in enumerate(self.spans):
            inside = self.text[start:end]
            start += len(inside) - len(inside.lstrip())  # a piece may carry the blank before its word
            place = bisect.bisect_right(ends, start)  # a piece that is only a blank belongs to the word after it
            if not inside or place == len(runs):
                words.append(Word(self.pieces[position], (position,), (start, start), mark=True))
                continue
            run = runs[place]
            if words and words[-1].span == run and not words[-1].mark:
                words[-1] = replace(words[-1], positions=(*words[-1].positions, position))
            else:
                words.append(Word(self.text[slice(*run)], (position,), run, mark=False))
        return words


@dataclass(frozen=True)
class Word:
    """A word of a text: what to show, and the positions of its pieces."""

    text: str
    positions: tuple[int, ...]
    span: tuple[int, int]
    mark: bool


@dataclass(frozen=True)
class Grid:
    """Cells of an image, row by row, after ``prefix`` positions that have no place in it (``[CLS]``, registers).

    ``image`` is its height and width in pixels. ``cell`` is the height and width of a cell where cells do not share the
    image evenly: a model that pads has cells at the right and bottom that only begin inside the image.
    """

    rows: int
    columns: int
    image: tuple[int, int]
    prefix: tuple[str, ...] = ()
    cell: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.prefix) + self.rows * self.columns

    @property
    def sides(self) -> tuple[float, float]:
        """Height and width of a cell in pixels."""
        return self.cell or (self.image[0] / self.rows, self.image[1] / self.columns)

    def box(self, position: int) -> tuple[float, float, float, float] | None:
        """``(left, top, right, bottom)`` in pixels of the cell at ``position``; None for a prefix position."""
        cell = position - len(self.prefix)
        if cell < 0:
            return None
        row, column = divmod(cell, self.columns)
        height, width = self.image
        tall, wide = self.sides
        return (
            min(column * wide, width),
            min(row * tall, height),
            min((column + 1) * wide, width),
            min((row + 1) * tall, height),
        )


@dataclass(frozen=True)
class Frames:
    """Frames of a video, each at its time in seconds."""

    times: tuple[float, ...]
    prefix: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.prefix) + len(self.times)


Axis = Tokens | Grid | Frames


def axis_to_json(axis: Axis) -> dict:
    """Plain data for a record: ``{"type": "Tokens", ...}``."""
    return {"type": type(axis).__name__, **asdict(axis)}


def axis_from_json(data: dict) -> Axis:
    """The inverse of `axis_to_json`."""
    kinds = {"Tokens": Tokens, "Grid": Grid, "Frames": Frames}
    return kinds[data["type"]](**{k: _tuples(v) for k, v in data.items() if k != "type"})


def _tuples(value):
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
