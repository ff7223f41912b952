"""Seeing inside. The package is also the function: ``qkv.look("runs/ko-en", "나는 학생이다")`` gives a `Trace`."""

import sys
from types import ModuleType
from typing import Any


class _Look(ModuleType):
    """A package and a verb have one name here, as on the command line; so the package can be called."""

    def __call__(self, run: Any, text: str, **which: Any) -> Any:
        """What a run, or the run in a folder, looked at while it answered ``text``; ``which`` goes to `qkv.trace`."""
        from qkv.tasks.load import load

        return (run if hasattr(run, "look") else load(run)).look(text, **which)


sys.modules[__name__].__class__ = _Look
