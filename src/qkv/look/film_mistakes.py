"""One offline page of the clips that a model was most wrong about: a film strip each, with the weight of each frame."""

import html
from pathlib import Path

from qkv.look.clips import film
from qkv.look.mistakes import card, filled_cards
from qkv.look.record import Trace
from qkv.store import write_text
from qkv.tasks.evaluate_clips import ClipEvaluation, said

__all__ = ["MOST", "film_mistakes_page", "write_film_mistakes"]

MOST = 24  # mistakes of a page


def write_film_mistakes(path: Path, evaluation: ClipEvaluation) -> None:
    """Write `film_mistakes_page` to a file."""
    write_text(Path(path), film_mistakes_page(evaluation))


def film_mistakes_page(evaluation: ClipEvaluation) -> str:
    """The page: a card for each of ``evaluation.looks``, the worst mistake first."""
    cards = [
        card(mistake["clip"], mistake["true"], said(mistake), *_strip(look))
        for mistake, look in zip(evaluation.mistakes, evaluation.looks, strict=False)
    ]
    return filled_cards(f"{len(cards)} worst mistakes of {evaluation.clips:,} clips", evaluation.scores, cards)


def _strip(look: Trace) -> tuple[str, str]:
    """The frames, each over a bar as long as its share of the largest weight; and what the weights are."""
    shown = film(look)
    weights = shown.weights().tolist()
    most = max([*weights, 1e-9])
    names = shown.answer.get("frames") or [""] * len(weights)
    figures = [
        f'<figure class="frame small"><img src="data:image/png;base64,{png}" alt="frame at {time:g} s">'
        f'<i style="width:{max(100 * weight / most, 0):.1f}%"></i>'
        f"<figcaption>{weight:.2f}{' ' + html.escape(name) if name not in ('', '0') else ''}</figcaption></figure>"
        for png, time, weight, name in zip(shown.png, shown.axis.times, weights, names, strict=True)
    ]
    told = f"what {html.escape(shown.pooled)} gives to each frame, over all blocks"
    return "".join(figures), f'<p class="name">{told}</p>'
