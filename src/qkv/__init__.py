"""Train attention models on your own data, run them fast, and see what they looked at.

``load(folder)`` opens a trained run, ``train(task, ...)`` trains one, ``trace(module)`` looks inside any module of the
package. Names are imported when they are first used, so that the command line answers before torch has loaded.
"""

from importlib import import_module

__version__ = "0.1.0"

_WHERE = {
    "Attention": "qkv.layers.attention",
    "Map": "qkv.look.record",
    "Trace": "qkv.look.record",
    "ablate": "qkv.look.trace",
    "attend": "qkv.layers.attention",
    "load": "qkv.tasks.load",
    "trace": "qkv.look.trace",
}

_VERBS = ("look", "train")  # packages that can be called

__all__ = ["__version__", *_WHERE, *_VERBS]


def __getattr__(name: str):
    if name in _VERBS:
        return import_module(f"qkv.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'qkv' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__():
    return __all__
