"""From flags, YAML or keywords to a `Run`, and back to YAML: one parser, made for the task and the model asked for."""

import dataclasses
import difflib
import inspect
import json
import re
from argparse import Action, RawDescriptionHelpFormatter
from argparse import ArgumentError as ParsingError
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import SUPPRESS, ArgumentParser, DefaultHelpFormatter, set_parsing_settings

from qkv import models, tasks
from qkv.errors import ConfigError, UserError, nearest
from qkv.train.run import Loop, Optimize, Run, Spread

__all__ = [
    "Help",
    "from_flags",
    "from_mapping",
    "in_one_sentence",
    "nearest_key",
    "read_run",
    "take",
    "to_mapping",
    "to_yaml",
]

set_parsing_settings(docstring_parse_attribute_docstrings=True)

DEFAULT_SIZE = "small"  # what a laptop can train; a model that has no such size takes its own defaults

RECIPE = """

A recipe by model and data stands in for defaults of data, optimize and loop; training says which it is, and
--print_config prints its values.
"""
TITLES = {
    "data": "the data",
    "size": "size and make of the model",
    "learn": "what is learned",
    "optimize": "how the weights follow the gradient",
    "loop": "how long, and what is done on the way",
    "spread": "on what it runs",
}
EXAMPLES = """examples:
  qkv train translate --data ko-en/ --data.source ko --data.target en --size small --out runs/ko-en
  qkv train classify --data photos/ --model vit --out runs/birds
  qkv train caption --data photos/captions.jsonl --out runs/tell
  qkv train translate --data ko-en/ ... --size small --size.dim 128 --loop.minutes 60 --out runs/ko-en
  qkv train translate ... --print_config > run.yaml      # everything that can be set, as it would be
  qkv train --config run.yaml                            # the same run; flags after it win
  qkv train --config runs/ko-en/run.yaml                 # go on with a run that was stopped
  qkv train translate ... --init runs/ko-en --out runs/more   # fine-tune
  torchrun --nproc-per-node 2 -m qkv train translate ...      # several processes or GPUs
"""


def from_flags(argv: Sequence[str]) -> Run:
    """The run that a command line asks for: ``[TASK] [--config FILE] [--key value ...]``; later ones win.

    ``--help`` and ``--print_config`` print and raise SystemExit(0).

    Raises:
        ConfigError: an unknown key, with the nearest name, or a wrong value.
    """
    flags = list(argv)
    task = flags.pop(0) if flags and not flags[0].startswith("-") else None
    values = _read_yaml(take(flags, "--config"))
    # These decide which other keys there are.
    for key in ("task", "kind", "model", "init", "size", "data"):
        if (value := take(flags, f"--{key}")) is not None:
            values[key] = _over(values.get(key), value) if key in ("size", "data") else value
    task = task or values.get("task")
    if task is None:
        if "--help" in flags or "-h" in flags:
            print(f"usage: qkv train TASK [--key value ...]\n\ntasks: {', '.join(tasks.TASKS)}\n")
            print(f"The keys depend on the task: qkv train {next(iter(tasks.TASKS))} --help\n\n{EXAMPLES}", end="")
            raise SystemExit(0)
        raise ConfigError("qkv train must be told the task", expected="one of " + ", ".join(tasks.TASKS))
    return _with_recipe(task, values, flags)


def from_mapping(task: str, values: Mapping[str, Any]) -> Run:
    """The run of nested keywords, as in its YAML file; ``data`` may be a folder or the Data itself, ``size`` a name."""
    return _with_recipe(task, {key: _plain(value) for key, value in values.items()}, [])


def read_run(values: Mapping[str, Any]) -> Run:
    """The run that a folder's YAML file says, as it was: no recipe is asked again, nor the run that it started from."""
    return _make(values["task"], {key: value for key, value in values.items() if key != "init"}, [])


