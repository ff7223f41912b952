"""Opening a run: its folder says what it is, and what it can do follows."""

from pathlib import Path

from qkv.errors import RunError
from qkv.tasks.settings import read_settings
from qkv.tasks.translator import Translator

__all__ = ["load"]


def load(folder: str | Path, device: str | None = None) -> Translator:
    """The trained run in ``folder``: call it on a text, ``look`` at what it does, or reach its ``model``.

    Raises:
        RunError: there is no finished run there.
    """
    folder = Path(folder)
    if not (folder / "model.json").is_file():
        unfinished = (folder / "run.yaml").is_file()
        raise RunError(
            "there is no trained model" if folder.is_dir() else "there is no such folder",
            expected="a run's folder, with model.json in it",
            remedy=f"go on training with: qkv train --config {folder / 'run.yaml'}"
            if unfinished
            else "train one with: qkv train",
            file=folder,
        )
    if (task := read_settings(folder).get("task", "translate")) != "translate":
        raise RunError(f"a run of the task {task!r}", expected="translate", remedy="use a newer qkv", file=folder)
    return Translator.load(folder, device)
