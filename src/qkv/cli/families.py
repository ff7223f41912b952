"""Verbs that mean something else for each family of runs: a module each, found by the run's folder."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from qkv.errors import ConfigError

__all__ = ["run_family_verb"]


def run_family_verb(verb: str, families: Mapping[str, str], argv: Sequence[str]) -> int:
    """Hand ``qkv VERB RUN ...`` over to the module that ``families`` names for the family of RUN.

    Without a run, ``--help`` shows each family's. Raises RunError for a run whose family has no such verb.
    """
    words = [word for word in argv if not word.startswith("-")]
    # Options may come first, and other folders after it.
    folders = [word for word in words if Path(word).is_dir()]
    run = next((word for word in folders if (Path(word) / "model.json").is_file()), None)
    run = run or (words[0] if argv and not argv[0].startswith("-") else (folders or words or [None])[0])
    if run is None:
        if {"--help", "-h"} & set(argv):
            return _help(verb, families, argv)
        raise ConfigError("RUN is missing", remedy=f"qkv {verb} --help shows what it takes")
    from qkv.tasks.load import require_family

    return importlib.import_module(families[require_family(run, verb, families)]).main(argv)


def _help(verb: str, families: Mapping[str, str], argv: Sequence[str]) -> int:
    for what, module in families.items():
        print(f"-- a run of {what} " + "-" * (60 - len(what)))
        try:
            importlib.import_module(module).main(argv)
        except SystemExit:  # each prints its own help and leaves
            print()
    return 0
