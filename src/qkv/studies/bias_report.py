"""The study of inductive biases as tables, pictures and one page. All is read from its results."""

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.store import read_json
from qkv.studies.bias_data import ORDERS
from qkv.studies.pages import COLOURS, finish, mean, new_chart, spread, table, write_charts, write_page
from qkv.studies.study import Study
from qkv.train.progress import clock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figures", "rows", "write_report"]

SAID = {"plain": "as they are", "patches": "patches rearranged", "pixels": "all pixels rearranged"}


def rows(study: Study) -> list[dict[str, str]]:
    """A row for each model: accuracy in percent at each count of pictures, and on rearranged ones."""
    made = []
    for results in _by(study.results, "model").values():
        row = {"model": results[0]["label"], "parameters": f"{mean(results, 'parameters') / 1e3:,.0f} k"}
        for (order, count), cell in sorted(_by(results, "order", "pictures").items(), key=_place):
            name = f"{count:,}" if order == "plain" else SAID[order]
            row[name] = spread(cell, "accuracy", 1, unit=0.01)
        plain = [result for result in results if result["order"] == "plain"]
        row["time"] = clock(60 * mean(plain, "minutes")) if plain else "–"
        row["pictures/s"] = f"{mean(results, 'pictures_per_second'):,.0f}"
        row["memory"] = f"{mean(results, 'memory_mb'):,.0f} MB"
        made.append(row)
    names = list(dict.fromkeys(name for row in made for name in row))
    return [{name: row.get(name, "–") for name in names} for row in made]


def figures(study: Study) -> dict[str, "Figure"]:
    """Charts by file name: accuracy by pictures, by what was rearranged, by how far test pictures were moved."""
    made = {name: new_chart() for name in TITLES}
    by_model = _by(study.results, "model")
    most = max(result["pictures"] for result in study.results)
    for number, (colour, results) in enumerate(zip(COLOURS, by_model.values(), strict=False)):
        label = results[0]["label"]
        plain = sorted(_by([r for r in results if r["order"] == "plain"], "pictures").items())
        line = {"color": colour, "label": label, "marker": "o", "markersize": 4, "linewidth": 1.4, "capsize": 3}
        if plain:
            middle, low, high = zip(*(_bar(cell) for _, cell in plain), strict=True)
            made["by_pictures"][1].errorbar([c for (c,), _ in plain], middle, yerr=[low, high], **line)
        orders = [(o, [r for r in results if r["order"] == o and r["pictures"] == most]) for o in ORDERS]
        width = 0.8 / len(by_model)
        bars = [
            (i + (number - len(by_model) / 2 + 0.5) * width, *_bar(cell)) for i, (_, cell) in enumerate(orders) if cell
        ]
        if bars:
            places, middle, low, high = zip(*bars, strict=True)
            made["rearranged"][1].bar(places, middle, width, yerr=[low, high], color=colour, label=label, capsize=2)
        if moved := [result for result in orders[0][1] if "shifted" in result]:
            steps = [0, *map(int, moved[0]["shifted"])]
            values = [[r["accuracy"], *r["shifted"].values()] for r in moved]
            middle = [100 * sum(column) / len(column) for column in zip(*values, strict=True)]
            made["moved"][1].plot(steps, middle, "o-", color=colour, label=label, markersize=4, linewidth=1.4)
    made["by_pictures"][1].set(xlabel="pictures of training", ylabel="test accuracy (%)", xscale="log")
    counts = sorted({result["pictures"] for result in study.results})
    made["by_pictures"][1].set_xticks(counts, [f"{count:,}" for count in counts])
    made["by_pictures"][1].minorticks_off()
    made["rearranged"][1].set(ylabel="test accuracy (%)")
    made["rearranged"][1].set_xticks(range(len(ORDERS)), [SAID[order] for order in ORDERS])
    made["moved"][1].set(xlabel="pixels by which test pictures are moved", ylabel="test accuracy (%)")
    for name, (_, axes) in made.items():
        finish(axes, TITLES[name])
    return {name: chart for name, (chart, _) in made.items()} | _memory(study.folder)


TITLES = {
    "by_pictures": "Learning from few pictures and from many",
    "rearranged": "What was told and what is learned: the same permutation in training and test",
    "moved": "The thing stands elsewhere",
}


def write_report(study: Study) -> Path:
    """Write the charts (``.svg`` and ``.png``) and ``study.html``, one page with everything in it."""
    about = read_json(study.folder / "data" / "about.json")
    parts = {
        "table": table(rows(study)),
        "side": str(about["size"]),
        "test": f"{about['pictures']['test']:,}",
        "steps": f"{study.results[0]['steps']:,}",
        "charts": write_charts(figures(study), study.folder),
        "examples": _examples(study.folder / "data"),
    }
    return write_page("bias_report.html", parts, study.folder / "study.html")


def _memory(folder: Path) -> dict[str, "Figure"]:
    file = folder / "memory.json"
    if not file.exists():
        return {}
    told = read_json(file, "remove it and run the same command again: it measures this anew, and keeps the rest")
    chart, axes = new_chart()
    sides = [each["side"] for each in told]
    axes.plot(sides, [4e-6 * side**4 for side in sides], ":", color=COLOURS[0], label="4 R^4 bytes")
    for how, label, colour in (("matrix", "the matrix of weights", COLOURS[4]), ("fused", "fused kernel", COLOURS[3])):
        axes.plot(sides, [max(each[f"{how}_mb"], 0.01) for each in told], "o-", color=colour, label=label, markersize=4)
    axes.set(xlabel="side R of the picture in pixels", ylabel="MB for one head", yscale="log")
    finish(axes, "Every pixel looks at every pixel")
    return {"memory": chart}


def _examples(data: Path) -> str:
    """The first test pictures in each order."""
    told = []
    for order in ORDERS:
        files = sorted((data / order / "test").rglob("*.png"), key=lambda file: file.name)[:8]
        pictures = "".join(
            f'<img alt="" src="data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}">' for file in files
        )
        told.append(f"<figure>{pictures}<figcaption>{SAID[order]}</figcaption></figure>")
    return "\n".join(told)


def _bar(cell: list[dict[str, Any]]) -> tuple[float, float, float]:
    """The mean over seeds in percent, and how far the lowest and the highest lie from it."""
    values = [100 * result["accuracy"] for result in cell]
    middle = sum(values) / len(values)
    return middle, middle - min(values), max(values) - middle


def _by(results: list[dict[str, Any]], *keys: str) -> dict[tuple, list[dict[str, Any]]]:
    grouped: dict[tuple, list[dict[str, Any]]] = {}
    for result in results:
        grouped.setdefault(tuple(result[key] for key in keys), []).append(result)
    return grouped


def _place(cell: tuple[tuple[str, int], Any]) -> tuple[int, int]:
    (order, count), _ = cell
    return ORDERS.index(order), count
