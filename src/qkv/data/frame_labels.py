"""What is marked in a clip, frame by frame, as a table says it: a class for each frame, or spans.

``0 0 1 1 0`` gives each frame its class. ``2-3`` marks frames from 0, both ends in; ``1.5-2.5s`` marks the frames that
begin in those seconds; ``cut:2-3 fade:8-9`` says of which class. What no span marks is `BACKGROUND`.
"""

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["BACKGROUND", "frame_classes", "frame_labels"]

BACKGROUND, MARKED = "0", "1"
_SPAN = re.compile(r"(?:(?P<name>[^\s:]+):)?(?P<begin>\d+(?:\.\d+)?)-(?P<end>\d+(?:\.\d+)?)(?P<seconds>s?)")


def frame_labels(value: Any, times: Sequence[float]) -> tuple[str, ...]:
    """The class of each frame of a clip, whose frames begin at ``times``.

    Raises:
        ValueError: it fits neither form, or another number of frames; the message says why.
    """
    steps = [str(step) for step in value] if isinstance(value, list) else str(value).replace(",", " ").split()
    spans = [_SPAN.fullmatch(step) for step in steps]
    if not all(spans):
        if any(spans):
            raise ValueError(f"{steps[[bool(s) for s in spans].index(False)]!r} is no span such as 2-3 or 1.5-2.5s")
        if len(steps) != len(times):
            raise ValueError(f"{len(steps)} frames are labelled, and the clip has {len(times)}")
        return tuple(steps)
    labels = [BACKGROUND] * len(times)
    for span in spans:
        begin, end = float(span["begin"]), float(span["end"])
        if end < begin:
            raise ValueError(f"the span {span[0]!r} ends before it begins")
        places = times if span["seconds"] else range(len(times))
        if begin > places[-1]:
            raise ValueError(f"the span {span[0]!r} begins after the last frame, {places[-1]:g}")
        for number, place in enumerate(places):
            if begin <= place <= end:
                labels[number] = span["name"] or MARKED
    return tuple(labels)


def frame_classes(labels: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All classes of frames, `BACKGROUND` first where there is one, the others sorted."""
    found = {name for some in labels for name in some}
    return tuple(sorted(found, key=lambda name: (name != BACKGROUND, name)))
