"""From a function to a verb: its parameters are the options, its docstring is the help."""

import inspect
import json
import re
from argparse import ArgumentError as ParsingError
from collections.abc import Callable, Sequence
from typing import Any, get_origin

from jsonargparse import ArgumentParser

from qkv.errors import ConfigError
from qkv.train.options import Help, in_one_sentence, nearest_key

__all__ = ["check_positive", "run_verb", "whole_number", "whole_numbers"]


def run_verb(verb: Callable[..., Any], name: str, argv: Sequence[str], examples: str = "") -> Any:
    """Call ``verb`` with what the command line says: parameters without a default are positional.

    The last of those may also be given by its name (``--out FOLDER``), or take all words that are left, if it is a
    list. A true-or-false option may stand alone (``--json``). Raises ConfigError for anything that ``verb`` does not
    take.
    """
    parameters = inspect.signature(verb).parameters
    alone = {"--" + key for key, parameter in parameters.items() if parameter.annotation is bool}
    positional = [p for p in parameters.values() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    named = f"--{positional[-1].name}" if positional else None
    words, argv = [], [part for word in argv for part in _apart(word, named)]
    if named in argv[:-1]:
        i = argv.index(named)
        argv = [*argv[:i], *argv[i + 2 :], argv[i + 1]]
    for i, word in enumerate(argv):
        if word.startswith("--"):
            key, equals, value = word.partition("=")
            key = key[2:].replace("-", "_").removeprefix("data.")  # --n-best is --n_best; --data.source as in training
            word = "--" + key + equals + value
            if word in alone and argv[i + 1 : i + 2] not in (["true"], ["false"]):
                word += "=true"
        words.append(word)
    if positional and get_origin(positional[-1].annotation) is list:
        words = _gathered(words, len(positional) - 1)
    parser = ArgumentParser(
        prog=f"qkv {name}", exit_on_error=False, allow_abbrev=False, epilog=examples, formatter_class=Help
    )
    parser.description = inspect.getdoc(verb).partition("\n\n")[0]
    parser.add_function_arguments(verb, as_positional=True)
    for group in parser.groups.values():  # its title is the description once more
        group.title = "what it takes"
    known = set(parameters)
    for word in words:
        key = word[2:].split("=")[0]
        if word.startswith("--") and len(word) > 2 and key not in known | {"help"}:
            raise ConfigError(f"there is no option --{key}", remedy=nearest_key(key, known, "--"))
    try:
        parsed = parser.parse_args(words)
    except ParsingError as error:
        needed = [p.name for p in positional]
        if match := re.match(r"the following arguments are required: (\w+)", " ".join(str(error).split())):
            name_of = match[1].upper() if match[1] in needed else f"--{match[1]}"
            raise ConfigError(f"{name_of} is missing", remedy=f"qkv {name} --help shows what it takes") from None
        raise in_one_sentence(error) from None
    return verb(**parser.instantiate(parsed))


def _gathered(words: Sequence[str], before: int) -> list[str]:
    """The words that are no options, after the first few of them, as one list."""
    options, plain = [], []
    for i, word in enumerate(words):
        value = i > 0 and words[i - 1].startswith("--") and "=" not in words[i - 1]
        (options if (word.startswith("-") and word != "-") or value else plain).append(word)
    rest = [json.dumps(plain[before:])] if plain[before:] else []
    return [*plain[:before], *rest, *options]


def _apart(word: str, named: str | None) -> list[str]:
    """``--out=FOLDER`` as two words, for the last of the positional parameters."""
    key, equals, value = word.partition("=")
    return [key, value] if equals and key == named else [word]


def whole_numbers(option: str, text: str | None) -> list[int] | None:
    """``"0,3"`` as numbers; None if the option was not given."""
    if text is None:
        return None
    try:
        return [int(number) for number in text.strip("[]").split(",") if number.strip()]
    except ValueError:
        expected = "whole numbers with commas between, such as 0,3"
        raise ConfigError(f"--{option} is {text!r}", expected=expected) from None


def check_positive(**options: int | None) -> None:
    """Refuse numbers of options that are below 1."""
    for name, value in options.items():
        if value is not None and value < 1:
            raise ConfigError(f"--{name} is {value}", expected="a whole number from 1")


def whole_number(option: str, text: str | None, default: int) -> int:
    """A number from 1; ``default`` if the option was not given."""
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--{option} is {text!r}", expected="a whole number from 1")
    return int(text)
