"""Running text made ready for pretraining: cleaned, a codec learned, encoded, cut into inputs, kept in a run's folder.

The text is gone through one sentence at a time and mapped from the disk afterwards, so that memory does not grow with
it. What is kept is keyed by the content of the files, the codec and the settings, as for pairs.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from qkv.data.corpus import PARAGRAPH, CorpusFiles, fingerprint, read_sentences, resolve_corpus, sentences_in
from qkv.data.corpus_store import CorpusStore, CorpusWriter
from qkv.data.kept import put, scratch_in, tidy
from qkv.data.lines import LONGEST_LINE, decode_line, windows
from qkv.data.normalise import Normaliser
from qkv.data.pretraining import MaskedBatch, PretrainingBatches
from qkv.data.report import Report
from qkv.data.store import map_array
from qkv.data.subwords import Subwords, default_words
from qkv.data.text_codec import TextCodec
from qkv.errors import DataError

__all__ = ["PreparedCorpus", "prepare_corpus"]

DEV_INPUTS = 500  # held-out inputs that are scored at each evaluation
MANY = 200  # documents, of which some are held out; where there are fewer, see `_borders`
DEV_DOCUMENTS, DEV_SENTENCES = 1000, 50  # at most
CHUNK = 4096  # sentences encoded at once
LONGEST_DOCUMENT = 1 << 20  # sentences; a longer one is taken for several
SETTINGS = ("lines", "text", "longest")  # that decide what is kept


@dataclass(frozen=True)
class PreparedCorpus:
    """Text made ready; fits `qkv.tasks.task.Prepared`. ``dev`` holds held-out inputs with masks of their own."""

    train: PretrainingBatches
    dev: list[MaskedBatch]
    codec: TextCodec
    report: list[str]
    summary: dict[str, Any] = field(default_factory=dict)


def prepare_corpus(
    data: CorpusFiles, folder: Path, seed: int, pairs: bool, codec: TextCodec | None = None
) -> PreparedCorpus:
    """Clean, learn the codec unless one is given, encode, cut; keep what is derived in ``folder/data``.

    Args:
        pairs: inputs are pairs of texts, for next-sentence prediction; else packed sentences.

    Raises:
        DataError: the text cannot be used: nothing is in it, or it has no documents where pairs are wanted.
    """
    data, kept = resolve_corpus(data), Path(folder) / "data"
    kept.mkdir(parents=True, exist_ok=True)
    files = {part: fingerprint(getattr(data, part)) for part in ("train", "dev") if getattr(data, part)}
    where = kept / _key(data, files, pairs, codec) if codec else None
    opened = _open(where) if where else None
    if opened is None:
        try:
            with scratch_in(kept) as scratch:
                texts, report = _read_all(data, scratch)
                codec = codec or TextCodec(_learn(data, texts["train"], report))
                where = kept / _key(data, files, pairs, codec)
                _encode(data, texts, pairs, codec, report, scratch / "whole")
                if where.exists() and _open(where) is None:  # damaged; a whole one is another process's, and as good
                    shutil.rmtree(where)
                put(scratch / "whole", where)
        except OSError as error:  # of writing: what cannot be read is a DataError already
            room = f"{shutil.disk_usage(kept).free / 1e6:,.0f} MB are free"
            raise DataError(f"the encoded data cannot be written ({error}; {room})", file=kept) from error
        opened = _open(where)
        if opened is None:
            raise DataError("the encoded data cannot be read back", remedy="look for a failing disk", file=where)
    tidy(kept, where)
    train, dev, report = opened
    how = {"batch_tokens": data.batch_tokens, "masked": data.masked, "whole_words": data.whole_words}
    held_out = PretrainingBatches(dev, codec, pairs, **how, most=DEV_INPUTS)
    summary = {
        **report.summary(), "files_hash": files, "codec_hash": codec.fingerprint(), "inputs": len(train),
        "pieces": len(train.pieces), "pairs": pairs,
    }  # fmt: skip
    return PreparedCorpus(
        PretrainingBatches(train, codec, pairs, **how, short=data.short, seed=seed),
        [held_out.batch(_Place(0, i)) for i in range(held_out.epoch_length(0))],
        codec,
        report.lines(),
        summary,
    )


@dataclass(frozen=True)
class _Place:
    epoch: int
    batch: int


class _Text:
    """Clean sentences on the disk, a line each, and where documents end."""

    def __init__(self, file: Path):
        self.file, self.sentences = file, 0
        self.documents = np.empty(0, "<i8")

    def write(self, sentences: Iterator[str]) -> None:
        """Write sentences; ``""`` ends a document."""
        open_from = 0
        ends = self.file.with_suffix(".ends")
        with open(self.file, "w", encoding="utf-8", newline="\n") as text, open(ends, "wb") as marks:
            for sentence in sentences:
                if sentence:
                    text.write(sentence + "\n")
                    self.sentences += 1
                if self.sentences - open_from >= (LONGEST_DOCUMENT if sentence else 1):
                    marks.write(self.sentences.to_bytes(8, "little"))
                    open_from = self.sentences
            if self.sentences > open_from:
                marks.write(self.sentences.to_bytes(8, "little"))
        self.documents = map_array(ends, "<i8")

    def __iter__(self) -> Iterator[str]:
        with open(self.file, encoding="utf-8", newline="\n") as text:
            for line in text:
                yield line[:-1]


@dataclass(frozen=True)
class _Sample:
    """At most ``most`` sentences of a text, evenly spread; anew each time."""

    text: _Text
    most: int

    def __iter__(self) -> Iterator[str]:
        count, most = self.text.sentences, self.most
        for i, sentence in enumerate(self.text):
            if count <= most or i * most // count != (i + 1) * most // count:
                yield sentence


def _read_all(data: CorpusFiles, scratch: Path) -> tuple[dict[str, _Text], Report]:
    report = Report(unit="sentences")
    texts = {}
    for part in ("train", "dev"):
        if where := getattr(data, part):
            texts[part] = _Text(scratch / f"{part}.txt")
            texts[part].write(_clean(data, part, report))
            report.files[part] = [where]
            report.read[part] = report.kept[part] = texts[part].sentences
            if not texts[part].sentences:
                raise DataError("there is no text in it", expected="a sentence or a document a line", file=where)
    return texts, report


def _clean(data: CorpusFiles, part: str, report: Report) -> Iterator[str]:
    """Clean sentences, paragraphs parted; what cannot be used is counted."""
    for file, number, raw, whole in read_sentences(data, part):
        if raw == "":
            yield ""
            continue
        line = decode_line(number, raw)
        if line.unusable in ("undecodable", "over-long"):
            what = {"undecodable": "lines that are not UTF-8", "over-long": f"lines of more than {LONGEST_LINE} bytes"}
            report.add(part, what[line.unusable], "dropped", f"{file}:{number}")
            continue
        for kind in line.mended:
            report.add(part, f"lines with: {kind}", "mended", f"{file}:{number}")
        if line.text:
            parted = whole or len(line.text) > PARAGRAPH
            yield from sentences_in(line.text) if parted else [line.text]


def _learn(data: CorpusFiles, text: _Text, report: Report) -> Subwords:
    words = data.words or default_words(text.sentences)
    normaliser = Normaliser(data.lowercase, data.strip_accents)
    learned = Subwords.learn(_Sample(text, data.learn_from), words, data.vocabulary, normaliser)
    short = f" ({data.words:,} were asked for; the text gives no more)" if learned.size < data.words else ""
    report.remarks.append(
        f"vocabulary: {learned.size:,} pieces ({data.vocabulary}){short}, "
        f"learned from {min(data.learn_from, text.sentences):,} of {text.sentences:,} sentences"
    )
    return learned


def _encode(
    data: CorpusFiles, texts: dict[str, _Text], pairs: bool, codec: TextCodec, report: Report, whole: Path
) -> None:
    """Write the encoded train and dev and the report into the new folder ``whole``."""
    whole.mkdir()
    room = data.longest - (3 if pairs else 2)
    writers = {part: CorpusWriter(whole / part, codec.size, room, pairs) for part in ("train", "dev")}
    with writers["train"] as train, writers["dev"] as dev:
        if "dev" in texts:
            _encode_text(texts["dev"], codec, dev)
        borders, rule = _borders(texts["train"].documents, pairs) if "dev" not in texts else (None, "")
        _encode_text(texts["train"], codec, train, dev, borders)
    if "dev" not in texts:
        held_out = dev.count["given"]
        report.kept["train"] -= held_out
        report.remarks.append(
            f"dev: none is named, so {dev.count['documents']:,} {rule} of train, {held_out:,} sentences, are held out"
        )
    for part, writer in writers.items():
        file = report.files.get(part, report.files["train"])[0]
        _check(part, writer.count, pairs, file)
        _remark(part, writer.count, pairs, data.longest, report)
    text = json.dumps(report.summary(), ensure_ascii=False, indent=1) + "\n"
    (whole / "report.json").write_text(text, encoding="utf-8")


def _encode_text(
    text: _Text,
    codec: TextCodec,
    kept: CorpusWriter,
    held_out: CorpusWriter | None = None,
    borders: Int[np.ndarray, " document"] | None = None,
) -> None:
    """Encode a text; the sentences of each document from its border on, if there are borders, go to another writer."""
    ends = text.documents.tolist()
    documents = zip(ends, ends if borders is None else borders.tolist(), strict=True)
    end, border = next(documents)
    at = 0
    for chunk in windows(text, CHUNK):
        rows = codec.pieces_of(chunk)
        while rows:
            writer, stop = (kept, border) if at < border else (held_out, end)
            writer.add(rows[: stop - at])
            at, rows = min(stop, at + len(rows)), rows[stop - at :]
            if at == end:
                for writer in (kept,) if borders is None else (kept, held_out):
                    writer.end_document()
                end, border = next(documents, (0, 0))


def _borders(ends: Int[np.ndarray, " document"], pairs: bool) -> tuple[Int[np.ndarray, " document"], str]:
    """The sentence of each document from which on it is held out, and in words what is.

    Of many documents one in twenty. Of few the last twentieth of each; where they are too short for that, again one in
    twenty, but as many as inputs need; and where there are too few documents, as much of their ends. Nothing is held
    out if nothing would be left.
    """
    ends = np.asarray(ends)
    begins = np.concatenate([[0], ends[:-1]])
    sizes, least = ends - begins, 2 if pairs else 1  # a pair needs two sentences, and another document
    if len(ends) >= MANY:
        place, most = np.arange(len(ends)), min(DEV_DOCUMENTS, len(ends) // 20)
        return np.where(place * most // len(ends) == (place + 1) * most // len(ends), ends, begins), "documents"
    tails = np.minimum(DEV_SENTENCES, sizes // 20)
    usable = np.flatnonzero(sizes >= least)
    if (tails >= least).sum() < least <= len(usable) // 2:
        most = max(len(ends) // 20, least)
        borders, chosen = ends.copy(), usable[(2 * np.arange(most) + 1) * len(usable) // (2 * most)]
        borders[chosen] = begins[chosen]
        return borders, "documents"
    if (tails >= least).sum() < least:
        tails = np.clip(sizes - least, 0, least)
    return ends - tails, "ends of documents"


def _check(part: str, count: dict[str, int], pairs: bool, file: str) -> None:
    if not count["documents"]:
        raise DataError("there is too little text to hold some out", remedy="name held-out text: --data.dev", file=file)
    if not pairs:
        return
    remedy = "mark documents by blank lines, or leave next sentences out: --learn.next 0 (compare: --starts packed)"
    if count["documents"] == 1:
        wrong = f"{part} is one document, and a random second text must come from another"
    elif not count["inputs"]:
        wrong = f"each of the {count['documents']:,} documents of {part} is one sentence, so none has a next one"
    else:
        return
    raise DataError(wrong, remedy=remedy, file=file)


def _remark(part: str, count: dict[str, int], pairs: bool, longest: int, report: Report) -> None:
    what = "pairs" if pairs else "packed inputs"
    report.remarks.append(
        f"{part}: {count['documents']:,} documents, {count['pieces']:,} pieces, {count['inputs']:,} {what} of at most "
        f"{longest} tokens"
    )
    if count["parted"]:
        report.add(part, "sentences longer than fit, parted", "noted", count=count["parted"])
    if pairs and count["single"]:
        report.add(
            part, "documents of one sentence, which are only random second texts", "noted", count=count["single"]
        )


def _key(data: CorpusFiles, files: dict[str, str], pairs: bool, codec: TextCodec) -> str:
    settings = {name: getattr(data, name) for name in SETTINGS}
    whole = json.dumps([1, files, settings, pairs, codec.fingerprint()], sort_keys=True)
    return hashlib.blake2b(whole.encode(), digest_size=12).hexdigest()


def _open(where: Path) -> tuple[CorpusStore, CorpusStore, Report] | None:
    """What `_encode` wrote, or None if it is not there or not whole."""
    try:
        report = Report.from_summary(json.loads((where / "report.json").read_text(encoding="utf-8")))
        return CorpusStore(where / "train"), CorpusStore(where / "dev"), report
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return None
