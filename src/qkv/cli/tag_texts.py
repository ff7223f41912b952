"""``qkv tag`` of texts: line in, tags and spans out."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv tag runs/names < lines.txt > tagged.conll            # a word and its tag a line, a blank line after each text
  qkv tag runs/names --json < lines.txt > spans.jsonl      # spans as characters of the line
  qkv tag runs/names --text 'Barack Obama went to Paris.'
  qkv tag runs/names --words words.conll > tagged.conll    # words that are cut already: the first column is read
"""


def tag(
    run: Path,
    text: str | None = None,
    input: Path | None = None,
    words: Path | None = None,
    output: Path | None = None,
    json: bool = False,
    stream: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Tag the words of each line (the characters, if the model learned from those); a line that cannot be read gives
    a marked one.

    Args:
        run: the folder of a trained run.
        text: one sentence, instead of lines.
        input: a file of lines; standard input if not given.
        words: a file with a word a line and a blank line between sentences, in place of lines.
        output: where to write; standard output if not given.
        json: one line of JSON each, with spans that count in the characters of the line.
        stream: answer each line at once, instead of some thousand lines together.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.cli.text_lines import print_answers
    from qkv.data.tags_reading import read_words
    from qkv.errors import ConfigError
    from qkv.tasks.load import load
    from qkv.tasks.tagger import read_raw
    from qkv.tasks.texts_out import conll_lines, json_spans

    if words is not None and (text is not None or input is not None):
        raise ConfigError("--words and --text or --input are given", expected="one of them")
    tagger = load(run, prepare_device(device, threads))
    window = 1 if stream else 4096

    def answers(lines):
        if words is not None:
            return tagger.tag_words(read_words(words), window=window)
        return tagger.tag([text] if text is not None else read_raw(lines), window=window)

    print_answers(
        tagger,
        answers,
        (lambda answer: json_spans(tagger, answer)) if json else lambda answer: conll_lines(tagger, answer),
        input, output, text is not None, stream,
    )  # fmt: skip


def main(argv: Sequence[str]) -> int:
    run_verb(tag, "tag", argv, EXAMPLES)
    return 0
