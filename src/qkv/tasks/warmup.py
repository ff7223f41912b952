"""How long a run warms up, where its recipe chooses: a part of its steps, so that a short run gets past it."""

__all__ = ["warmup"]

UNKNOWN = 100  # steps, where it is not known how many a run will make


def warmup(steps: int | None, most: int = UNKNOWN, part: int = 20) -> int:
    """Steps until the rate is whole: one ``part``-th of all ``steps``, one at least and ``most`` at most."""
    return min(max(steps // part, 1), most) if steps else UNKNOWN
