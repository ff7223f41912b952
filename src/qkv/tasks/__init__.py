"""The tasks: a name each, and where its class is. Nothing is imported until it is asked for."""

import importlib

from qkv.errors import ConfigError, nearest

__all__ = ["TASKS", "find"]

TASKS = {
    "translate": "qkv.tasks.translate:Translate",
}


def find(name: str) -> type:
    """The class of a task (see `qkv.tasks.task.Task`); a name that is not one is an error naming the nearest."""
    if name not in TASKS:
        raise ConfigError(f"no task is called {name!r}", remedy=nearest(name, TASKS))
    module, cls = TASKS[name].split(":")
    return getattr(importlib.import_module(module), cls)
