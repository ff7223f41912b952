"""Sentence pairs made ready for training: checked, encoded by a codec, kept in the run's folder.

What is kept is keyed by the content of the files, the codec and the settings: a resumed run finds it, a run whose data
has changed does not, and a damaged one is made again.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.buckets import Batch, Buckets, by_length, pad
from qkv.data.codec import Codec, Vocabulary
from qkv.data.kept import put, scratch_in, tidy
from qkv.data.lines import windows
from qkv.data.normalise import Normaliser
from qkv.data.notes import HELD_OUT, KEPT, STRETCH, CleanPair, Notes
from qkv.data.pairs import PARTS, PairFiles, examine_all, open_part, resolve
from qkv.data.report import Report
from qkv.data.store import PairStore, StoreWriter
from qkv.data.subwords import Subwords, default_words
from qkv.errors import ConfigError, DataError

__all__ = ["PreparedPairs", "prepare_pairs"]

DEV_PAIRS = 1000  # of train become dev where none is named, but never more than one in twenty
CHUNK = 8192  # pairs encoded at once
SETTINGS = ("source", "target", "max_length", "max_ratio", "keep_duplicates")  # that decide what is kept


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs made ready. ``dev`` holds each held-out pair once, by length; ``dev_texts`` is line number -> (source,
    target), cleaned but with capitals, for scores that compare text; a batch's ``ids`` are its keys."""

    train: Buckets
    dev: list[Batch]
    dev_texts: dict[int, tuple[str, str]]
    codec: Codec
    report: list[str]
    summary: dict[str, Any] = field(default_factory=dict)


def prepare_pairs(
    data: PairFiles, folder: Path, seed: int, codec: Codec | None = None, source: Vocabulary | None = None
) -> PreparedPairs:
    """Check, clean, learn the codec unless one is given, encode; keep what is derived in ``folder/data``.

    With a codec and unchanged files and settings, what is kept is used again and nothing is read but checksums.
    Several processes may call it at once: each result is whole before it is renamed into place, and all are equal.

    Args:
        source: the vocabulary of the source, where only the target's is to be learned.

    Raises:
        DataError: the data cannot be used: unequal line counts, nothing left to train on.
        ConfigError: settings that cannot be, such as a vocabulary too small for the alphabet.
    """
    data, kept = resolve(data), Path(folder) / "data"
    if not data.train:
        raise ConfigError("there is nothing to train on", remedy="name it with --data.train")
    given = (codec.source, codec.target) if codec else (source,) if source else ()
    if data.bpe_dropout and not all(getattr(v, "made_of", "") == "bpe" for v in given):
        whose = "the encoder's vocabulary is not one" if source else "the run that is gone on from has another"
        raise ConfigError(
            f"BPE-dropout cuts words by a BPE vocabulary of our own, and {whose}",
            remedy="leave --data.bpe_dropout at 0",
        )
    if source and data.joint:
        raise ConfigError(
            "data.joint asks for one vocabulary of both languages, and the encoder brings that of the source",
            remedy="leave --data.joint out",
        )
    kept.mkdir(parents=True, exist_ok=True)
    files = {part: corpus.fingerprint() for part in PARTS if (corpus := open_part(data, part))}
    where = kept / _key(data, files, codec) if codec else None
    opened = _open(where) if where else None
    if opened is None:
        try:
            codec, where = _make(data, files, kept, codec, source)
        except OSError as error:  # of writing: what cannot be read is a DataError already
            room = f"{shutil.disk_usage(kept).free / 1e6:,.0f} MB are free"
            raise DataError(f"the encoded data cannot be written ({error}; {room})", file=kept) from error
        opened = _open(where)
        if opened is None:
            raise DataError("the encoded data cannot be read back", remedy="look for a failing disk", file=where)
    tidy(kept, where)
    train, dev, dev_texts, report = opened
    batches = Buckets(train, codec, data.batch_tokens, seed, data.bpe_dropout, data.max_length)
    return PreparedPairs(
        batches,
        _in_order(dev, codec, data.batch_tokens),
        dev_texts,
        codec,
        report.lines(),
        {
            **report.summary(),
            "files_hash": files,
            "codec_hash": codec.fingerprint(),
            "pairs": len(train),
            "dev_pairs": len(dev),
        },
    )


def _make(
    data: PairFiles, files: dict[str, str], kept: Path, codec: Codec | None, source: Vocabulary | None
) -> tuple[Codec, Path]:
    """Check, learn, encode; the codec and the new folder under ``kept``."""
    with scratch_in(kept) as scratch:
        report, notes = examine_all(data, scratch)
        report.raise_if_refused()
        if not data.dev:
            _hold_out(notes["train"], report)
        codec = codec or _learn(data, notes["train"], report, source)
        where = kept / _key(data, files, codec)
        if _open(where) is None:
            _encode(data, notes, codec, report, scratch / "whole")
            if where.exists() and _open(where) is None:  # damaged; a whole one is another process's, and as good
                shutil.rmtree(where)
            put(scratch / "whole", where)
        return codec, where


def _key(data: PairFiles, files: dict[str, str], codec: Codec) -> str:
    settings = {name: getattr(data, name) for name in SETTINGS}
    whole = json.dumps([1, files, settings, codec.fingerprint()], sort_keys=True)
    return hashlib.blake2b(whole.encode(), digest_size=12).hexdigest()


