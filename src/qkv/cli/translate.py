"""``qkv translate``: line in, line out."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv translate runs/ko-en < in.txt > out.txt
  qkv translate runs/ko-en --text '나는 학생이다'
  qkv translate runs/ko-en --input in.txt --output out.jsonl --json --beam 5 --n-best 5
  qkv translate runs/ko-en --stream --temperature 0.8 --top-p 0.9 --seed 1
"""


def translate(
    run: Path,
    text: str | None = None,
    input: Path | None = None,
    output: Path | None = None,
    beam: int | None = None,
    n_best: int = 1,
    length_penalty: float | None = None,
    length_penalty_rule: Literal["gnmt", "hf"] | None = None,
    temperature: float | None = None,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    prefix: str | None = None,
    max_length: int | None = None,
    align: bool = False,
    json: bool = False,
    stream: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Translate each line of a text; a line that cannot be translated gives an empty line and is counted.

    Args:
        run: the folder of a trained run.
        text: one sentence to translate, instead of lines.
        input: a file of lines; standard input if not given.
        output: where to write; standard output if not given.
        beam: hypotheses kept a sentence; 1 is greedy. The run's own setting if not given.
        n_best: translations to give a line, as `rank ||| text ||| score`.
        length_penalty: alpha of the rule; higher prefers longer translations.
        length_penalty_rule: gnmt, sum / ((5 + length) / 6)^alpha, or hf, sum / length^alpha.
        temperature: draw words by their chances, flattened or sharpened by this, instead of keeping the best.
        top_k: draw from the k likeliest words only.
        top_p: draw from the likeliest words that together hold this chance.
        seed: of the draws; the same seed and line give the same translation.
        prefix: what each translation must begin with.
        max_length: most tokens of a translation.
        align: add the word alignment, as Pharaoh pairs after `|||`.
        json: one line of JSON each, with scores by token.
        stream: answer each line at once, instead of some thousand lines together.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.data.lines import open_lines, read_lines
    from qkv.decode.search import Sampling
    from qkv.errors import ConfigError
    from qkv.tasks.lines_out import summary, text_lines
    from qkv.tasks.load import load, require_family

    if text is not None and input is not None:
        raise ConfigError("--text and --input are both given", expected="one of them")
    if input is not None and output is not None and output.exists() and output.samefile(input):
        raise ConfigError(f"--input and --output are both {input}", remedy="name another file: it would be emptied")
    if beam is not None and (temperature is not None or top_k or top_p != 1):
        raise ConfigError("--beam keeps the best and --temperature, --top-k, --top-p draw", expected="one or the other")
    if align and n_best > 1 and not json:
        raise ConfigError("--align and --n-best are both given", remedy="add --json, which holds both")
    require_family(run, "translate", ["translate"])
    translator = load(run, prepare_device(device, threads))
    asked = {"beam": beam, "length_penalty": length_penalty, "length_penalty_rule": length_penalty_rule}
    how = {key: value for key, value in asked.items() if value is not None}
    drawing = temperature is not None or top_k != 0 or top_p != 1
    how["sampling"] = Sampling(1.0 if temperature is None else temperature, top_k, top_p, seed) if drawing else None
    search = replace(translator.search, n_best=n_best, **how)
    with (
        nullcontext(sys.stdin.buffer) if input is None else open_lines(input) as lines,
        nullcontext(sys.stdout) if output is None else open(output, "w", encoding="utf-8", newline="\n") as out,
    ):
        wanted = [text] if text is not None else read_lines(lines)
        prefixes = iter(lambda: prefix, None) if prefix else None
        answers = translator.translate(
            wanted, how=search, prefixes=prefixes, longest=max_length, align=align, window=1 if stream else 4096
        )
        for line in text_lines(answers, json, n_best, align):  # stopped or killed, what was written stays
            print(line, file=out, flush=stream)
    if text is None or translator.counts["lines"] > translator.counts["translated"]:
        print(f"qkv: {summary(translator.counts)}", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    run_verb(translate, "translate", argv, EXAMPLES)
    return 0
