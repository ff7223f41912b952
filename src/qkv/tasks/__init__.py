"""The tasks: a name each, and where its class is. Nothing is imported until it is asked for."""

import importlib
from collections.abc import Mapping

from qkv.errors import ConfigError, nearest

__all__ = ["TASKS", "find", "has_kinds", "kind_of"]

# A task that learns from several kinds of data has a class for each.
TASKS: dict[str, str | dict[str, str]] = {
    "translate": "qkv.tasks.translate:Translate",
    "pretrain": "qkv.tasks.pretrain:Pretrain",
    "classify": {
        "pictures": "qkv.tasks.classify_pictures:ClassifyPictures",
        "texts": "qkv.tasks.classify_texts:ClassifyTexts",
        "clips": "qkv.tasks.classify_clips:ClassifyClips",
    },
    "regress": {
        "pictures": "qkv.tasks.regress_pictures:RegressPictures",
        "texts": "qkv.tasks.regress_texts:RegressTexts",
        "clips": "qkv.tasks.regress_clips:RegressClips",
    },
    "tag": "qkv.tasks.tag:Tag",
    "vectors": "qkv.tasks.vectors:Vectors",
    "caption": "qkv.tasks.caption:Caption",
}


def find(name: str, kind: str = "") -> type:
    """The class of a task (see `qkv.tasks.task.Task`) for a kind of data; a wrong name is an error with the nearest."""
    if name not in TASKS:
        raise ConfigError(f"no task is called {name!r}", remedy=nearest(name, TASKS))
    where = TASKS[name]
    if isinstance(where, dict):
        if kind not in where:
            raise ConfigError(f"{name} cannot learn from {kind or 'data of no kind'}", remedy=nearest(kind, where))
        where = where[kind]
    elif kind:
        raise ConfigError(f"{name} learns from one kind of data only", remedy="leave --kind out")
    module, cls = where.split(":")
    return getattr(importlib.import_module(module), cls)


def has_kinds(name: str) -> bool:
    """Whether a task learns from several kinds of data."""
    return isinstance(TASKS.get(name), dict)


def kind_of(name: str, data: str, columns: Mapping[str, str] | None = None) -> str:
    """The kind of the data at a place, for a task that has a choice; its first if there is no place.

    Args:
        columns: names that the user gave of a table's columns.

    Raises:
        DataError: there is data of several kinds, or of none.
        ConfigError: the task does not learn from that kind.
    """
    if not data:
        return next(iter(TASKS[name]))
    from qkv.data.kind import find_kind, refuse_no_pairs

    kind = find_kind(data, columns)
    if kind not in TASKS[name]:
        if kind == "pairs":
            refuse_no_pairs(data, name, TASKS[name])
        raise ConfigError(
            f"there are {kind} at {data}, and {name} learns from " + " or ".join(TASKS[name]),
            remedy="if they are something else, say so with --kind",
        )
    return kind
