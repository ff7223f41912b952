"""One offline page of some words: maps of them and their neighbours, who is nearest, arrows of analogies, and ratios.

A map in two dimensions keeps little of a hundred: it says how much. Neighbours are by the cosine of the whole vectors.
"""

import html
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from qkv.errors import ConfigError
from qkv.look.packing import filled
from qkv.tasks.word_ratios import Ratios
from qkv.tasks.word_vectors import WordVectors

__all__ = ["project", "word_page"]

WIDTH, HEIGHT, MARGIN = 560, 430, 46
COLOURS = ("#1f6fb2", "#c2571a", "#0e9f8e", "#7a3fb8", "#b0183f", "#5b7a12", "#8a5a00", "#4c566a")
FEWEST = 5  # points of a t-SNE


def word_page(
    vectors: WordVectors,
    words: Sequence[str],
    around: int = 10,
    arrows: Sequence[tuple[str, str]] = (),
    ratios: Sequence[Ratios] = (),
) -> str:
    """The page.

    Args:
        words: whose neighbours are shown.
        around: how many of each.
        arrows: drawn from word to word; parallel ones are an analogy.
        ratios: tables of pairs of words.
    """
    groups: dict[str, int] = {}
    near = {word: vectors.nearest(word, around) for word in words}
    for number, word in enumerate(words):
        groups[word] = number
    for one, other in arrows:
        for word in (one, other):
            vectors.row(word)
            groups.setdefault(word, len(words))
    for number, word in enumerate(words):
        for neighbour in near[word]:
            groups.setdefault(neighbour.word, number)
    shown = list(groups)
    units = np.stack([vectors.unit(vectors.row(word)) for word in shown])
    maps = [_map(title, points, shown, groups, words, arrows) for title, points in project(units)]
    tables = (_neighbours(word, near[word], COLOURS[i % len(COLOURS)]) for i, word in enumerate(words))
    run = f"{vectors.folder.name if vectors.folder else ''} · {vectors.kind} · "
    return filled(
        "words.html",
        ", ".join(words),
        ("words.css",),
        run=html.escape(run + f"{len(vectors):,} words of {vectors.dim} numbers"),
        maps="\n".join(maps),
        neighbours="\n".join(tables),
        arrows=_arrows(vectors, arrows),
        ratios="\n".join(map(_ratios, ratios)),
    )


def project(units: Float[np.ndarray, "word dim"]) -> list[tuple[str, Float[np.ndarray, "word 2"]]]:
    """The words in a plane: by principal components, and by t-SNE (van der Maaten and Hinton 2008) if there are enough.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    try:
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE
    except ImportError:
        raise ConfigError("maps of words need scikit-learn", remedy="pip install 'qkv[study]'") from None
    if len(units) < 2:
        return [("One word", np.zeros((1, 2)))]
    components = PCA(min(2, *units.shape), svd_solver="full").fit(units)
    plane = components.transform(units)
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    kept = np.nan_to_num(components.explained_variance_ratio_).sum()
    found = [(f"Principal components ({kept:.0%} of the variance)", plane)]
    if len(units) >= FEWEST:
        perplexity = min(30.0, (len(units) - 1) / 3)
        close = TSNE(2, perplexity=perplexity, init="random", random_state=0).fit_transform(units.astype(np.float64))
        found.append((f"t-SNE (perplexity {perplexity:.3g}): only nearness means something", close))
    return found


def _map(title: str, points: np.ndarray, shown: list[str], groups: dict[str, int], words: Sequence[str], arrows) -> str:
    low, span = points.min(0), np.maximum(points.max(0) - points.min(0), 1e-9)
    places = MARGIN + (points - low) / span * (np.array([WIDTH, HEIGHT]) - 2 * MARGIN)
    places[:, 1] = HEIGHT - places[:, 1]
    at = dict(zip(shown, places, strict=True))
    drawn = []
    for one, other in arrows:
        (x, y), (u, v) = at[one], at[other]
        drawn.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" class="arrow" marker-end="url(#head)"/>'
        )
    for word in reversed(shown):
        (x, y), given = at[word], word in words
        left = bool(x > 0.75 * WIDTH)  # the word stands left of its point, inside the picture
        colour = COLOURS[groups[word] % len(COLOURS)]
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 if given else 3}" fill="{colour}"/>'
            f'<text x="{x - 7 if left else x + 7:.1f}" y="{y + 4:.1f}" fill="{colour}"'
            f"{' class=given' * given}{' text-anchor=end' * left}>{html.escape(word)}</text>"
        )
    return (
        f'<figure><figcaption>{html.escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{html.escape(title, quote=True)}"><defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
        + "".join(drawn) + "</svg></figure>"
    )  # fmt: skip


def _neighbours(word: str, near, colour: str) -> str:
    rows = "".join(
        f'<tr><td>{html.escape(n.word)}</td><td><i style="width:{max(n.score, 0) * 90:.0f}px;background:{colour}"></i>'
        f"</td><td>{n.score:.3f}</td></tr>"
        for n in near
    )
    return f'<table><caption style="color:{colour}">{html.escape(word)}</caption>{rows}</table>'


def _arrows(vectors: WordVectors, arrows) -> str:
    """How parallel the arrows are, in the whole space: the cosine of each pair's difference with that of the first."""
    if not arrows:
        return ""
    ways = [vectors.unit(vectors.row(other)) - vectors.unit(vectors.row(one)) for one, other in arrows]
    ways = [way / (np.linalg.norm(way) or 1) for way in ways]
    rows = "".join(
        f"<tr><td>{html.escape(one)} → {html.escape(other)}</td><td>{float(way @ ways[0]):.3f}</td></tr>"
        for (one, other), way in zip(arrows, ways, strict=True)
    )
    return (
        "<h2>Arrows</h2><p class=soft>Cosine of each arrow with the first, in the whole space: 1 is parallel.</p>"
        f"<table><tr><th>arrow</th><th>cosine</th></tr>{rows}</table>"
    )


def _ratios(told: Ratios) -> str:
    one, other = html.escape(told.one), html.escape(told.other)
    rows = "".join(
        f"<tr><td>{html.escape(row.context)}</td><td>{row.one:.2e}</td><td>{row.other:.2e}</td>"
        f"<td>{'–' if row.ratio is None else f'{row.ratio:.3g}'}</td></tr>"
        for row in told.rows
    )
    return (
        f"<h2>What tells {one} from {other}</h2>"
        f"<p class=soft>How likely a word k stands near each of the two; where the ratio is far from 1, k belongs to "
        f"one of them (Pennington et al. 2014, table 1). Counted in {html.escape(told.counted)}.</p>"
        f"<table><tr><th>k</th><th>P(k | {one})</th><th>P(k | {other})</th><th>ratio</th></tr>{rows}</table>"
    )
