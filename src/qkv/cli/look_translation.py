"""``qkv look`` of a translator."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb, whole_numbers

__all__ = ["main"]

EXAMPLES = """examples:
  qkv look runs/ko-en '나는 학생이다'                      # writes look.html, one offline page
  qkv look runs/ko-en '나는 학생이다' --out cross.svg --layers 'decoder.*.cross'
  qkv look runs/ko-en '나는 학생이다' --out look.safetensors   # the record itself; .json too
  qkv look runs/ko-en '나는 학생이다' --gradient --faithful      # does the answer hang on what was looked at?
  qkv look runs/ko-en '나는 학생이다' --target 'I am a student.'   # another translation than the model's own
"""


def look(
    run: Path,
    text: str,
    out: Path = Path("look.html"),
    layers: str = "*",
    heads: str | None = None,
    target: str | None = None,
    beam: int | None = None,
    gradient: bool = False,
    faithful: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Translate a sentence and show what every layer and head looked at while the model said what it said.

    Args:
        run: the folder of a trained run.
        text: the sentence.
        out: what to write: .html (a page), .svg or .png (a picture), .safetensors or .json (the record).
        layers: names of the layers to keep, * matching anything.
        heads: heads to keep, such as 0,3.
        target: look at this translation instead of the model's own.
        beam: hypotheses of the search whose answer is looked at; the run's own setting if not given.
        gradient: add a map of what each word hangs on by its gradient; a model without attention has no other.
        faithful: also measure whether the translation hangs on what was looked at: words are taken away, in that order
            and in random ones (takes some seconds, for long texts minutes).
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from dataclasses import replace

    from qkv.cli.devices import prepare_device
    from qkv.errors import ConfigError
    from qkv.tasks.load import load

    if target is not None and not target.strip():
        raise ConfigError("--target is empty", expected="a translation to look at")
    translator = load(run, prepare_device(device, threads))
    if target is None:
        answer = translator(text, how=replace(translator.search, **({} if beam is None else {"beam": beam})))
    else:
        answer = next(translator.score([(text, target)]))
    which = {"layers": layers, "heads": whole_numbers("heads", heads)}
    seen = translator.look_at(answer, gradient=gradient, **which)
    if faithful:
        from qkv.look.words import translation_faithfulness

        seen.notes["faithfulness"] = translation_faithfulness(translator, answer).note()
    seen.save(out)
    print(answer.text)
    if "remark" in seen.notes:
        print(seen.notes["remark"])
    if faithful:
        print(seen.notes["faithfulness"]["sentence"])
    print(f"wrote {out}: {len(seen)} {'map' if len(seen) == 1 else 'maps'}")


def main(argv: Sequence[str]) -> int:
    run_verb(look, "look", argv, EXAMPLES)
    return 0
