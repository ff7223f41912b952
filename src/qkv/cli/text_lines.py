"""Lines in, lines out: where they come from and go to, for the verbs on texts."""

import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from qkv.errors import ConfigError

__all__ = ["answer_texts", "print_answers"]


def answer_texts(
    run: Path,
    shown: Callable[[Any], str],
    text: str | None,
    pair: str | None,
    input: Path | None,
    output: Path | None,
    stream: bool,
    device: str | None,
    threads: int | None,
) -> None:
    """Print a run's answer to one text or pair, or to each line; the rest is as verbs on texts take it.

    Args:
        shown: an answer as a line.
    """
    from qkv.cli.devices import prepare_device
    from qkv.tasks.load import load
    from qkv.tasks.text_classifier import read_texts

    model = load(run, prepare_device(device, threads))
    given = None if text is None else [(text,) if pair is None else (text, pair)]

    def answers(lines: BinaryIO) -> Iterable[Any]:
        return model.answers(given or read_texts(lines, model.codec.pair), window=1 if stream else 4096)

    print_answers(model, answers, shown, input, output, given is not None, stream)


def print_answers(
    model: Any,
    answers: Callable[[BinaryIO], Iterable[Any]],
    shown: Callable[[Any], str],
    input: Path | None,
    output: Path | None,
    given: bool,
    stream: bool,
) -> None:
    """Print what becomes of each line; how many could not be answered, and why, goes to stderr.

    Args:
        model: has ``counts``.
        answers: of a stream of lines.
        shown: an answer as a line, or as lines.
        given: there is one text instead of lines.
    """
    from qkv.data.lines import open_lines
    from qkv.tasks.lines_out import summary

    if given and input is not None:
        raise ConfigError("--text and --input are both given", expected="one of them")
    if input is not None and output is not None and output.exists() and output.samefile(input):
        raise ConfigError(f"--input and --output are both {input}", remedy="name another file: it would be emptied")
    with (
        nullcontext(sys.stdin.buffer) if input is None else open_lines(input) as lines,
        nullcontext(sys.stdout) if output is None else open(output, "w", encoding="utf-8", newline="\n") as out,
    ):
        for answer in answers(lines):  # stopped or killed, what was written stays
            print(shown(answer), file=out, flush=stream)
    marked = sum(count for name, count in model.counts.items() if name != "lines")
    if not given or marked:
        print(f"qkv: {summary(model.counts)}", file=sys.stderr)
