"""Training. The package is also the function that does it: ``qkv.train("translate", data="ko-en/", out="runs/a")``."""

import sys
from types import ModuleType
from typing import Any


class _Train(ModuleType):
    """A package and a verb have one name here, as on the command line; so the package can be called."""

    def __call__(self, task: str, **settings: Any) -> Any:
        """Train, and load what came of it.

        Args:
            task: ``"translate"``.
            settings: the keys of a run's YAML file: ``data`` (a folder or a mapping), ``out``, ``model``, ``size`` (a
                name or a mapping), ``optimize``, ``loop``, ``learn``, ``spread``, ``seed``, ``init``.

        Raises:
            UserError: what the user can mend.
        """
        from qkv.tasks.load import load
        from qkv.train.loop import train
        from qkv.train.options import from_mapping

        return load(train(from_mapping(task, settings)).folder)


sys.modules[__name__].__class__ = _Train
