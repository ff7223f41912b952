"""``qkv embed``: a vector for each line, or the lines that are nearest to a text."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv embed runs/minilm < lines.txt > vectors.npy          # float32, a row a line
  qkv embed runs/minilm --json < lines.txt > vectors.jsonl
  qkv embed runs/minilm --input lines.txt.gz --output vectors.jsonl
  qkv embed runs/bert-ko --pool cls --input lines.txt --output vectors.npy
  qkv embed runs/minilm --nearest corpus.txt --text 'where is my card?' --top 10
  qkv embed runs/minilm --nearest <(zcat corpus/*.gz) --text 'where is my card?'
"""


def embed(
    run: Path,
    text: str | None = None,
    input: Path | None = None,
    output: Path | None = None,
    nearest: Path | None = None,
    top: int = 5,
    pool: Literal["cls", "mean", "max"] | None = None,
    normalise: bool | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Make a vector of each line of a text, or search a corpus for the lines nearest to it by cosine.

    Args:
        run: the folder of a run of pretrain, or of an imported model.
        text: one text, instead of lines.
        input: a file of lines; standard input if not given.
        output: where to write, .npy as an array or .jsonl as lines of JSON; standard output if not given.
        nearest: a file of lines to search in; then lines of it are printed, with their cosine and number.
        top: how many lines to give for each text.
        pool: what the vector of a text is: the state of its first token, or the mean or maximum over all; the run's
            own if not given.
        normalise: vectors of length one; the run's own way if not given.
        json: lines of JSON with text and vector, instead of a numpy array.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.data.lines import open_lines, read_lines, some_lines
    from qkv.errors import ConfigError
    from qkv.tasks.load import load, require_family
    from qkv.tasks.vectors_out import near_lines, summary, write_array, write_json_lines

    if text is not None and input is not None:
        raise ConfigError("--text and --input are both given", expected="one of them")
    if top < 1:
        raise ConfigError(f"--top is {top}", expected="a whole number from 1")
    require_family(run, "embed", ["pretrain"])
    ending = output.suffix.lower() if output is not None else ""
    if ending == ".npy" and (json or nearest is not None):
        other, what = ("--json", "lines of JSON") if json else ("--nearest", "lines of text")
        raise ConfigError(f"--output is {output}, an array, and {other} gives {what}", remedy="name another file")
    json = json or ending in (".jsonl", ".json")
    with (
        nullcontext(sys.stdin.buffer) if input is None else open_lines(input) as stream,
        nullcontext() if nearest is None else open_lines(nearest) as corpus,
    ):
        encoder = load(run, prepare_device(device, threads))
        lines = [text] if text is not None else read_lines(stream)
        if nearest is not None:
            found = list(near_lines(encoder, list(lines), some_lines(corpus, nearest), top, pool or "", json))
            with open_text(output) as out:
                out.writelines(line + "\n" for line in found)
        elif json or (output is None and sys.stdout.isatty()):
            with open_text(output) as out:
                write_json_lines(encoder, lines, out, pool or "", normalise)
        else:
            write_array(encoder, lines, output, pool or "", normalise)
    if text is None or encoder.counts.keys() - {"lines", "cut"}:
        print(f"qkv: {summary(encoder.counts)}", file=sys.stderr)


def open_text(path: Path | None):
    """A file to write lines to, or standard output."""
    return nullcontext(sys.stdout) if path is None else open(path, "w", encoding="utf-8", newline="\n")


def main(argv: Sequence[str]) -> int:
    run_verb(embed, "embed", argv, EXAMPLES)
    return 0
