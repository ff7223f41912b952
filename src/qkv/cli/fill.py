"""``qkv fill``: what may stand where something is hidden."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb

__all__ = ["main"]

EXAMPLES = """examples:
  qkv fill runs/bert-ko '서울은 한국의 [MASK]이다.'
  qkv fill runs/bert-ko '서울은 [MASK]의 [MASK]이다.' --top 10
  qkv fill runs/bert-ko '[MASK]은 한국의 수도이다.' --json
"""


def fill(
    run: Path,
    text: str,
    top: int = 5,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Say what may stand at each [MASK] of a text: probability, piece, and the text with it.

    Args:
        run: the folder of a run of pretrain, or of an imported model.
        text: a text with [MASK] in it.
        top: how many pieces to say for each.
        json: one line of JSON.
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.errors import ConfigError
    from qkv.tasks.load import load, require_family
    from qkv.tasks.text_encoder import filled_lines

    if top < 1:
        raise ConfigError(f"--top is {top}", expected="a whole number from 1")
    require_family(run, "fill", ["pretrain"])
    encoder = load(run, prepare_device(device, threads))
    for line in filled_lines(encoder, text, top, json):
        print(line)


def main(argv: Sequence[str]) -> int:
    run_verb(fill, "fill", argv, EXAMPLES)
    return 0