def to_mapping(run: Run) -> dict[str, Any]:
    """A run as plain data, in the order of its YAML file; without what only the codec knows."""
    values = {field.name: _plain(getattr(run, field.name)) for field in dataclasses.fields(run)}
    for key in getattr(tasks.find(run.task, run.kind), "from_codec", ()):
        values["size"].pop(key, None)
    values = {"task": values.pop("task"), "kind": values.pop("kind"), **values}
    return {key: value for key, value in values.items() if value not in ({}, "")}


def to_yaml(run: Run) -> str:
    return yaml.safe_dump(to_mapping(run), sort_keys=False, allow_unicode=True)


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``{"a": {"b": 1}}`` as ``("a.b", 1)``."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _with_recipe(name: str, values: dict[str, Any], flags: list[str]) -> Run:
    """The run; where its task has a recipe for such a model and such data, that stands in for the defaults."""
    values = {**values, "data": _files(values.get("data"))}
    plain = [flag for flag in flags if not flag.startswith("--print_config")]
    misfit = None
    try:
        run = _make(name, values, plain)
    except ConfigError as error:  # what does not fit the size that is there by default may fit that of a recipe
        misfit = error
    try:
        run = run if misfit is None else _make(name, {**values, "size": {}}, _without(plain, "--size."))
        task = tasks.find(name, run.kind)
        if not hasattr(task, "recipe"):
            return _make(name, values, flags) if misfit or len(plain) < len(flags) else run
        recipe = _as_begun(dict(task.recipe(run)), _begun(run))
    except UserError as error:
        raise misfit or error from None
    if "model" in recipe:
        values["model"] = recipe.pop("model")
    if isinstance(values.get("size"), str):
        values["size"] = {"": values["size"]}
    if "size" in recipe:
        if "" in (values.get("size") or {}):  # another size is asked for by name
            recipe["size"].pop("", None)
        # A name that is left is written out here: further on it would write over fields that are asked for.
        recipe["size"] = _row(models.find(values.get("model", run.model)), recipe["size"])
    return _make(name, _under({**values, "kind": run.kind}, recipe), flags)


def _without(flags: Sequence[str], prefix: str) -> list[str]:
    """Without the options that begin with ``prefix``, and their values."""
    left, skip = [], False
    for flag in flags:
        skip = flag.startswith(prefix) or (skip and not flag.startswith("--"))
        if not skip:
            left.append(flag)
    return left


def _begun(run: Run) -> dict[str, Any]:
    """The settings of the run that goes on in the folder; nothing if there is none, or quite another one."""
    if not any((run.out / "checkpoints").glob("step-*")):
        return {}
    before = _read_yaml(str(run.out / "run.yaml"))
    return before if all(before.get(key, "") == getattr(run, key) for key in ("task", "kind", "model")) else {}


