"""What a run is, read from its folder alone: parameters, data, scores, versions, config, sizes on disk."""

import math
from pathlib import Path
from typing import Any

import yaml
from safetensors import safe_open

from qkv import tasks
from qkv.errors import RunError
from qkv.store import read_json
from qkv.train import checkpoint
from qkv.train.compiled import OWN
from qkv.train.folder import read_scores
from qkv.train.options import flat, read_run
from qkv.train.progress import clock, words

__all__ = ["describe", "lines"]


def describe(folder: Path) -> dict[str, Any]:
    """Everything that the folder of a run (or of an imported model) tells, as plain data; sizes in bytes.

    Raises:
        RunError: there is no run in the folder.
    """
    if not (folder / "run.yaml").is_file() and not (folder / "model.json").is_file():
        raise RunError("there is no run", file=folder, expected="a folder with run.yaml or model.json in it")
    told: dict[str, Any] = {"folder": str(folder)}
    if (folder / "model.json").is_file():
        told["model"] = read_json(folder / "model.json")
        told["model"]["parameters"] = _parameters(folder / "model.safetensors")
    if (folder / "run.json").is_file():
        record = read_json(folder / "run.json")
        told |= {key: record[key] for key in ("versions", "machine", "data", "report")}
    if (folder / "run.yaml").is_file():
        told["run"] = _used(yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8")))
    if saved := checkpoint.latest(folder):
        state = saved[1]
        finished = state.finished or {}
        told["state"] = {"step": state.step, "epoch": state.position.epoch, "seconds": state.seconds}
        told["state"]["finished"] = finished.get("why")
        best = state.best or {"scores": {}, "step": state.step}
        told["scores"] = {
            "weights": finished.get("weights", f"of step {best['step']}"),
            "dev": finished.get("scores", best["scores"]),
        }
        for line in read_scores(folder):
            told["scores"] |= {"signatures": line["signatures"]} if "signatures" in line else {}
    told["disk"] = {path.name: _size(path) for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    return told


def lines(told: dict[str, Any]) -> list[str]:
    """The same for people to read."""
    said = [told["folder"]]

    def say(name: str, text: str) -> None:
        said.append(f"  {name:11} {text}")

    if model := told.get("model"):
        say("model", f"{model['class']}, {model['parameters']:,} parameters")
        say("config", "  ".join(f"{key} {value}" for key, value in flat(model["config"])))
    for i, line in enumerate(told.get("report", [])):
        say("" if i else "report", line)
    if state := told.get("state"):
        end = f"finished: {state['finished']}" if state["finished"] else "not finished"
        say("training", f"step {state['step']}, epoch {state['epoch']}, {clock(state['seconds'])} ({end})")
    if scores := told.get("scores"):
        say("scores", f"{words(scores['dev']) or 'none'}  (weights {scores['weights']})")
        for name, signature in scores.get("signatures", {}).items():
            say("", f"{name}: {signature}")
    if run := told.get("run"):
        for key in ("task", "kind", "data", "learn", "optimize", "loop", "spread", "seed", "init"):
            if (value := run.get(key)) not in (None, {}):
                say(
                    key,
                    "  ".join(f"{name} {item}" for name, item in flat(value) if item not in (None, ""))
                    if isinstance(value, dict)
                    else value,
                )
    if "versions" in told:
        say("made with", "  ".join(f"{name} {version}" for name, version in told["versions"].items()))
        say("", told["machine"])
    say("disk", "  ".join(f"{name} {size:,}" for name, size in told["disk"].items()) + "  bytes")
    return said


def _used(run: dict[str, Any]) -> dict[str, Any]:
    """A run's settings without those that what made its steps has no use for."""
    task = tasks.find(run["task"], run.get("kind", ""))
    if not hasattr(task, "compiled") or not task(**run.get("learn", {})).compiled(read_run(run)):
        return run
    return run | {part: {key: run[part][key] for key in run[part] if key in keys} for part, keys in OWN.items()}


def _parameters(file: Path) -> int:
    """Numbers in a file of weights, tied ones once; only its header is read."""
    if not file.is_file():
        return 0
    with safe_open(file, "pt") as tensors:
        return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size
