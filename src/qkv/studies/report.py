"""A study as tables, pictures and one page. All is read from its results, so it can be made again at any time."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.errors import RunError
from qkv.look.alignment import as_predicted
from qkv.look.draw import grid_figure
from qkv.look.record import Trace
from qkv.studies.pages import COLOURS, finish, mean, new_chart, spread, svg, table, write_charts, write_page
from qkv.studies.study import Study
from qkv.train.progress import clock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["at_equal_minutes", "figures", "rows", "write_report"]

NAMES = {"bleu": "BLEU", "bleu_char": "BLEU (characters)", "chrf": "chrF", "aer": "AER"}


def rows(study: Study) -> list[dict[str, str]]:
    """The first table: under one budget of target tokens, a row for each rung, its seeds averaged."""
    made = []
    for results in _by_rung(study).values():
        first = results[0]
        row = {"model": first["label"], "parameters": f"{mean(results, 'parameters') / 1e6:.2f} M"}
        for key in (first["score"], "chrf"):
            row[NAMES[key]] = spread(results, key, 1)
        row["exact"] = f"{mean(results, 'exact'):.0%}"
        if any("aer" in result for result in study.results):
            row["AER"] = spread(results, "aer", 3) if "aer" in first else "–"
        row["time"] = clock(60 * mean(results, "minutes"))
        row["tokens/s"] = f"{mean(results, 'tokens_per_second'):,.0f}"
        row["memory"] = f"{mean(results, 'memory_mb'):,.0f} MB"
        made.append(row)
    return made


def at_equal_minutes(study: Study) -> tuple[float, list[dict[str, str]]]:
    """The second table: dev scores after as many minutes as the quickest rung took in all."""
    minutes = min(result["minutes"] for result in study.results)
    made = []
    for results in _by_rung(study).values():
        reached = [_at(result["curve"], minutes) for result in results]
        row = {"model": results[0]["label"]}
        if all(reached):
            row["dev score"] = f"{sum(point['score'] for point in reached) / len(reached):.1f}"
            row["at step"] = f"{sum(point['step'] for point in reached) / len(reached):,.0f}"
        else:
            row |= {"dev score": "none yet", "at step": "–"}
        made.append(row)
    return minutes, made


def figures(study: Study) -> dict[str, "Figure"]:
    """Charts by file name: scores by source length, dev scores over time, gradients at the encoder's steps."""
    score = NAMES[study.results[0]["score"]]
    made = {name: new_chart() for name in TITLES}
    axes = {name: each for name, (_, each) in made.items()}
    for colour, results in zip(_colours(study), _by_rung(study).values(), strict=True):
        label = results[0]["label"]
        groups = [group["name"] for group in results[0]["by_length"]]
        means = [
            sum(result["by_length"][i]["scores"][result["score"]] for result in results) / len(results)
            for i in range(len(groups))
        ]
        axes["by_length"].plot(groups, means, "o-", color=colour, label=label, markersize=4)
        for result in results:
            named = {"label": label} if result is results[0] else {}
            points = [(point["minutes"], point["score"]) for point in result["curve"]]
            axes["curves"].plot(*zip(*points, strict=True), color=colour, linewidth=1.4, **named)
            axes["gradients"].plot(result["gradient"], color=colour, linewidth=1.4, **named)
    axes["by_length"].set(xlabel="words of the source", ylabel=f"test {score}", ylim=(0, None))
    axes["curves"].set(xlabel="minutes of training", ylabel=f"dev {score}", ylim=(0, None))
    axes["gradients"].set(
        xlabel="steps back from the last one that the encoder read", ylabel="length of the gradient", yscale="log"
    )
    for name, each in axes.items():
        finish(each, TITLES[name])
    return {name: chart for name, (chart, _) in made.items()}


TITLES = {
    "by_length": "Translation by length of the source",
    "curves": "Learning over time",
    "gradients": "What of the gradient reaches each step of the encoder",
}


def write_report(study: Study) -> Path:
    """Write the charts (``.svg`` and ``.png``) and ``study.html``, one page with everything in it."""
    minutes, equal = at_equal_minutes(study)
    first = study.results[0]
    parts = {
        "budget": table(rows(study)),
        "time": clock(60 * minutes),
        "equal": table(equal),
        "signature": html.escape(first["signatures"][first["score"]]),
        "charts": write_charts(figures(study), study.folder),
        "sentences": "\n".join(_sentence(study, number) for number in range(len(first["sentences"]))),
    }
    return write_page("report.html", parts, study.folder / "study.html")


def _sentence(study: Study, number: int) -> str:
    """One test sentence: what each rung said of it, and what it looked at, side by side."""
    of_first_seeds = [results[0] for results in _by_rung(study).values()]
    told = of_first_seeds[0]["sentences"][number]
    cells = []
    for result in of_first_seeds:
        own = result["sentences"][number]
        right = " right" if own["translation"] == own["reference"] else ""
        cells.append(
            f'<div class="rung"><h4>{html.escape(result["label"])}</h4>'
            f'<p class="said{right}" lang="">{html.escape(own["translation"]) or "(nothing)"}</p>'
            f"{_picture(study, result, own['look']) if 'look' in own else ''}</div>"
        )
    return (
        f'<section><h3 lang="">{html.escape(told["source"])}</h3>'
        f'<p class="reference" lang="">{html.escape(told["reference"])}</p>'
        f'<div class="side">{"".join(cells)}</div></section>'
    )


def _picture(study: Study, result: Mapping[str, Any], look: str) -> str:
    """The map that alignments are read off, or of a model without attention its gradients, rows as predicted words."""
    try:
        trace = Trace.load(study.folder / look)
    except RunError as error:
        record = f"results/{result['rung']}-{result['seed']}.json"
        again = f"remove {record} and run the same command again: it is measured and drawn anew"
        raise RunError(f"{error} It belongs to the result of {result['label']}", remedy=again) from None
    note = trace.notes.get("alignment") or {}
    map = trace[note["layer"]][0] if note else trace.select()[0]
    if not note or note.get("reading") == "unshifted":
        map = as_predicted(map)
    return svg(grid_figure(map, links=note.get("links", ())))


def _by_rung(study: Study) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for result in study.results:
        grouped.setdefault(result["rung"], []).append(result)
    return grouped


def _colours(study: Study) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(len(_by_rung(study)))]


def _at(curve: Sequence[Mapping[str, float]], minutes: float) -> Mapping[str, float] | None:
    """The last evaluation before a time."""
    return next((point for point in reversed(curve) if point["minutes"] <= minutes + 1e-9), None)
