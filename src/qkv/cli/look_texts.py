"""``qkv look`` of a model that reads texts."""

from collections.abc import Sequence
from pathlib import Path

from qkv.cli.verb import run_verb, whole_numbers

__all__ = ["main"]

EXAMPLES = """examples:
  qkv look runs/reviews 'a fine film'                     # writes look.html, one offline page
  qkv look runs/entail 'it rains' --pair 'it is wet' --faithful
  qkv look runs/reviews 'a fine film' --first --out look.safetensors     # only the rows of [CLS]
  qkv look runs/reviews 'a fine film' --ablate 'blocks.3.attention:0,2'  # what would it say without these heads?
  qkv look runs/reviews 'a fine film' --every-head        # which single head matters most
  qkv look runs/bert-ko '서울은 한국의 [MASK]이다.'
"""


def look(
    run: Path,
    text: str,
    pair: str | None = None,
    out: Path = Path("look.html"),
    layers: str = "*",
    heads: str | None = None,
    first: bool = False,
    ablate: str | None = None,
    every_head: bool = False,
    gradient: bool = False,
    faithful: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Show what every layer and head looked at while the model read a text, and what its answer hangs on.

    Args:
        run: the folder of a trained run.
        text: the text.
        pair: the text beside it, for a model of pairs; a tab inside the text parts the two as well.
        out: what to write: .html (a page), .svg or .png (a picture), .safetensors or .json (the record).
        layers: names of the layers to keep, * matching anything.
        heads: heads to keep, such as 0,3.
        first: keep only what the first token ([CLS]) looked at: for long texts.
        ablate: heads to silence, such as 'blocks.3.attention:0,2' (several with ; between); the maps are then those of
            the changed model.
        every_head: silence each head by itself and tell which change the answer most.
        gradient: what each answer hangs on by its gradient is always shown, with this or without.
        faithful: also measure whether the answer hangs on the words that it seems to: words are taken away, in that
            order and in random ones (takes some seconds, for long texts minutes).
        device: cpu, cuda, mps ...
        threads: CPU threads.
    """
    from qkv.cli.devices import prepare_device
    from qkv.look.texts import faithfulness_of, largest_effects, score_lines
    from qkv.tasks.encoder_look import silenced
    from qkv.tasks.load import load

    if pair is None and "\t" in text:  # as in a line of pairs
        text, _, pair = text.partition("\t")
    reader = load(run, prepare_device(device, threads))
    which = {"layers": layers, "heads": whole_numbers("heads", heads), "queries": [0] if first else None}
    seen = reader.look(text, pair, edit=silenced(reader.model, ablate) if ablate else None, **which)
    if faithful:
        seen.notes["faithfulness"] = faithfulness_of(reader, text, pair).note()
    seen.save(out)
    print(seen.notes["target"])
    if "remark" in seen.notes:
        print(seen.notes["remark"])
    for line in [*score_lines(seen.notes), *(largest_effects(reader, text, pair) if every_head else ())]:
        print(line)
    if faithful:
        print(seen.notes["faithfulness"]["sentence"])
    print(f"wrote {out}: {len(seen)} {'map' if len(seen) == 1 else 'maps'}")


def main(argv: Sequence[str]) -> int:
    run_verb(look, "look", argv, EXAMPLES)
    return 0
