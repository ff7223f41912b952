"""Texts that real people wrote: classes, names and parts of speech, with the simplest answers beside ours.

    python benchmarks/texts.py --data ../shared/data --out results --minutes 5
    python benchmarks/texts.py --data ../shared/data --out results --sets nsmc,klue --systems bag,rnn --epochs 3
    python benchmarks/texts.py ... --start bert-ko=runs/bert-ko --vectors en=vectors.txt --sets nsmc

Systems: ``majority`` (the commonest class or tag; of words, the commonest tag of each word), ``bag`` (scikit-learn:
TF-IDF of words and pairs of words, logistic regression; of words, logistic regression over the word, its ends and its
neighbours), ``letters`` (the same of pieces of 2 to 4 characters; texts only), ``rnn`` and ``bert`` (new models of ours
of the size named), and one for each ``--start NAME=RUN`` and ``--vectors NAME=FILE``. Every set is scored on its test
part once, with the best weights on held-out texts of train; part-of-speech sets, which are small, in five folds.
Writes ``texts.jsonl``, a line a measurement, and prints the table; what is in the file already is not run again.
"""

import argparse
import json
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.report import Report
from qkv.data.spans import find_scheme, spans_of, spelled
from qkv.data.tags import TagFiles
from qkv.data.tags_reading import Sentence, read_sentences
from qkv.data.texts import TextFiles
from qkv.data.texts_listing import list_texts
from qkv.tasks.class_scores import class_scores
from qkv.tasks.evaluate_tags import evaluate_tags
from qkv.tasks.evaluate_texts import evaluate_texts
from qkv.tasks.load import load
from qkv.tasks.tag_scores import span_scores, word_scores
from qkv.train.loop import train
from qkv.train.options import from_mapping


@dataclass(frozen=True)
class Set:
    """A set of data: its folder, its task, its files of train and test; none of test where folds are made of train."""

    folder: str
    task: str
    train: str
    test: str = ""
    score: str = "accuracy"


SETS = {
    "nsmc": Set("nsmc", "classify", "train.tsv", "test.tsv"),
    "banking77": Set("banking77", "classify", "train.tsv", "test.tsv"),
    "klue": Set("klue_ner_dev", "tag", "train.conll", "test.conll", "f1"),
    "wnut17": Set("wnut17_ner", "tag", "train.conll", "dev.conll", "f1"),
    "pos_en": Set("ud_pos_en", "tag", "train_ewt_dev.conll"),
    "pos_ko": Set("ud_pos_ko", "tag", "train.conll"),
}
FOLDS = 5
BASELINES = ("majority", "bag", "letters")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--systems", default="majority,bag,letters,rnn,bert")
    parser.add_argument("--start", action="append", default=[], help="NAME=RUN: a pretrained run to start from")
    parser.add_argument("--vectors", action="append", default=[], help="NAME=FILE: word vectors to start from")
    parser.add_argument("--size", default="tiny", help="of new models")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each training")
    parser.add_argument("--epochs", type=int, help="of each training, instead: what else runs then does not matter")
    parser.add_argument("--folds", type=int, default=FOLDS, help="of the part-of-speech sets, how many are run")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "texts.jsonl"
    systems = [*args.systems.split(","), *args.start, *args.vectors]
    for name in args.sets.split(","):
        for fold, (train_file, test_file) in enumerate(
            parts(SETS[name], args.data, args.out / "folds" / name, args.folds)
        ):
            for system in systems:
                limit = {"epochs": args.epochs} if args.epochs else {"minutes": args.minutes}
                limit = {"minutes": 0.0} if system in BASELINES else limit
                key = {"set": name, "system": system.partition("=")[0], "fold": fold, **limit}
                if any(key.items() <= row.items() for row in rows(file)):
                    continue
                begun = time.monotonic()
                scores = measure(SETS[name], system, train_file, test_file, args, f"{name}-{key['system']}-{fold}")
                if scores is not None:
                    row = {**key, **scores, "seconds": round(time.monotonic() - begun, 1)}
                    with open(file, "a", encoding="utf-8") as lines:
                        lines.write(json.dumps(row) + "\n")
    print(table(rows(file)))


def rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def table(found: list[dict]) -> str:
    """A row a system, a column a set; of several folds the mean and the deviation."""
    cells: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in found:
        cells[row["system"], row["set"]].append(100 * row[SETS[row["set"]].score])
    sets, systems = ([*dict.fromkeys(row[key] for row in found)] for key in ("set", "system"))
    lines = ["| system | " + " | ".join(f"{name} ({SETS[name].score})" for name in sets) + " |"]
    lines.append("|---|" + "---:|" * len(sets))
    for system in systems:
        shown = [
            f"{np.mean(values):.1f}" + (f" ± {np.std(values):.1f}" if len(values) > 1 else "")
            if (values := cells[system, name])
            else ""
            for name in sets
        ]
        lines.append(f"| {system} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def parts(which: Set, data: Path, scratch: Path, folds: int) -> list[tuple[Path, Path]]:
    """Files of train and test: the set's own, or those of some of the five folds."""
    whole = data / which.folder / which.train
    if which.test:
        return [(whole, data / which.folder / which.test)]
    scratch.mkdir(parents=True, exist_ok=True)
    blocks = [block for block in whole.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    order = np.random.default_rng(0).permutation(len(blocks))
    made = []
    for fold in range(folds):
        held = set(order[fold::FOLDS].tolist())
        files = scratch / f"train-{fold}.conll", scratch / f"test-{fold}.conll"
        for file, out in zip(files, (False, True), strict=True):
            own = [block for i, block in enumerate(blocks) if (i in held) == out]
            file.write_text("\n\n".join(own) + "\n\n", encoding="utf-8")
        made.append(files)
    return made


def measure(which: Set, system: str, train_file: Path, test_file: Path, args, name: str) -> dict | None:
    if system in BASELINES:
        if which.task == "tag":
            return None if system == "letters" else tag_baseline(system, train_file, test_file)
        return text_baseline(system, train_file, test_file)
    settings: dict = {
        "data": {"train": str(train_file)},
        "loop": {"epochs": args.epochs} if args.epochs else {"minutes": args.minutes},
        "out": args.out / "runs" / name,
    }
    settings["loop"]["evaluate_every"] = 100
    title, _, where = system.partition("=")
    if f"{title}={where}" in args.start:
        settings["model"] = where
    elif where:
        settings |= {"model": "rnn", "learn": {"embeddings": where}, "size": {"dim": width(Path(where))}}
        settings["data"]["vocabulary"] = "word"
    else:
        settings |= {"model": title, "size": args.size}
    if which.task == "classify":
        settings["data"]["max_length"] = 128
    shutil.rmtree(settings["out"], ignore_errors=True)
    folder = train(from_mapping(which.task, settings)).folder
    evaluate = evaluate_tags if which.task == "tag" else evaluate_texts
    return evaluate(load(folder), str(test_file)).scores


def width(vectors: Path) -> int:
    from qkv.data.word_vectors import read_vectors

    return read_vectors(vectors)[1].shape[1]


# --- Baselines -------------------------------------------------------------------------------------------------------


def text_baseline(system: str, train_file: Path, test_file: Path) -> dict[str, float]:
    sides = list_texts(TextFiles(train=str(train_file), test=str(test_file)), Report(unit="texts"))
    (texts, labels), (tests, true) = (
        ([" ".join(one.texts) for one in sides[part]], [one.label for one in sides[part]]) for part in ("train", "test")
    )
    classes = sorted(set(labels))
    if system == "majority":
        said = np.tile(np.array([labels.count(name) for name in classes]) / len(labels), (len(tests), 1))
    else:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        words = dict(ngram_range=(1, 2), token_pattern=r"\S+")
        letters = dict(analyzer="char_wb", ngram_range=(2, 4))
        bag = TfidfVectorizer(sublinear_tf=True, min_df=2, **(words if system == "bag" else letters))
        said = make_pipeline(bag, LogisticRegression(C=10.0, max_iter=300)).fit(texts, labels).predict_proba(tests)
    return class_scores(said, np.array([classes.index(label) for label in true]))


def tag_baseline(system: str, train_file: Path, test_file: Path) -> dict[str, float]:
    sides = [read_sentences(file, "train", TagFiles(), Report()) for file in (train_file, test_file)]
    scheme = find_scheme(tag for one in sides[0] for tag in one.tags)
    if scheme != "plain":
        sides = [[one._replace(tags=tuple(spelled(spans_of(one.tags), len(one.tags)))) for one in s] for s in sides]
    said = (commonest if system == "majority" else neighbours)(*sides)
    return (word_scores if scheme == "plain" else span_scores)([one.tags for one in sides[1]], said)


def commonest(train_set: Sequence[Sentence], test: Sequence[Sentence]) -> list[list[str]]:
    """The commonest tag of each word; of an unseen one, of all words."""
    by_word: dict[str, Counter] = defaultdict(Counter)
    for one in train_set:
        for word, tag in zip(one.words, one.tags, strict=True):
            by_word[word][tag] += 1
            by_word[""][tag] += 1
    best = {word: counts.most_common(1)[0][0] for word, counts in by_word.items()}
    return [[best.get(word, best[""]) for word in one.words] for one in test]


def neighbours(train_set: Sequence[Sentence], test: Sequence[Sentence]) -> list[list[str]]:
    """Logistic regression, by stochastic gradients, over each word, its ends, and the two words on both sides."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import SGDClassifier

    def features(words: Sequence[str], i: int) -> dict[str, object]:
        found: dict[str, object] = {"capital": words[i][:1].isupper(), "digit": any(map(str.isdigit, words[i]))}
        for away in range(-2, 3):
            word = words[i + away] if 0 <= i + away < len(words) else "<>"
            found[f"word{away}"] = word.lower()
            if abs(away) < 2:
                found |= {f"end{size}{away}": word[-size:] for size in (1, 2, 3)}
                found |= {f"begin{size}{away}": word[:size] for size in (1, 2, 3)}
        return found

    vectorizer = DictVectorizer()

    def matrix(some: Sequence[Sentence], make: Callable) -> Any:
        made = make(features(one.words, i) for one in some for i in range(len(one.words)))
        made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)  # all that it reads
        return made

    model = SGDClassifier("log_loss", alpha=1e-6, max_iter=20, random_state=0)
    model.fit(matrix(train_set, vectorizer.fit_transform), [tag for one in train_set for tag in one.tags])
    said = iter(model.predict(matrix(test, vectorizer.transform)).tolist())
    return [[next(said) for _ in one.words] for one in test]


if __name__ == "__main__":
    main()
