"""Word vectors beside gensim, and GloVe beside others: words a second and memory, on one corpus with equal settings.

    python benchmarks/vectors.py --data corpus.txt.gz                      # skip-gram and CBOW, beside gensim
    python benchmarks/vectors.py --data corpus.txt.gz --models glove --glove ~/GloVe/build --glove-python ~/glove-python
    python benchmarks/vectors.py --data corpus.txt.gz --sweep              # as vocabulary, dim and threads grow

Every engine runs in a process of its own, ours and gensim's by turns, and each is given the same words: those of the
corpus cut at blanks, as many threads, one epoch. Reading is not counted; training is, by the clock and by CPU time
(on a machine that others use, only the second can be compared). Memory is the peak of the whole process. Printed are
medians, and the ratio of each pair of runs that followed each other.

``--glove`` is where Stanford's four programs were built, ``--glove-python`` where the extensions of Kula's glove-python
were (Cython, OpenMP; it holds one table of vectors, not two, and counts without a budget of memory).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

ENGINES = {"skipgram": ("qkv", "gensim"), "cbow": ("qkv", "gensim"), "glove": ("qkv",)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--lines", type=int, help="only so many lines")
    options.add_argument("--models", default="skipgram,cbow")
    options.add_argument("--dim", type=int, default=100)
    options.add_argument("--window", type=int, default=5)
    options.add_argument("--negatives", type=int, default=5)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--min-count", type=int, default=5)
    options.add_argument("--most-words", type=int)
    options.add_argument("--pairs", type=int, default=3, help="runs of each engine")
    options.add_argument("--glove", type=Path, help="the folder of Stanford's vocab_count, cooccur, shuffle and glove")
    options.add_argument("--glove-python", type=Path, help="the folder of glove-python, its extensions built in place")
    options.add_argument("--sweep", action="store_true")
    options.add_argument("--engine", help=argparse.SUPPRESS)
    options.add_argument("--model", help=argparse.SUPPRESS)
    options.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    wanted = options.parse_args()
    if wanted.engine:
        print(json.dumps(RUNS[wanted.engine](wanted)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        wanted.scratch = Path(scratch)
        _prepare(wanted)
        for changes in SWEEP if wanted.sweep else ({},):
            for key, value in changes.items():
                setattr(wanted, key, value)
            print("  ".join(f"{key} {getattr(wanted, key)}" for key in ("dim", "window", "threads", "most_words")))
            for model in wanted.models.split(","):
                _compare(wanted, model)


SWEEP = [{"dim": dim, "threads": threads, "most_words": words}
         for dim, threads, words in ((50, 2, None), (100, 2, None), (300, 2, None), (100, 1, None), (100, 2, 5000))
]  # fmt: skip


def _prepare(wanted: argparse.Namespace) -> None:
    """The corpus as plain text, so that every program reads the same."""
    from qkv.data.word_text import open_packed

    with open_packed(wanted.data) as stream, open(wanted.scratch / "corpus.txt", "wb") as out:
        for number, line in enumerate(stream.read().split(b"\n")):
            if wanted.lines is None or number < wanted.lines:
                out.write(b" ".join(line.split()) + b"\n")


def _compare(wanted: argparse.Namespace, model: str) -> None:
    engines = list(ENGINES[model])
    if model == "glove":
        engines += ["stanford"] * bool(wanted.glove) + ["glove-python"] * bool(wanted.glove_python)
    results: dict[str, list[dict]] = {engine: [] for engine in engines}
    for _ in range(wanted.pairs):
        for engine in engines:
            results[engine].append(_run(wanted, engine, model))
    for engine, runs in results.items():
        told = {key: median(run[key] for run in runs) for key in runs[0]}
        print(
            f"{model:9} {engine:9} {told['words'] / told['seconds'] / 1e6:6.3f} M words/s   "
            f"{told['words'] / told['cpu'] / 1e6:6.3f} M words per CPU second   {told['memory'] / 1e6:6.0f} MB"
        )
    for other in engines[1:]:
        for key, name in (("seconds", "by the clock"), ("cpu", "by CPU time")):
            ratios = [
                (theirs[key] / theirs["words"]) / (ours[key] / ours["words"])
                for ours, theirs in zip(results["qkv"], results[other], strict=True)
            ]
            print(f"{model:9} qkv / {other}: {median(ratios):.2f} x {name} ({min(ratios):.2f} to {max(ratios):.2f})")
    sys.stdout.flush()


def _run(wanted: argparse.Namespace, engine: str, model: str) -> dict:
    flags = {key: getattr(wanted, key) for key in ("data", "dim", "window", "negatives", "threads", "min_count",
                                                   "most_words", "glove", "glove_python", "scratch")}  # fmt: skip
    words = [
        part for key, value in flags.items() if value is not None for part in (f"--{key.replace('_', '-')}", str(value))
    ]
    command = [sys.executable, __file__, *words, "--engine", engine, "--model", model]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


class Timed:
    """Seconds by the clock and of the CPU, of this process and those that it waited for."""

    def __enter__(self) -> "Timed":
        self.began, self.cpu_began = time.perf_counter(), self._cpu()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu = time.perf_counter() - self.began, self._cpu() - self.cpu_began

    @staticmethod
    def _cpu() -> float:
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    def told(self, words: int) -> dict:
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return {"words": words, "seconds": self.seconds, "cpu": self.cpu, "memory": peak * 1024}


def _qkv(wanted: argparse.Namespace) -> dict:
    from qkv import models
    from qkv.data.word_ids import read_text
    from qkv.data.word_text import WordText
    from qkv.models.saved import build
    from qkv.tasks.task import Position
    from qkv.tasks.word_learner import CountLearner, WindowLearner

    data = WordText(str(wanted.scratch / "corpus.txt"), min_count=wanted.min_count, most_words=wanted.most_words)
    with tempfile.TemporaryDirectory() as folder:
        words, text = read_text(data, Path(folder) / "text")
        size = {"words": len(words), "dim": wanted.dim, "window": wanted.window}
        if wanted.model != "glove":
            size["negatives"] = wanted.negatives
        model = build(wanted.model, models.find(wanted.model).Config(**size))
        given = (model, words, text, 1, 0.025, 0, wanted.threads)
        if wanted.model == "glove":
            counts = Path(folder) / "warm"
            CountLearner(*given, folder=counts, memory=10**9, tell=print).part(Position())  # compiled, not counted
            with Timed() as timed:
                learner = CountLearner(*given, folder=Path(folder) / "counts", memory=10**9, tell=print)
                for part in range(learner.parts):
                    learner.part(Position(0, part))
        else:
            learner = WindowLearner(*given)
            with Timed() as timed:
                for part in range(learner.parts):
                    learner.part(Position(0, part))
        return timed.told(len(text.ids))


def _gensim(wanted: argparse.Namespace) -> dict:
    from gensim.models import Word2Vec
    from gensim.models.word2vec import LineSentence

    model = Word2Vec(
        vector_size=wanted.dim, window=wanted.window, negative=wanted.negatives, sg=int(wanted.model == "skipgram"),
        min_count=wanted.min_count, max_final_vocab=wanted.most_words, workers=wanted.threads, sample=1e-3, epochs=1,
    )  # fmt: skip
    sentences = list(LineSentence(str(wanted.scratch / "corpus.txt")))
    model.build_vocab(sentences)
    with Timed() as timed:
        model.train(sentences, total_examples=model.corpus_count, epochs=1)
    return timed.told(int(sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)))


def _stanford(wanted: argparse.Namespace) -> dict:
    """The published C programs, one epoch; counting and training are timed, the vocabulary is not."""
    where, corpus, bin = wanted.scratch, (wanted.scratch / "corpus.txt").read_bytes(), wanted.glove

    def piped(name: str, source: str | bytes, out: str, *flags: str) -> None:
        given = source if isinstance(source, bytes) else (where / source).read_bytes()
        with open(where / out, "wb") as file:
            subprocess.run([str(bin / name), *flags, "-verbose", "0"], input=given, stdout=file, check=True)

    piped("vocab_count", corpus, "vocab", "-min-count", str(wanted.min_count))
    words = sum(int(line.split()[1]) for line in (where / "vocab").read_text().splitlines())
    with Timed() as timed:
        piped("cooccur", corpus, "cooc", "-vocab-file", str(where / "vocab"), "-window-size", str(wanted.window),
              "-memory", "1.0", "-overflow-file", str(where / "over"))  # fmt: skip
        piped("shuffle", "cooc", "shuf", "-memory", "1.0", "-temp-file", str(where / "temp"))
        subprocess.run([str(bin / "glove"), "-save-file", str(where / "vectors"), "-threads", str(wanted.threads),
                        "-input-file", str(where / "shuf"), "-vocab-file", str(where / "vocab"), "-iter", "1",
                        "-vector-size", str(wanted.dim), "-binary", "1", "-verbose", "0"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
    return timed.told(words)


def _glove_python(wanted: argparse.Namespace) -> dict:
    """One epoch; counting and training are timed. Rare words are dropped first, as they are by us."""
    sys.path.insert(0, str(wanted.glove_python))
    from glove import Corpus, Glove

    lines = (wanted.scratch / "corpus.txt").read_text(encoding="utf-8").split("\n")
    times = Counter(word for line in lines for word in line.split())
    kept = {word: row for row, word in enumerate(w for w, n in times.most_common() if n >= wanted.min_count)}
    sentences = [[word for word in line.split() if word in kept] for line in lines]
    with Timed() as timed:
        corpus = Corpus(dictionary=kept)
        corpus.fit(sentences, window=wanted.window)
        Glove(no_components=wanted.dim, learning_rate=0.05).fit(corpus.matrix, epochs=1, no_threads=wanted.threads)
    return timed.told(sum(times[word] for word in kept))


RUNS = {"qkv": _qkv, "gensim": _gensim, "stanford": _stanford, "glove-python": _glove_python}

if __name__ == "__main__":
    main()
