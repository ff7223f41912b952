"""What a model of clips looked at, frame by frame: the weights under a film strip.

The row that matters is the one that the answer is read from: the class token's, or the mean of all rows where the head
reads the mean of the frames.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from qkv.axis import Frames
from qkv.errors import ConfigError, RunError
from qkv.look.measures import rollout
from qkv.look.record import Map, Trace

__all__ = ["Film", "choose_view", "film", "share"]

POOL = -1  # in place of a frame: what the clip's head reads


@dataclass(frozen=True)
class Film:
    """A clip's strip: the maps over its frames, a block each, and what was said.

    ``png`` are the frames as they were shown to the model, in base64; ``answer`` is `ClipAnswer.to_json`.
    """

    maps: list[Map]
    png: list[str]
    answer: dict
    run: str = ""

    @property
    def axis(self) -> Frames:
        return self.maps[0].key

    @property
    def pooled(self) -> str:
        """What the answer is read from."""
        return self.axis.prefix[0] if self.axis.prefix else "mean of frames"

    def layers(self) -> dict[str, Float[Tensor, "head token token"]]:
        """By what they are called: ``0``, ``1`` ... of the blocks, then ``rollout`` (Abnar & Zuidema 2020)."""
        found = {re.sub(r"\D*(\d+)\D*", r"\1", map.name): map.weights for map in self.maps}
        found["rollout"] = rollout(self.maps).weights
        return found

    def weights(self, layer: str = "", head: int | None = None, query: int = POOL) -> Float[Tensor, "frame"]:
        """What each frame got of one query's weight.

        Args:
            layer: a block's number, ``last`` of them, or ``rollout``; the rollout if not given, of a head the last.
            head: a place among the recorded heads; their mean if None.
            query: a frame, or `POOL`.

        Raises:
            ConfigError: there is no such layer, head or frame.
        """
        layers = self.layers()
        layer = layer or ("rollout" if head is None else "last")
        layer = [name for name in layers if name != "rollout"][-1] if layer == "last" else layer
        if layer not in layers:
            raise ConfigError(f"there is no layer {layer!r}", expected="last or one of " + ", ".join(layers))
        map, first = layers[layer], len(self.axis.prefix)
        if head is not None and not 0 <= head < len(map):
            raise ConfigError(f"layer {layer} has no head {head}", expected=f"0 to {len(map) - 1}")
        if not POOL <= query < len(self.axis.times):
            raise ConfigError(f"there is no frame {query}", expected=f"0 to {len(self.axis.times) - 1}")
        rows = map.mean(0) if head is None else map[head]
        row = rows[first + query] if query != POOL else rows[0] if first else rows.mean(0)
        return row[first:]


def film(trace: Trace) -> Film:
    """The film of a trace that `ClipClassifier.look` gave, read back from its file or not.

    Raises:
        RunError: it holds no map over frames, or not every row.
    """
    maps = [maps[0] for maps in trace.values() if maps and _over_frames(maps[0])]
    if not maps or "film" not in trace.notes:
        raise RunError("there is no film in this trace", expected="a look at a clip", remedy="keep the layers blocks.*")
    return Film(maps, trace.notes["film"], trace.notes["answer"], str(trace.notes.get("run", "")))


def share(weights: Float[Tensor, "frame"], marked: Sequence[bool]) -> tuple[float, float]:
    """How much of the weight lies on marked frames, and how much would by chance: their share of the frames."""
    total = float(weights.sum())
    on = float(weights[torch.tensor(list(marked), dtype=torch.bool)].sum()) / total if total else 0.0
    return on, sum(marked) / len(marked)


def choose_view(films: Sequence[Film], marked: Sequence[Sequence[bool]]) -> tuple[str, int | None]:
    """The layer and head (None: of the rollout) that put most of their weight on marked frames, in the mean over clips.

    Choose on some clips and measure `share` on others: the best of many on the same clips is no measure.
    """
    views = [
        (name, head if name != "rollout" else None)
        for name, heads in films[0].layers().items()
        for head in range(len(heads))
    ]

    def mean_share(view: tuple[str, int | None]) -> float:
        shares = [share(film.weights(*view), on)[0] for film, on in zip(films, marked, strict=True)]
        return sum(shares) / len(shares)

    return max(views, key=mean_share)


def _over_frames(map: Map) -> bool:
    whole = tuple(range(len(map.query))) == map.queries
    return map.kind == "self" and isinstance(map.key, Frames) and map.query == map.key and whole and len(map.key) > 0
