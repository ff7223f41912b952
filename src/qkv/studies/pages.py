"""What the pages of studies are made of: charts as SVG, tables, means over seeds."""

import html
import io
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.store import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "finish", "mean", "new_chart", "spread", "svg", "table", "write_charts", "write_page"]

COLOURS = ("#8a92a3", "#4c566a", "#2f6fde", "#0e9f8e", "#c2571a", "#7a3fb8", "#b8860b")
LETTERS = 110  # of a legend's line, about


def new_chart(width: float = 6.4, height: float = 3.6) -> "tuple[Figure, Axes]":
    """An empty chart and its axes."""
    from matplotlib.figure import Figure

    chart = Figure(figsize=(width, height), layout="constrained")
    return chart, chart.add_subplot()


def finish(axes: "Axes", title: str) -> None:
    """Title, a light grid, and a legend below, where it covers nothing."""
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    longest = max((len(label) for label in axes.get_legend_handles_labels()[1]), default=0)
    columns = min(3, max(1, LETTERS // (longest + 6)))
    axes.figure.legend(loc="outside lower center", ncols=columns, fontsize=7.5, frameon=False)
    axes.set_title(title, fontsize=10, loc="left")


def svg(figure: "Figure") -> str:
    """The same text for the same figure, always."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "qkv"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def write_charts(charts: "Mapping[str, Figure]", folder: Path) -> str:
    """Write each as ``NAME.png`` and ``NAME.svg``; all of them as HTML."""
    drawings = []
    for name, chart in charts.items():
        chart.savefig(folder / f"{name}.png", dpi=200)
        drawings.append(svg(chart))
        write_text(folder / f"{name}.svg", drawings[-1])
    return "\n".join(f"<figure>{drawing}</figure>" for drawing in drawings)


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows as an HTML table."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row.values()) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_page(template: str, parts: Mapping[str, str], path: Path) -> Path:
    """Fill ``{{name}}`` of a template in this room, at once, so that nothing in a part is taken for a place to fill."""
    parts = {"style": _packaged("study.css"), **parts}
    write_text(path, re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _packaged(template)))
    return path


def _packaged(name: str) -> str:
    return files("qkv.studies").joinpath(name).read_text(encoding="utf-8")


def mean(results: Sequence[Mapping[str, Any]], key: str) -> float:
    return sum(result[key] for result in results) / len(results)


def spread(results: Sequence[Mapping[str, Any]], key: str, digits: int, unit: float = 1.0) -> str:
    """The mean, and with several seeds how far the farthest lies from it; in ``unit``."""
    middle = mean(results, key)
    if len(results) == 1:
        return f"{middle / unit:.{digits}f}"
    farthest = max(abs(result[key] - middle) for result in results)
    return f"{middle / unit:.{digits}f} ± {farthest / unit:.{digits}f}"
