"""The demonstration: a Transformer learns the built-in phrases, translates ones it never saw, and shows how."""

import time
from dataclasses import dataclass
from pathlib import Path

from qkv.data import phrases
from qkv.look.alignment import alignment_error_rate, read_pharaoh
from qkv.look.page import write_page
from qkv.store import write_json
from qkv.tasks.load import load
from qkv.tasks.scores import text_scores
from qkv.train.loop import train
from qkv.train.options import from_mapping

__all__ = ["Report", "demo"]

SETTINGS = {
    "model": "transformer",
    "size": "tiny",
    "learn": {"align": 0.1},  # so that the shifted reading of alignments is good with so few layers
    "optimize": {"lr": 2e-3, "warmup": 200, "schedule": "cosine"},
    "loop": {"epochs": 12, "evaluate_every": 260},
}
SHOWN = 8  # sentences in the page


@dataclass(frozen=True)
class Report:
    """What the demonstration measured on the unseen test sentences; ``seconds`` is all of it."""

    bleu: float
    chrf: float
    aer: float
    exact: float
    seconds: float
    signatures: dict[str, str]
    examples: tuple[tuple[str, str, str], ...]  # source, translation, reference


def demo(out: Path, seed: int = 0, threads: int | None = None) -> Report:
    """Train into ``out/run`` on sentences in ``out/data``; write ``out/look.html`` and ``out/report.json``."""
    begun = time.monotonic()
    splits = phrases.split(seed=seed)
    phrases.write(splits, out / "data")
    data = {"folder": str(out / "data"), "source": "ko", "target": "en", "batch_tokens": 1024}
    result = train(from_mapping("translate", {**SETTINGS, "data": data, "out": out / "run", "seed": seed}))
    if result.interrupted:
        raise KeyboardInterrupt
    translator = load(result.folder)
    sources, references = [p.korean for p in splits.test], [p.english for p in splits.test]
    answers = translator(sources)
    scores, signatures = text_scores([a.text for a in answers], references)
    gold = read_pharaoh(out / "data" / "test.align")
    given = list(translator.align(list(translator.score(zip(sources, references, strict=True)))))
    aer = alignment_error_rate([a.links for a in given], [g.sure for g in gold], [g.possible for g in gold])
    write_page([translator.look_at(answer) for answer in answers[:SHOWN]], out / "look.html")
    exact = sum(a.text == r for a, r in zip(answers, references, strict=True)) / len(references)
    examples = tuple((s, a.text, r) for s, a, r in zip(sources, answers, references, strict=True))
    report = Report(scores["bleu"], scores["chrf"], aer, exact, time.monotonic() - begun, signatures, examples[:SHOWN])
    write_json(
        out / "report.json", {k: getattr(report, k) for k in ("bleu", "chrf", "aer", "exact", "seconds", "signatures")}
    )
    return report
