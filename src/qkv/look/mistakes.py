"""One offline page of the pictures that a model was most wrong about: what is true, what it said, where it looked."""

import base64
import html
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from qkv.look.packing import filled
from qkv.look.pictures import look_at
from qkv.store import write_text
from qkv.tasks.evaluate_pictures import Mistake, PictureEvaluation
from qkv.tasks.number_scores import shown
from qkv.tasks.picture_classifier import PictureClassifier

__all__ = ["Looked", "card", "filled_cards", "looked_by", "mistakes_page", "write_mistakes"]

SMALL = 96  # pixels up to which a picture is drawn in squares
TINT, STRENGTH = (255, 120, 20), 0.7  # how what was looked at is coloured, and how much at most
BARS = 5
MOST_LOOKED = 3  # classes that are shown beside a picture

# What a model looked at in a picture, as some captions with a weight for each cell of a grid, whatever their scale.
Looked = Callable[[Mistake], list[tuple[str, Float[np.ndarray, "row column"]]]]


def write_mistakes(path: Path, evaluation: PictureEvaluation, looked: Looked | None = None) -> None:
    """Write `mistakes_page` to a file."""
    write_text(Path(path), mistakes_page(evaluation, looked))


def mistakes_page(evaluation: PictureEvaluation, looked: Looked | None = None) -> str:
    """The page: a card for each of ``evaluation.mistakes``, the worst first.

    Args:
        looked: what to show beside a picture, which is coloured where the weights are.
    """
    title = f"{len(evaluation.mistakes)} worst mistakes of {evaluation.pictures:,} pictures, {evaluation.where}"
    cards = [_card(mistake, looked(mistake) if looked else []) for mistake in evaluation.mistakes]
    return filled_cards(title, evaluation.scores, cards)


def filled_cards(title: str, scores: Mapping[str, float], cards: Sequence[str]) -> str:
    """A page of cards (see `card`) under the scores."""
    told = "  ".join(shown(name, value, ".4g") for name, value in scores.items())
    return filled(
        "mistakes.html",
        title,
        ("page.css", "mistakes.css"),
        scores=html.escape(told if cards else f"{told}  There is no mistake."),
        cards="\n".join(cards),
    )


def looked_by(classifier: PictureClassifier) -> Looked:
    """What speaks for the class that was said and for those that are true: the gradient-weighted rollout of a model
    that attends, Grad-CAM of one that does not."""
    whole = replace(classifier.codec.preprocess, crop=1.0)  # what a mistake shows is cropped already
    codec = replace(classifier.codec, preprocess=whole)
    opened = SimpleNamespace(model=classifier.model, codec=codec, device=classifier.device)

    def looked(mistake: Mistake) -> list[tuple[str, np.ndarray]]:
        classes = list(dict.fromkeys([*mistake.answer.labels, *mistake.labels]))[:MOST_LOOKED]
        seen = look_at(opened, mistake.pixels, classes=classes, top=1)
        map = seen["gradient-rollout" if "gradient-rollout" in seen else "grad-cam"][0]
        rows = map.weights[0, :, len(map.key.prefix) :].unflatten(1, (map.key.rows, map.key.columns)).numpy()
        names = map.query.pieces[: len(classes) or 1]
        return [(f"for {name}", cells) for name, cells in zip(names, rows, strict=False)]

    return looked


def _card(mistake: Mistake, looks: list[tuple[str, np.ndarray]]) -> str:
    answer = mistake.answer
    if answer.number is not None:
        said, bars = f"{answer.number:g}", ""
    else:
        said, bars = answer.label or "none", _bars(mistake)
    figures = [_figure(mistake.pixels, "")]
    figures += [_figure(_tinted(mistake.pixels, cells), caption) for caption, cells in looks]
    return card(answer.name, mistake.truth or "none", said, "".join(figures), bars)


def card(name: str, truth: str, said: str, figures: str, below: str = "") -> str:
    """One mistake: its name, what is true and what was said, then HTML of pictures and of what stands below."""
    return (
        f'<section class="card"><p class="name">{_escaped(name)}</p>'
        f'<p>it is <span class="true">{_escaped(truth)}</span>, it said <span class="said">{_escaped(said)}</span></p>'
        f'<div class="pictures">{figures}</div>{below}</section>'
    )


def _escaped(text: str) -> str:
    """A file's name may be no text."""
    return html.escape(text.encode("utf-8", "replace").decode())


def _bars(mistake: Mistake) -> str:
    """The likeliest classes, and the true ones among them or after them."""
    answer, true = mistake.answer, set(mistake.labels)
    shown = dict(answer.top(BARS))
    for name, chance in answer.top(len(answer.classes)):
        if name in true:
            shown.setdefault(name, chance)
    rows = [
        f"<span>{html.escape(name)}</span>"
        f'<i{" class=is-true" if name in true else ""} style="width:{max(100 * chance, 0.5):.1f}%"></i>'
        f"<span>{chance:.3f}</span>"
        for name, chance in shown.items()
    ]
    return f'<div class="bars">{"".join(rows)}</div>'


def _figure(pixels: UInt8[np.ndarray, "height width 3"], caption: str) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    source = base64.b64encode(file.getvalue()).decode()
    small = ' class="small"' if max(pixels.shape[:2]) <= SMALL else ""
    text = html.escape(caption)
    below = f"<figcaption>{text}</figcaption>" if caption else ""
    return f'<figure{small}><img src="data:image/png;base64,{source}" alt="{text}">{below}</figure>'


def _tinted(
    pixels: UInt8[np.ndarray, "height width 3"], cells: Float[np.ndarray, "row column"]
) -> UInt8[np.ndarray, "height width 3"]:
    """The picture with its cells coloured by their weights, the largest of which is full colour."""
    height, width = pixels.shape[:2]
    rows = np.arange(height) * cells.shape[0] // height
    columns = np.arange(width) * cells.shape[1] // width
    share = np.nan_to_num(cells).clip(0)
    share = STRENGTH * (share / max(float(share.max()), 1e-12))[rows][:, columns, None]
    return ((1 - share) * pixels + share * np.array(TINT)).astype(np.uint8)
