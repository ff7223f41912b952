"""Seeing inside. The package is also the function: ``qkv.look("runs/ko-en", "나는 학생이다")`` gives a `Trace`, and
so does ``qkv.look("runs/birds", "photo.jpg")``."""

import sys
from types import ModuleType
from typing import Any


class _Look(ModuleType):
    """A package and a verb have one name here, as on the command line; so the package can be called."""

    def __call__(self, run: Any, given: Any, **which: Any) -> Any:
        """What a run, or the run in a folder, looked at while it answered a text or a picture.

        ``which`` goes to `qkv.trace`, or of a picture to `qkv.look.pictures.look_at`.
        """
        if not hasattr(run, "model"):
            from qkv.tasks.load import load

            run = load(run)
        if hasattr(run, "look"):
            return run.look(given, **which)
        from qkv.look.pictures import look_at

        return look_at(run, given, **which)


sys.modules[__name__].__class__ = _Look
