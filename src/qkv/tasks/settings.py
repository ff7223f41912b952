"""How a run answers: the file ``answer.json`` in its folder.

Keys: ``task``, and ``kind`` where a task learns from several kinds of data; ``search`` (beam, length_penalty,
length_penalty_rule); ``reader`` (where alignments are read, see `qkv.look.alignment.Reader`); ``longest`` (most tokens
of an output) and ``never`` (ids that no output may hold), which imported runs bring from their makers.
"""

from pathlib import Path
from typing import Any

from qkv.store import read_json, write_json

__all__ = ["family", "read_settings", "write_settings"]

FILE = "answer.json"


def read_settings(folder: Path | str) -> dict[str, Any]:
    """All that is set; nothing for a run that has not been finished."""
    file = Path(folder) / FILE
    return read_json(file) if file.is_file() else {}


def family(folder: Path | str) -> str:
    """What a run answers, in a word or two: "translate", "classify pictures"."""
    settings = read_settings(folder)
    return f"{settings.get('task', 'translate')} {settings.get('kind', '')}".strip()


def write_settings(folder: Path | str, **changes: Any) -> None:
    """Change some settings of a run, and keep the others."""
    write_json(Path(folder) / FILE, {"task": "translate"} | read_settings(folder) | changes)
