"""The ladder that led to the Transformer: one translation task, learned by one model after another on equal terms.

Every rung learns from the same batches in the same order (so it sees the same target tokens), with the same vocabulary,
and has within a few percent as many parameters. Each is trained and tested in a process of its own; a rung whose result
stands already is not climbed again, and one that was cut short goes on.
"""

import hashlib
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from qkv import models
from qkv.data.codec import Codec
from qkv.data.lines import decode_line
from qkv.data.pairs import open_part, resolve
from qkv.data.prepare import PreparedPairs, prepare_pairs
from qkv.errors import ConfigError, RunError, nearest
from qkv.models.seq2seq import Seq2SeqConfig
from qkv.store import new_folder, write_json
from qkv.studies.apart import in_a_process
from qkv.studies.rung import climb
from qkv.studies.study import Study, keep_terms, read_results, write_csv
from qkv.tasks.evaluate import read_gold
from qkv.tasks.translate import Translate
from qkv.train.run import Loop, Run

__all__ = ["RUNGS", "Rung", "chosen", "compare"]


@dataclass(frozen=True)
class Rung:
    """A model of the ladder: a name for folders, a name for people, and what makes it differ from the others."""

    name: str
    label: str
    model: str
    changes: dict[str, Any]


RUNGS = {rung.name: rung for rung in (
    # An encoder that reads both ways does so whichever end it begins at: reversal would only swap its halves.
    Rung("none",          "no attention",                  "seq2seq", {"attention": "none", "both_ways": False}),
    Rung("none-reversed", "no attention, source reversed", "seq2seq",
         {"attention": "none", "both_ways": False, "reverse": True}),
    Rung("dot",           "dot attention",                 "seq2seq", {"attention": "dot"}),
    Rung("bilinear",      "bilinear attention",            "seq2seq", {"attention": "bilinear"}),
    Rung("additive",      "additive attention",            "seq2seq", {"attention": "additive"}),
    Rung("transformer",   "Transformer",                   "transformer",
         {"encoder_depth": 2, "decoder_depth": 2, "heads": 4, "order": "pre"}),
)}  # fmt: skip
REFERENCE = "dot"  # the others get as many parameters as this one has at the width asked for
HIDDEN = (2.0, 1.75, 2.25, 1.5, 2.5, 1.0, 3.0)  # widths of a feed-forward layer in widths of the model, as wished
NEAR, FAR = 0.02, 0.1  # how far from the reference a count of parameters may lie: gladly, and at most
FEW_TESTS = 5
EVALUATIONS = 10  # of a rung: without points there is nothing to compare at equal minutes
STEPS_A_MINUTE = 300  # as a guess, where minutes alone end a rung


def chosen(names: str | None) -> list[Rung]:
    """The rungs named, with commas between; all if none is."""
    wanted = list(RUNGS) if names is None else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in RUNGS:
            raise ConfigError(f"there is no rung {name!r}", remedy=nearest(name, RUNGS))
    return [RUNGS[name] for name in wanted]


def compare(run: Run, rungs: Sequence[Rung], seeds: int = 1, gold: Path | None = None, beam: int = 1) -> Study:
    """Climb each rung with each seed; what is there already is kept.

    Args:
        run: data, budget, optimiser, and the size of the recurrent rungs; ``run.out`` is the study's folder.
        rungs: which models.
        seeds: how many times each, with the seeds ``run.seed``, ``run.seed + 1`` and so on.
        gold: gold alignments of the test pairs; ``test.align`` beside the test files if not given and there.
        beam: hypotheses of the search that test sentences are translated with.
    """
    data = resolve(run.data)
    tests = _tests(data)
    gold = gold or _beside(data.test)
    if gold:
        read_gold(gold, tests)  # what is wrong with it must not come out after hours
    if (run.out / "run.yaml").exists() or (run.out / "model.json").exists():
        raise RunError("holds a run, not a study", file=run.out, remedy="choose another --out")
    prepared = _prepared(run)
    codec = prepared.codec
    links = hashlib.blake2b(gold.read_bytes(), digest_size=12).hexdigest() if gold else ""
    keep_terms(run, beam=beam, gold=links, files=prepared.summary["files_hash"])
    sizes = {rung.name: size for rung, size in zip(rungs, _sizes(run.size, rungs, codec), strict=True)}
    read_results(run.out)  # a damaged one must not come out after hours
    interrupted = False
    every = _every(run, prepared.train.epoch_length(0))
    often = min(run.loop.log_every, every, run.loop.steps or run.loop.log_every)
    for seed in range(run.seed, run.seed + seeds):
        for rung in rungs:
            record = run.out / "results" / f"{rung.name}-{seed}.json"
            if record.exists():
                continue
            own = replace(
                run, model=rung.model, size=sizes[rung.name], seed=seed, out=run.out / "runs" / f"{rung.name}-{seed}",
                loop=replace(run.loop, log_every=often, evaluate_every=every),
            )  # fmt: skip
            print(f"\n{rung.label}, seed {seed}", flush=True)
            told = in_a_process(climb, own, run.out, tests, gold, beam)
            if told is None:
                interrupted = True
                break
            write_json(record, {"rung": rung.name, "label": rung.label, "seed": seed, **told})
        if interrupted:
            break
    results = read_results(run.out)
    order = list(RUNGS)
    results.sort(key=lambda result: (order.index(result["rung"]), result["seed"]))
    write_csv(map(_row, results), run.out / "results.csv")
    return Study(run.out, results, interrupted)