def _hold_out(notes: Notes, report: Report) -> None:
    """Set some pairs of train apart, evenly spread, to be dev."""
    pairs = report.kept["train"]
    count, before = min(DEV_PAIRS, pairs // 20), 0
    if not count:
        raise DataError(f"{pairs} pairs are too few to hold some out", remedy="name held-out pairs with --data.dev")
    for begin in range(0, len(notes.array), STRETCH):
        state = notes.array["state"][begin : begin + STRETCH]
        kept = np.flatnonzero(state == KEPT)
        rank = before + np.arange(len(kept))
        state[kept[rank * count // pairs != (rank + 1) * count // pairs]] = HELD_OUT
        before += len(kept)
    report.kept["train"] -= count
    report.remarks.append(f"dev: none is named, so {count:,} pairs of train, evenly spread, are held out as dev")


@dataclass(frozen=True)
class _Sample:
    """The text of some sides of at most ``most`` of the ``count`` kept pairs, evenly spread; anew each time."""

    notes: Notes
    sides: tuple[str, ...]
    count: int
    most: int

    def __iter__(self) -> Iterator[str]:
        for side in self.sides:
            for i, pair in enumerate(self.notes.pairs()):
                if self.count <= self.most or i * self.most // self.count != (i + 1) * self.most // self.count:
                    yield getattr(pair, side)


def _learn(data: PairFiles, notes: Notes, report: Report, source: Vocabulary | None) -> Codec:
    """Learn the vocabulary or vocabularies from the kept pairs of train, or an even sample of them."""
    count, most = report.kept["train"], data.learn_from
    words, normaliser = data.words or default_words(count), Normaliser(data.lowercase, data.strip_accents)

    def learn(*sides: str) -> Subwords:
        return Subwords.learn(_Sample(notes, sides, count, most), words, data.vocabulary, normaliser)

    if source:
        target = learn("target")
        learned = {data.target: target}
        report.remarks.append(f"vocabulary: {source.size:,} pieces for {data.source}, those of the encoder")
    elif data.joint:
        source = target = learn("source", "target")
        learned = {"both languages": source}
    else:
        source, target = learn("source"), learn("target")
        learned = {data.source: source, data.target: target}
    for name, vocabulary in learned.items():
        short = f" ({data.words:,} were asked for; the text gives no more)" if vocabulary.size < data.words else ""
        report.remarks.append(
            f"vocabulary: {vocabulary.size:,} pieces ({data.vocabulary}) for {name}{short}, "
            f"learned from {min(most, count):,} of {count:,} pairs"
        )
    return Codec(source, target, Subwords.start)


def _encode(data: PairFiles, notes: dict[str, Notes], codec: Codec, report: Report, whole: Path) -> None:
    """Write the encoded train and dev, the texts of dev and the report into the new folder ``whole``."""
    train = notes["train"]
    parts = {"train": train.pairs(), "dev": notes["dev"].pairs() if "dev" in notes else train.pairs(HELD_OUT)}
    whole.mkdir()
    for part, pairs in parts.items():
        file = report.files[part if part in notes else "train"][0]
        with StoreWriter(whole / part, codec.source.size, codec.target.size) as store:
            for chunk in windows(pairs, CHUNK):
                fitting = _fitting(chunk, codec, data.max_length, part, file, report)
                store.add([p[1] for p in fitting], [p[2] for p in fitting], [p[0].line for p in fitting])
                if part == "dev":
                    with open(whole / "dev.jsonl", "a", encoding="utf-8") as texts:
                        for (line, source, target, _), *_ in fitting:
                            texts.write(json.dumps([line, source, target], ensure_ascii=False) + "\n")
        if part in report.kept:
            report.kept[part] = store.count
        if not store.count:
            raise DataError(
                f"no pair of {part} has at most {data.max_length} pieces", remedy="raise --data.max_length", file=file
            )
    (whole / "report.json").write_text(
        json.dumps(report.summary(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


def _fitting(
    pairs: list[CleanPair], codec: Codec, max_length: int, part: str, file: str, report: Report
) -> list[tuple[CleanPair, list[int], list[int]]]:
    """The pairs of at most ``max_length`` pieces with their ids; the others are counted."""
    fitting = []
    sources, targets = codec.source.encode([p.source for p in pairs]), codec.target.encode([p.target for p in pairs])
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        if max(len(source), len(target)) <= max_length:
            fitting.append((pair, source, target))
        else:
            where = f"{file}:{pair.line}: {max(len(source), len(target)):,} pieces"
            report.add(part, f"pairs of more than {max_length} pieces", "dropped", where)
    return fitting


def _open(where: Path) -> tuple[PairStore, PairStore, dict[int, tuple[str, str]], Report] | None:
    """What `_encode` wrote, or None if it is not there or not whole."""
    try:
        with open(where / "dev.jsonl", encoding="utf-8") as lines:
            texts = {line: (source, target) for line, source, target in map(json.loads, lines)}
        report = Report.from_summary(json.loads((where / "report.json").read_text(encoding="utf-8")))
        return PairStore(where / "train"), PairStore(where / "dev"), texts, report
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return None


def _in_order(store: PairStore, codec: Codec, batch_tokens: int) -> list[Batch]:
    """Each pair of a store once, widest first."""
    every = np.arange(len(store))
    widths = np.maximum(store.source.lengths(every) + len(codec.source_row(())), store.target.lengths(every) + 1)
    return [
        pad(
            [codec.source_row(store.source[i].tolist()) for i in rows],
            [[codec.start, *store.target[i].tolist(), codec.target.end] for i in rows],
            codec,
            store.lines[rows].tolist(),
        )
        for rows in by_length(widths, batch_tokens)
    ]
