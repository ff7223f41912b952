"""One offline HTML page that shows a clip as a film strip: the weight of each frame, for any layer, head and query."""

from pathlib import Path

from qkv.look.clips import film
from qkv.look.packing import LIMIT, filled
from qkv.look.record import Trace

__all__ = ["film_page"]


def film_page(trace: Trace, *, title: str = "", limit: int = LIMIT) -> str:
    """The page of a look at one clip: nothing in it is fetched, and a content security policy forbids to try.

    Args:
        limit: as other pages take it; the maps over so few frames never reach it.
    """
    shown = film(trace)
    data = {
        "run": shown.run,
        "answer": shown.answer,
        "times": shown.axis.times,
        "prefix": shown.axis.prefix,
        "pooled": shown.pooled,
        "heads": shown.maps[0].heads,
        "layers": [
            {"name": name, "weights": [[[round(w, 5) for w in row] for row in head] for head in weights.tolist()]}
            for name, weights in shown.layers().items()
        ],
        "png": shown.png,
    }
    title = title or f"{Path(shown.answer['clip']).name} · what it looked at"
    return filled("film.html", title, ["page.css", "film.css"], ["parts.js", "film.js"], data, [])
