"""Errors that a user can cause: each says what is wrong, where, what was expected and how to mend it.

The command line prints them as one sentence and leaves with exit code 2; everything else that is raised is our fault
and shows as such.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["ConfigError", "DataError", "RunError", "UserError", "nearest", "refuse_wrong"]


class UserError(Exception):
    """Something that the user can mend.

    Args:
        wrong: what was found, with the wrong value in it.
        expected: what would have been right.
        remedy: what to do now.
        file, line: where (``line`` counts from 1).
    """

    def __init__(
        self,
        wrong: str,
        *,
        expected: str = "",
        remedy: str = "",
        file: Path | str | None = None,
        line: int | None = None,
    ):
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        message = where + wrong
        if expected:
            message = f"{message.removesuffix('.')}; expected {expected}"
        if remedy:
            command = remedy.split()[0] in ("qkv", "iconv")  # one that must be typed as it stands
            message = f"{message.removesuffix('.')}. {remedy[0] if command else remedy[0].upper()}{remedy[1:]}"
        super().__init__(message if message.endswith((".", "?")) else message + ".")
        self.file, self.line = file, line


class DataError(UserError):
    """The user's data cannot be used as it is."""


class ConfigError(UserError):
    """A flag or a configuration key is wrong."""


class RunError(UserError):
    """A run folder, checkpoint or weight file cannot be used."""


def refuse_wrong(group: str, *options: tuple[object, str, object, str]) -> None:
    """ConfigError for the first option of a group that is wrong.

    Args:
        group: where they stand, such as "data".
        options: whether it is wrong, its name, its value, and what was expected.
    """
    for wrong, name, value, expected in options:
        if wrong:
            raise ConfigError(f"{group}.{name} is {value}", expected=expected)


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy naming the known name nearest to a mistyped one: ``did you mean 'dropout'? Known: ...``."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return (f"did you mean {close[0]!r}? " if close else "") + "known: " + ", ".join(known)
