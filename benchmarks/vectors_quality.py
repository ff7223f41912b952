"""How good word vectors are, ours and gensim's beside each other: same corpus, same words, same budget, several seeds.

    python benchmarks/vectors_quality.py --data corpus.txt.gz --evaluation word_eval/ [--seeds 3] [--models cbow]
    python benchmarks/vectors_quality.py ... --models cbow --gensim-rates 0.025 0.05 0.1   # at several rates

``--evaluation`` holds questions-words.txt, and wordsim353.tsv and simlex999.txt or some of them. Both learn from the
same lines in small letters, cut by the same pattern, with the published settings (5 epochs, window 5, 5 negatives,
sample 1e-3). Printed are mean and spread over the seeds, and how much was in vocabulary.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev

import numpy as np

import qkv
from qkv.data.word_text import open_packed
from qkv.data.words import Cut, Words
from qkv.tasks.word_scores import score_analogies, score_pairs
from qkv.tasks.word_vectors import WordVectors
from qkv.train.loop import train
from qkv.train.options import from_mapping

GENSIM_RATES = {"skipgram": 0.025, "cbow": 0.05}
PATTERN = r"[^\W\d_]+(?:['’][^\W\d_]+)*"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--column", help="of a table")
    options.add_argument("--evaluation", type=Path, required=True)
    options.add_argument("--models", default="skipgram,cbow")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--dim", type=int, default=100)
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rates", type=float, nargs="+", help="our learning rates (the default of each model)")
    options.add_argument("--gensim-rates", type=float, nargs="+", help="learning rates of gensim (0.025; CBOW's 0.05)")
    options.add_argument("--combine", default="mean", help="of CBOW: mean, sum or undivided")
    options.add_argument("--without-gensim", action="store_true")
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(scratch) / "corpus.txt"
        cut = Cut(PATTERN, lowercase=True)
        with open_packed(wanted.data) as stream, open(corpus, "w", encoding="utf-8") as out:
            for line in stream.read().decode().split("\n"):
                text = line.split("\t")[1] if wanted.column and "\t" in line else line
                out.write(" ".join(cut(text)) + "\n")
        for model in wanted.models.split(","):
            rates = [] if model == "glove" or wanted.without_gensim else wanted.gensim_rates or [GENSIM_RATES[model]]
            for engine, rate in [*(("qkv", r) for r in wanted.rates or [None]), *(("gensim", r) for r in rates)]:
                found, seconds = [], []
                for seed in range(wanted.seeds):
                    began = time.process_time()
                    vectors = RUNS[engine](wanted, model, corpus, seed, rate, Path(scratch) / f"{model}-{rate}-{seed}")
                    seconds.append(time.process_time() - began)
                    found.append(_scores(vectors, wanted.evaluation))
                told = "   ".join(f"{name} {_spread([scores[name] for scores in found])}" for name in found[0])
                print(f"{model:9} {engine:7} {rate or '':5} {told}   {mean(seconds):.0f} CPU s", flush=True)


def _scores(vectors: WordVectors, folder: Path) -> dict[str, float]:
    found = {}
    for name in ("wordsim353.tsv", "simlex999.txt"):
        if (folder / name).is_file():
            result = score_pairs(vectors, folder / name)
            found[f"{name.split('.')[0]} ({result.known}/{result.pairs})"] = 100 * (result.spearman or 0)
    if (folder / "questions-words.txt").is_file():
        result = score_analogies(vectors, folder / "questions-words.txt")
        found[f"analogies ({result.known}/{result.asked})"] = 100 * (result.accuracy or 0)
    return found


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _qkv(wanted, model: str, corpus: Path, seed: int, rate: float | None, out: Path) -> WordVectors:
    values = {"data": str(corpus), "model": model, "out": out, "seed": seed, "size": {"dim": wanted.dim},
              "spread": {"threads": wanted.threads}}  # fmt: skip
    if model == "cbow":
        values["size"]["combine"] = wanted.combine
    if model != "glove":
        values["loop"] = {"epochs": wanted.epochs}
    if rate:
        values["optimize"] = {"lr": rate}
    return qkv.load(train(from_mapping("vectors", values)).folder)


def _gensim(wanted, model: str, corpus: Path, seed: int, rate: float | None, out: Path) -> WordVectors:
    from gensim.models import Word2Vec

    trained = Word2Vec(
        corpus_file=None, sentences=[line.split() for line in corpus.read_text(encoding="utf-8").split("\n")],
        vector_size=wanted.dim, window=5, negative=5, sg=int(model == "skipgram"), min_count=5, sample=1e-3,
        alpha=rate, workers=wanted.threads, epochs=wanted.epochs, seed=seed + 1,
    ).wv  # fmt: skip
    return WordVectors(Words(trained.index_to_key, np.zeros(len(trained.index_to_key), np.int64)), trained.vectors)


RUNS = {"qkv": _qkv, "gensim": _gensim}

if __name__ == "__main__":
    main()