def _as_begun(recipe: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with what was chosen when the run began: a warm-up that follows from the steps stays as it was.

    How long a run is may change, so that is chosen anew.
    """
    return {
        key: _as_begun(value, begun.get(key) or {})
        if isinstance(value, Mapping)
        else value
        if key in ("steps", "epochs", "minutes")
        else begun.get(key, value)
        for key, value in recipe.items()
    }


def _under(values: Any, defaults: Any) -> Any:
    """Nested keys, with ``defaults`` for what ``values`` does not say."""
    if not isinstance(values, Mapping) or not isinstance(defaults, Mapping):
        return values
    return {**defaults, **{key: _under(value, defaults.get(key)) for key, value in values.items()}}


def _make(name: str, values: dict[str, Any], flags: list[str]) -> Run:
    values = {**values, "task": name}
    if tasks.has_kinds(name) and not values.get("kind"):
        values["kind"] = tasks.kind_of(name, _somewhere(values["data"], flags), _columns(values["data"], flags))
    task = tasks.find(name, values.get("kind", ""))
    named = values.get("model") or ""
    if named not in models.MODELS and (Path(named) / "model.json").is_file():  # a trained run: where to start
        values["init"] = values.pop("model")
    start = {}
    if values.get("init"):
        from qkv.models.saved import read_config  # only fine-tuning pays for importing torch here

        found, config = read_config(Path(values["init"]), values.get("model"))
        start = _plain(config)
        if found in getattr(task, "adopts", ()):  # another model may go on with its weights
            wanted = models.find(values.setdefault("model", found if found in task.models else task.models[0])).Config
            start = {key: value for key, value in start.items() if key in wanted.__dataclass_fields__}
        else:
            values["model"] = found
    model = values.setdefault("model", task.models[0])
    if model in models.MODELS and model not in task.models:
        raise ConfigError(
            f"model {model!r} cannot learn to {name}", expected="one of " + ", ".join(task.models) + ", or own.py:Class"
        )
    cls = models.find(model)
    filled = frozenset(getattr(task, "from_codec", ()))
    values["size"] = {
        **{key: value for key, value in start.items() if key not in filled},
        **_row(
            cls,
            values.get("size") or (DEFAULT_SIZE if DEFAULT_SIZE in getattr(cls, "SIZES", {}) and not start else None),
        ),
    }
    values = {key: value for key, value in values.items() if value not in ({}, "")}

    flags[:] = [_long(flag, getattr(task, "short", {})) for flag in flags]
    only = getattr(task, "only", {}) if model in models.MODELS else {}
    useless = frozenset(f"learn.{key}" for key, known in only.items() if model not in known)
    parser = _parser(task, cls, filled, useless)
    known = {action.dest: action for action in parser._actions if action.dest not in ("help", "print_config")}
    for key, _ in flat(values):
        if key not in known:
            raise ConfigError(f"there is no key {key!r}", remedy=_instead(key, task, model) or nearest_key(key, known))
    for i, flag in enumerate(flags):
        key = flag[2:].split("=")[0]
        if not flag.startswith("--") or key in ("help", "print_config"):
            continue
        if key not in known:
            remedy = _instead(key, task, model) or nearest_key(key, known, "--")
            raise ConfigError(f"there is no option --{key}", remedy=remedy)
        if getattr(known[key], "_typehint", None) is bool and "=" not in flag and _value_after(flags, i) is None:
            flags[i] += "=true"
    try:
        parsed = parser.parse_args(["--config", json.dumps(values), *flags])
    except ParsingError as error:
        raise in_one_sentence(error) from None
    for key in sorted(useless):
        if parsed[key] != known[key].default:
            raise ConfigError(
                f"{key} is {parsed[key]}, and means nothing to a {model}",
                remedy="leave it out, or use --model " + " or ".join(task.only[key.removeprefix("learn.")]),
            )
    whole = parser.instantiate(parsed)
    kinds = {"data": task.Data, "size": cls.Config, "optimize": Optimize, "loop": Loop, "spread": Spread}
    values = {field.name: whole.get(field.name) for field in dataclasses.fields(Run)}
    _refuse_other_size(start, values["size"], getattr(task, "kept", ()))
    values["kind"] = values["kind"] or ""
    made = {key: kind(**(values[key] or {})) for key, kind in kinds.items() if not isinstance(values[key], kind)}
    return Run(**{**values, **made, "learn": dict(parsed.get("learn") or {})})


def _instead(key: str, task: type, model: str) -> str:
    """Where a key of sizes means something to other models of the task only: which they are; nothing of other keys."""
    group, _, name = key.partition(".")
    others = task.models if group == "size" and model in models.MODELS else ()
    having = [other for other in others if name in models.find(other).Config.__dataclass_fields__]
    return f"a {model} has none: leave it out, or use --model {' or '.join(having)}" if having else ""


def _refuse_other_size(start: Mapping[str, Any], size: Any, kept: Collection[str]) -> None:
    """ConfigError if weights that a run starts from do not fit its size: known before any data are read.

    Args:
        start: the config of the model that has them; nothing if a run starts anew.
        size: of the new model.
        kept: keys that must be as they were.
    """
    for key in kept:
        now = size.get(key) if isinstance(size, Mapping) else getattr(size, key, None)
        if key in start and now is not None and now != start[key]:
            raise ConfigError(
                f"size.{key} is {now!r}, and the model of --init has {start[key]!r}",
                remedy=f"leave --size and --size.{key} out: it is taken from --init",
            )


def _long(flag: str, short: Mapping[str, str]) -> str:
    """A task's short name of an option (``--dim``) as the whole one."""
    key, equals, value = flag.partition("=")
    name = short.get(key[2:].replace("-", "_")) if key.startswith("--") else None
    return f"--{name}{equals}{value}" if name else flag


class Help(RawDescriptionHelpFormatter, DefaultHelpFormatter):
    """The examples keep their lines; what is marked as code in a docstring is plain text here."""

    def _format_text(self, text: str) -> str:
        return super()._format_text(text.replace("`", ""))

    def _expand_help(self, action: Action) -> str:
        return super()._expand_help(action).replace("`", "")


@cache  # to read the docstrings of all options takes a second, and a recipe parses twice
def _parser(task: type, model: type, filled: frozenset[str], hidden: frozenset[str]) -> ArgumentParser:
    short = {option: name for name, option in getattr(task, "short", {}).items()}
    about_task = (inspect.getdoc(task) or "").partition("\n\n")[0]
    parser = ArgumentParser(
        prog=f"qkv train {task.name}", description=about_task + RECIPE * hasattr(task, "recipe"),
        epilog=EXAMPLES, formatter_class=Help,
        exit_on_error=False, allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument("--config", action="config", help="a YAML file with any of these keys; flags win over it")
    about = {field.name: field for field in dataclasses.fields(Run)}
    parser.add_argument("--task", default=task.name, help="what is learned; the same as the first word")
    if tasks.has_kinds(task.name):
        kinds = ", ".join(tasks.TASKS[task.name])
        parser.add_argument("--kind", help=f"what the data are, where that cannot be seen: {kinds}")
    about_model = f"one of {', '.join(task.models)}, own.py:Class, or the folder of a run to start from"
    parser.add_argument("--model", default=task.models[0], help=about_model)
    parser.add_argument("--out", type=Path, required=True, help="the run's folder: model, codec, scores, checkpoints")
    parser.add_class_arguments(task.Data, "data")
    parser.add_class_arguments(model.Config, "size", skip=filled)
    if task.__init__ is not object.__init__:
        parser.add_class_arguments(task, "learn")
    for key, kind in (("optimize", Optimize), ("loop", Loop), ("spread", Spread)):
        parser.add_class_arguments(kind, key)
    parser.add_argument(
        "--seed", type=int, default=about["seed"].default, help="of first weights, data order and dropout"
    )
    parser.add_argument("--init", type=Path | None, help="a run to start from: its weights and its codec")
    parser.add_argument(
        "--resume",
        type=bool,
        default=True,
        help="go on with the run in --out if there is one; false refuses to touch it",
    )
    whole = {"data": ("DIR", "short for train, dev and test found in this folder by name")}
    sizes = ", ".join(getattr(model, "SIZES", {}))
    whole["size"] = ("NAME", f"one of {sizes}: defaults for the keys below (those of --model: each has its own)")
    for action in parser._actions:
        if action.dest in ("data", "size"):
            action.metavar, action.help = whole[action.dest]
        elif action.dest in ("learn", "optimize", "loop", "spread", *hidden) or (
            action.dest.startswith("data.") and "CONFIG" in str(action.metavar)
        ):
            action.help = SUPPRESS
        elif action.dest in short:
            action.help = f"{(action.help or '').rstrip('.')}; --{short[action.dest]} for short"
    for key, group in parser.groups.items():  # a docstring, where it has no title of its own
        title, _, more = " ".join(group.title.split()).partition(". ")
        group.title, group.description = TITLES.get(key, title), more if more and key not in TITLES else None
    return parser


def _row(model: type, size: Any) -> dict[str, Any]:
    """A size's fields: of a name, a mapping, or a name with changes (kept under the key "")."""
    sizes = getattr(model, "SIZES", {})
    if isinstance(size, str):
        size = {"": size}
    size = dict(size or {})
    if (name := size.pop("", None)) is not None:
        if name not in sizes:
            raise ConfigError(f"there is no size {name!r}", remedy=nearest(name, sizes))
        size.update(sizes[name])
    return size


def _files(data: Any) -> dict[str, Any]:
    """The data's fields: of a folder, a mapping, or a folder with changes (kept under the key "")."""
    if isinstance(data, str):
        data = {"": data}
    data = dict(data or {})
    if (folder := data.pop("", None)) is not None:
        data["folder"] = folder
    return data


def _somewhere(data: Mapping[str, Any], flags: list[str]) -> str:
    """A place where some of the data are."""
    flags = list(flags)
    said = [take(flags, f"--data.{key}") or data.get(key) for key in ("train", "folder")]
    if not any(said) and not {"--help", "-h", "--print_config"} & set(flags):
        raise ConfigError("there are no data", remedy="name them with --data")
    return next(filter(None, said), "")


def _columns(data: Mapping[str, Any], flags: list[str]) -> dict[str, str]:
    """The columns of a table that the user named."""
    flags = list(flags)
    named = {key: take(flags, f"--data.{key}") or data.get(key) for key in ("path", "label", "caption", "text")}
    return {key: name for key, name in named.items() if name}


def _over(below: Any, name: str) -> dict[str, Any]:
    """A name (of a size, of a folder) given on top of a mapping: `_row` and `_files` write its fields over it."""
    return {**(below if isinstance(below, Mapping) else {}), "": name}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _read_yaml(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        values = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", file=file) from None
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        raise ConfigError(f"is not YAML ({getattr(error, 'problem', error)})", file=file, line=line or None) from None
    if not isinstance(values, Mapping):
        raise ConfigError("holds no keys", file=file, expected="YAML as --print_config prints it")
    return dict(values)


def take(flags: list[str], name: str) -> str | None:
    """Remove ``name VALUE`` or ``name=VALUE`` and return the last value."""
    found = None
    for i in reversed(range(len(flags))):
        if flags[i] == name and (value := _value_after(flags, i)) is not None:
            found = found if found is not None else value
            del flags[i : i + 2]
        elif flags[i].startswith(name + "="):
            found = found if found is not None else flags[i].split("=", 1)[1]
            del flags[i]
        elif flags[i] == name:
            raise ConfigError(f"{name} has no value")
    return found


def _value_after(flags: Sequence[str], i: int) -> str | None:
    return flags[i + 1] if i + 1 < len(flags) and not flags[i + 1].startswith("--") else None


def nearest_key(key: str, known: Collection[str], dashes: str = "") -> str:
    leaf = key.rpartition(".")[2]
    same = sorted(name for name in known if name.rpartition(".")[2] == leaf)
    close = same or difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.5)
    if not close:
        leaves = {name.rpartition(".")[2]: name for name in sorted(known)}
        close = [leaves[name] for name in difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.5)]
    return (
        "did you mean " + " or ".join(dashes + name for name in close[:2]) + "?"
        if close
        else "see --help for what there is"
    )


def in_one_sentence(error: ParsingError) -> ConfigError:
    text = " ".join(str(error).split())
    if match := re.match(r"the following arguments are required: (.*)", text):
        return ConfigError(f"--{match[1].split(', ')[0]} is missing")
    key = re.search(r'[Kk]ey "([^"]+)"', text)
    got = re.search(r"(?:Got|Given) value: (.*)$", text)
    if not key or not got:
        return ConfigError(text)
    wanted = re.findall(r"Expected an? (.*?)(?:\. Got|(?= - Expected| Given))", text)
    return ConfigError(f"{key[1]} is {got[1]!r}", expected=" or ".join(map(_words, wanted)))


def _words(kind: str) -> str:
    if match := re.match(r"typing\.Literal\[(.*)\]", kind):
        return "one of " + match[1].replace("'", "")
    plain = {
        "float": "a number",
        "int": "a whole number",
        "bool": "true or false",
        "NoneType": "null",
        "Path": "a path",
        "tuple": "numbers with commas between, such as [0.9, 0.98]",
    }
    name = re.sub(r"<class '(?:.*\.)?(\w+)'>", r"\1", kind)
    return plain.get(name, name)
