"""What every study has: a folder with a record for each trained model, on one set of terms."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError, RunError
from qkv.store import read_json, write_json
from qkv.train.options import flat, to_mapping
from qkv.train.run import Run

__all__ = ["Study", "keep_terms", "read_results", "write_csv"]


@dataclass(frozen=True)
class Study:
    """What came of a study: a record for each model trained, as ``results/*.json`` keep them."""

    folder: Path
    results: list[dict[str, Any]]
    interrupted: bool = False


def keep_terms(run: Run, **more: Any) -> None:
    """Remember what a study is, or compare with what it was: results on other terms must not stand side by side.

    Raises:
        ConfigError: naming the first key that differs.
    """
    now = {key: value for key, value in to_mapping(run).items() if key not in ("out", "resume", "spread", "seed")}
    now = dict(flat({**now, **more}))
    file = run.out / "study.json"
    before = read_json(file, "choose another --out: the terms of what is there are lost") if file.exists() else now
    for key in [*now, *before]:
        if before.get(key) != now.get(key):
            raise ConfigError(
                f"{key} is {now.get(key)!r}, and the study in {run.out} was begun with {before.get(key)!r}",
                remedy="choose another --out, or leave it as it was",
            )
    write_json(file, now)


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The records of all models trained, by the names of their files.

    Raises:
        RunError: one is damaged; the message says how to have it again.
    """
    results = []
    for file in sorted((folder / "results").glob("*.json")):
        again = f"remove {file.name} and run the same command again: it measures this one anew, and keeps the others"
        results.append(read_json(file, again))
        if not isinstance(results[-1], dict) or "seed" not in results[-1]:
            raise RunError("is not a result of a study", file=file, remedy=again)
    return results


def write_csv(rows: Iterable[Mapping[str, Any]], file: Path) -> None:
    """A line for each row, a column for each key that any of them has."""
    rows = list(rows)
    with open(file, "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
