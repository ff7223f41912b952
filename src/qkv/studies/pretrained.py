"""The study of what pretraining is worth, and what telling the next sentence adds to it.

Devlin et al. 2019 (section 5.1) found that next-sentence prediction helps what is learned later, Liu et al. 2019
(section 4.2) that full packed sentences without it do as well or better. Here a BERT is pretrained both ways, for as
many steps over batches of as many tokens, with one vocabulary; then a classifier of the user's labelled texts starts
from each, and one from nothing. Each seed goes through all of it, so starts are compared seed by seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from qkv.data.corpus_prepare import prepare_corpus
from qkv.data.text_codec import TextCodec
from qkv.data.texts_doctor import examine_all
from qkv.data.texts_prepare import hashed
from qkv.errors import ConfigError, RunError, nearest
from qkv.store import new_folder, read_json, write_json
from qkv.studies.apart import in_a_process
from qkv.studies.pretrained_rung import fine_tuning, learn, text_folder
from qkv.studies.study import Study, keep_terms, write_csv
from qkv.train.run import Run

__all__ = ["STARTS", "Start", "chosen", "compare"]


@dataclass(frozen=True)
class Start:
    """Where a classifier starts: a name for folders, one for people, and the weight of next sentences in pretraining;
    None is no pretraining."""

    name: str
    label: str
    next: float | None


STARTS = {start.name: start for start in (
    Start("pairs",   "words and next sentences", 1.0),
    Start("packed",  "words only",               0.0),
    Start("scratch", "no pretraining",           None),
)}  # fmt: skip


def chosen(names: str | None) -> list[Start]:
    """The starts named, with commas between; all if none is."""
    wanted = list(STARTS) if names is None else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in STARTS:
            raise ConfigError(f"there is no start {name!r}", remedy=nearest(name, STARTS))
    return [STARTS[name] for name in wanted]


def compare(run: Run, starts: Sequence[Start], flags: Sequence[str], seeds: int = 1) -> Study:
    """Pretrain and fine-tune each start with each seed; what is there already is kept.

    Args:
        run: text, budget, optimiser and size of pretraining; ``run.out`` is the study's folder.
        starts: of `STARTS`.
        flags: of `qkv train classify`: the labelled texts, test among them, and what else the user says.
        seeds: how many times each, with the seeds ``run.seed``, ``run.seed + 1`` and so on.
    """
    if (run.out / "run.yaml").exists() or (run.out / "model.json").exists():
        raise RunError("holds a run, not a study", file=run.out, remedy="choose another --out")
    labelled = _checked(fine_tuning(run, flags, None))  # what is wrong with them must not come out after hours
    pairs = any(start.next for start in starts)
    own = run.out / "codec"
    known = TextCodec.load(own) if own.exists() else None
    prepared = prepare_corpus(run.data, text_folder(run.out, pairs), run.seed, pairs, known)
    keep_terms(run, then=" ".join(flags), files=prepared.summary["files_hash"], labelled=labelled)
    if known is None:
        for line in prepared.report:
            print(line)
        with new_folder(own) as partial:
            prepared.codec.save(partial)
    interrupted = False
    for seed, start in ((seed, start) for seed in range(run.seed, run.seed + seeds) for start in starts):
        record = run.out / "results" / f"{start.name}-{seed}.json"
        if record.exists():
            continue
        print(f"\n{start.label}, seed {seed}", flush=True)
        told = in_a_process(learn, replace(run, seed=seed), start.name, start.next, list(flags))
        if told is None:
            interrupted = True
            break
        write_json(record, {"start": start.name, "label": start.label, "seed": seed, **told})
    results = [read_json(file) for file in sorted((run.out / "results").glob("*.json"))]
    results.sort(key=lambda result: (list(STARTS).index(result["start"]), result["seed"]))
    write_csv(map(_row, results), run.out / "results.csv")
    return Study(run.out, results, interrupted)


def _checked(run: Run) -> dict[str, str]:
    """A hash of each part of the labelled texts; ConfigError where they have no test or no one class each."""
    if run.data.labels != "class":
        raise ConfigError(f"data.labels is {run.data.labels!r}", expected="class: the study scores one class a text")
    report, examples = examine_all(run.data)
    report.raise_if_refused()
    if "test" not in examples:
        raise ConfigError(
            "a study needs test texts, which no model has seen",
            remedy="put them as test.* into the folder of --labelled, or name them with --then.data.test",
        )
    return {part: hashed((one.texts, one.label) for one in some) for part, some in examples.items()}


def _row(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if isinstance(value, (str, int, float))}
