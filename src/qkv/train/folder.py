"""A run's folder: ``run.yaml`` trains it again, ``run.json`` says what it was made of, ``scores.jsonl`` how it went."""

import fcntl
import json
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from qkv.errors import ConfigError, RunError, UserError
from qkv.store import free_disk_told, json_text, numbers, read_json, write_json, write_text
from qkv.train.options import flat, to_mapping, to_yaml
from qkv.train.run import Run

__all__ = ["append_scores", "claimed", "describe_run", "read_scores", "truncate_scores"]

# What may change between the parts of one run. Budgets may only grow.
FREE = (
    "out",
    "resume",
    "spread.",
    "loop.patience",
    "loop.keep",
    "loop.save_every",
    "loop.tensorboard",
    "loop.recompute",
)
BUDGETS = ("loop.steps", "loop.epochs", "loop.minutes")


@contextmanager
def claimed(run: Run) -> Iterator[None]:
    """Own the run's folder while the block lasts: made and described if it is new, compared with the run if it is not.

    Raises:
        RunError: another process trains there, or the folder is in use for something else.
        ConfigError: the run there is another one; the message names the first key that differs.
    """
    run.out.mkdir(parents=True, exist_ok=True)
    with open(run.out / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                "another process is training here", file=run.out, remedy="wait for it, or choose another --out"
            ) from None
        for left in run.out.glob(".*.partial-*"):  # by a process that was killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        new = not (run.out / "run.yaml").exists()
        if new:
            if others := [path.name for path in run.out.iterdir() if path.name != ".lock"]:
                (run.out / ".lock").unlink()
                raise RunError(
                    f"holds {others[0]!r} but no run.yaml",
                    file=run.out,
                    expected="a new folder, or one with a run",
                    remedy="choose another --out",
                )
        elif not run.resume:
            raise RunError(
                "holds a run already",
                file=run.out,
                remedy="choose another --out, or leave out --resume false to go on with it",
            )
        elif any((run.out / "checkpoints").glob("step-*")):
            _compare(yaml.safe_load((run.out / "run.yaml").read_text(encoding="utf-8")), to_mapping(run))
        elif (run.out / "run.yaml").read_text(encoding="utf-8") != to_yaml(run):
            # It came to nothing (a mistyped file, say) and has been mended: nothing of it is worth keeping.
            shutil.rmtree(run.out / "codec", ignore_errors=True)
            for name in ("run.json", "scores.jsonl"):
                (run.out / name).unlink(missing_ok=True)
        write_text(run.out / "run.yaml", to_yaml(run))
        with nothing_left_of_refused(run.out) if new else nullcontext():
            yield


@contextmanager
def nothing_left_of_refused(folder: Path) -> Iterator[None]:
    """Remove a new run's folder if the user's own mistake ends it before it has learned anything."""
    try:
        yield
    except UserError:
        if not read_scores(folder) and not any((folder / "checkpoints").glob("step-*")):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def describe_run(run: Run, summary: Mapping[str, Any], report: list[str], parameters: int) -> None:
    """Write ``run.json`` once: what the run was made of. Training files that have changed since are an error."""
    file = run.out / "run.json"
    if file.exists():
        if read_json(file)["data"].get("files_hash") != summary.get("files_hash"):
            raise RunError(
                "the training files have changed since this run began", file=run.out,
                remedy="put them back to go on, or train on them in another --out (with --init to start from here)",
            )  # fmt: skip
        return
    write_json(file, {
        "versions": {"qkv": version("qkv"), "torch": version("torch"), "python": platform.python_version()},
        "machine": platform.platform(),
        "command": sys.argv,
        "parameters": parameters,
        "data": summary,
        "report": report,
    })  # fmt: skip


def append_scores(folder: Path, line: Mapping[str, Any]) -> None:
    """Add a line to scores.jsonl."""
    file, text = folder / "scores.jsonl", json_text(line) + "\n"
    with free_disk_told(file, len(text)), open(file, "a", encoding="utf-8") as lines:
        lines.write(text)


def read_scores(folder: Path) -> list[dict[str, Any]]:
    """The lines of scores.jsonl; a line that a kill cut short is left out, and a score of null is not a number."""
    file = folder / "scores.jsonl"
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        lines.append(found | {key: numbers(found[key]) for key in ("dev", "final") if key in found})
    return lines


def truncate_scores(folder: Path, step: int) -> None:
    """Drop what was written after a checkpoint, and the run's end: the resumed run writes them again."""
    kept = [line for line in read_scores(folder) if line["step"] <= step and "final" not in line]
    lines = [json_text(line) + "\n" for line in kept]
    write_text(folder / "scores.jsonl", "".join(lines))


def _compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    before, now = dict(flat(before)), dict(flat(now))
    for key in [*now, *(before.keys() - now.keys())]:
        old, new = before.get(key), now.get(key)
        if old == new or key.startswith(FREE):
            continue
        if key in BUDGETS:
            if new is None or (old is not None and new > old):
                continue
            raise ConfigError(f"{key} is {new}, but this run was begun with {old}", expected="at least as much")
        raise ConfigError(
            f"{key} is {new!r}, but the run in the folder was begun with {old!r}",
            expected="the same",
            remedy="choose another --out to train with this",
        )