def _every(run: Run, epoch: int) -> int:
    """Steps between evaluations: as many as were asked for, else so that each rung has some `EVALUATIONS`.

    Args:
        epoch: batches of one.
    """
    loop = run.loop
    if loop.evaluate_every != Loop.evaluate_every:
        return loop.evaluate_every
    ends = (
        loop.most_steps,
        loop.epochs and math.ceil(loop.epochs * epoch / run.optimize.accumulate),
        loop.minutes and math.ceil(loop.minutes * STEPS_A_MINUTE),
    )
    return max(1, min(loop.evaluate_every, min(filter(None, ends)) // EVALUATIONS))


def _tests(data) -> list[tuple[str, str]]:
    if not data.test:
        raise ConfigError(
            "a study needs test pairs, which no model has seen", remedy="name them with --data.test, or put them as "
            "test.* into the folder of --data",
        )  # fmt: skip
    corpus = open_part(data, "test")
    pairs = [tuple(decode_line(pair.line, side).text for side in (pair.source, pair.target)) for pair in corpus]
    if len(pairs) < FEW_TESTS:
        raise ConfigError(f"{len(pairs)} test pairs are too few", expected=f"{FEW_TESTS} or more")
    return pairs


def _beside(test: str) -> Path | None:
    file = Path(f"{test}.align")
    return file if file.is_file() else None


def _prepared(run: Run) -> PreparedPairs:
    """The pairs and the vocabulary that all rungs share, made once, in the study's folder."""
    own = run.out / "codec"
    prepared = prepare_pairs(run.data, run.out, run.seed, Codec.load(own) if own.exists() else None)
    if not own.exists():
        for line in prepared.report:
            print(line)
        with new_folder(own) as partial:
            prepared.codec.save(partial)
    return prepared


def _sizes(base: Seq2SeqConfig, rungs: Sequence[Rung], codec: Codec) -> Iterator[Any]:
    """Each rung's config, of the width that brings its parameters nearest to the reference's."""
    task = Translate()

    def parameters(model: str, config: Any) -> int:
        with torch.device("meta"):
            made = models.find(model)(task.config(codec, config))
        return sum(parameter.numel() for parameter in made.parameters())

    wanted = parameters("seq2seq", replace(base, **RUNGS[REFERENCE].changes))
    for rung in rungs:
        found = []
        for widths, config in _families(rung, base):
            at = bisect_left(widths, wanted, key=lambda width: parameters(rung.model, config(width)))
            near = [config(width) for width in widths[max(0, at - 1) : at + 1]]
            found += [(abs(parameters(rung.model, each) / wanted - 1), each) for each in near]
        off, best = next((each for each in found if each[0] <= NEAR), min(found, key=lambda each: each[0]))
        if off > FAR:
            raise ConfigError(
                f"{rung.label} cannot have as many parameters as the others", remedy="choose another --size.dim"
            )
        yield best


def _families(rung: Rung, base: Seq2SeqConfig) -> Iterator[tuple[range, Callable[[int], Any]]]:
    """Widths that a rung may have, and its config of a width; the families that are wished for most come first."""
    if rung.model == "seq2seq":
        plain = {"order": "luong", "feed": "none"} if rung.changes["attention"] == "none" else {}
        yield range(2, 3 * base.dim, 2), lambda dim: replace(base, dim=dim, **rung.changes, **plain)
        return
    config, heads = models.find(rung.model).Config, rung.changes["heads"]
    same = {"dropout": base.dropout, "tie": base.tie, "output_bias": base.output_bias, **rung.changes}
    for factor in HIDDEN:
        yield range(heads, 3 * base.dim, heads), lambda dim: config(dim=dim, hidden=int(factor * dim), **same)  # noqa: B023


def _row(result: dict[str, Any]) -> dict[str, Any]:
    """A line of the table: scores by length in columns of their own."""
    row = {key: value for key, value in result.items() if isinstance(value, (str, int, float))}
    for group in result["by_length"]:
        row |= {f"{name}_{group['name']}": value for name, value in group["scores"].items()}
    return row
