"""The study of pretraining as a table, charts, a sentence and one page. All is read from its results."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.studies.pages import COLOURS, finish, mean, new_chart, spread, table, write_charts, write_page
from qkv.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["difference", "figures", "rows", "write_report"]


def rows(study: Study) -> list[dict[str, str]]:
    """A row for each start: how pretraining ended on dev, and the classifier's scores on test in percent."""
    made = []
    for results in _by_start(study):
        pretrained = "pretrained_accuracy" in results[0]
        follows = "pretrained_next_accuracy" in results[0]
        made.append({
            "start": results[0]["label"],
            "words": spread(results, "pretrained_accuracy", 1, unit=0.01) if pretrained else "–",
            "next": spread(results, "pretrained_next_accuracy", 1, unit=0.01) if follows else "–",
            "min before": f"{mean(results, 'pretrained_minutes'):.1f}" if pretrained else "–",
            "accuracy": spread(results, "accuracy", 1, unit=0.01),
            "macro F1": spread(results, "macro_f1", 1, unit=0.01),
            "steps": f"{mean(results, 'steps'):,.0f}",
            "min": f"{mean(results, 'minutes'):.1f}",
        })  # fmt: skip
    return made


def difference(study: Study) -> str:
    """What next sentences changed of the test accuracy, seed by seed, in a sentence; empty where it is not known."""
    found = {(result["start"], result["seed"]): 100 * result["accuracy"] for result in study.results}
    seeds = sorted(seed for start, seed in found if start == "pairs" and ("packed", seed) in found)
    if not seeds:
        return ""
    changes = [found["pairs", seed] - found["packed", seed] for seed in seeds]
    average = sum(changes) / len(changes)
    told = f"Next sentences changed test accuracy by {average:+.1f} points"
    if len(seeds) == 1:
        return f"{told} with the one seed tried, which tells nothing of chance: try more with --seeds."
    agree = all(change > 0 for change in changes) or all(change < 0 for change in changes)
    each = ", ".join(f"{change:+.1f}" for change in changes)
    return f"{told} ({each} with {len(seeds)} seeds): the seeds {'agree' if agree else 'do not agree'} on the sign."


def figures(study: Study) -> dict[str, "Figure"]:
    """Charts by file name: test accuracy of each seed, dev accuracy on the way, and hidden words in pretraining."""
    made = {name: new_chart() for name in TITLES}
    by_start = _by_start(study)
    for place, (colour, results) in enumerate(zip(COLOURS[2:], by_start, strict=False)):
        values, label = [100 * result["accuracy"] for result in results], results[0]["label"]
        axes = made["by_start"][1]
        axes.plot([place] * len(values), values, "o", color=colour, markersize=5, label=label)
        axes.hlines(sum(values) / len(values), place - 0.25, place + 0.25, color=colour, linewidth=1.6)
        for result in results:
            for name, key in (("classifying", "curve"), ("pretraining", "pretrained_curve")):
                steps, reached = _line(result.get(key, []))
                first = label if result is results[0] and steps else None
                made[name][1].plot(steps, reached, color=colour, linewidth=1.3, label=first)
    majority = 100 * study.results[0]["majority"]
    made["by_start"][1].axhline(majority, color=COLOURS[0], linestyle=":", label="always the largest class")
    made["by_start"][1].set_xticks(range(len(by_start)), ["" for _ in by_start])
    made["by_start"][1].set(ylabel="test accuracy (%)", xlim=(-0.6, len(by_start) - 0.4))
    made["classifying"][1].set(xlabel="steps of classifying", ylabel="dev accuracy (%)")
    made["pretraining"][1].set(xlabel="steps of pretraining", ylabel="hidden words said right (%)")
    if not any("pretrained_curve" in result for result in study.results):
        del made["pretraining"]
    for name, (_, axes) in made.items():
        finish(axes, TITLES[name])
    return {name: chart for name, (chart, _) in made.items()}


TITLES = {
    "by_start": "What a classifier starts from",
    "classifying": "Learning to classify",
    "pretraining": "Pretraining, on held-out text",
}


def write_report(study: Study) -> Path:
    """Write the charts (``.svg`` and ``.png``) and ``study.html``, one page with everything in it."""
    first = study.results[0]
    parts = {
        "table": table(rows(study)),
        "difference": difference(study),
        "test": f"{first['test_texts']:,}",
        "parameters": f"{first['parameters'] / 1e6:.2f} million",
        "charts": write_charts(figures(study), study.folder),
    }
    return write_page("pretrained_report.html", parts, study.folder / "study.html")


def _line(curve: Sequence[dict[str, float]]) -> tuple[list[float], list[float]]:
    return [point["step"] for point in curve], [100 * point["accuracy"] for point in curve]


def _by_start(study: Study) -> list[list[dict[str, Any]]]:
    return [list(some) for _, some in groupby(study.results, key=lambda result: result["start"])]
