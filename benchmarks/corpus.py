"""What making text ready for pretraining takes, beside training on it: seconds of the CPU, and memory.

    python benchmarks/corpus.py FILE --times 1 --size mini
    python benchmarks/corpus.py FILE --times 4 --size mini    # the same text four times over: memory must not grow

The vocabulary is learned first, of an eighth of the file, and is not counted: it is learned of at most so many
sentences, however large the text is. Making ready is reading, cleaning, encoding, cutting into pairs and writing; then
also putting together the batches of an epoch. Seconds are of this process's CPU, which other processes do not change.
"""

import argparse
import re
import tempfile
import time
from pathlib import Path

import torch

from qkv.data.corpus import CorpusFiles
from qkv.data.corpus_prepare import prepare_corpus
from qkv.data.subwords import Subwords
from qkv.data.text_codec import TextCodec
from qkv.models.bert import SIZES, Bert, BertConfig
from qkv.tasks.pretrain import Pretrain
from qkv.tasks.task import Position

STEPS, BATCHES = 6, 200


def memory() -> float:
    """What this process holds now, in MB, without what is mapped from files and can be read again."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) / 1e3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("file", type=Path)
    options.add_argument("--times", type=int, default=1)
    options.add_argument("--size", default="mini", choices=SIZES)
    options.add_argument("--words", type=int, default=8000)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    with open(chosen.file, encoding="utf-8") as stream:
        sample = [line for i, line in enumerate(stream) if i % 8 == 0]
    codec = TextCodec(Subwords.learn(sample, chosen.words, "wordpiece"))
    del sample
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch) / "text.txt"
        with open(where, "wb") as text:
            for _ in range(chosen.times):
                text.write(chosen.file.read_bytes() + b"\n\n")
        size, before, begun = where.stat().st_size / 1e6, memory(), time.process_time()
        prepared = prepare_corpus(CorpusFiles(train=str(where)), Path(scratch) / "run", 0, True, codec)
        ready = time.process_time() - begun
        pieces = len(prepared.train.store.pieces)
        begun, real = time.process_time(), 0
        count = min(BATCHES, prepared.train.epoch_length(0))
        for i in range(count):
            real += prepared.train.batch(Position(0, i)).real
        batches = time.process_time() - begun
        held = memory()
        print(f"{size:.1f} MB, {pieces:,} pieces; memory {before:.0f} MB before and {held:.0f} MB after")
        print(f"made ready: {pieces / ready:,.0f} pieces/s of CPU, {size / ready:.2f} MB/s")
        print(f"batches: {real / batches:,.0f} tokens/s of CPU")
        both = 1 / (ready / pieces + batches / real)
        task, model = Pretrain(), Bert(BertConfig(words=codec.size, **SIZES[chosen.size]))
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        seconds = trained = 0.0
        for i in range(STEPS):
            batch = prepared.train.batch(Position(0, i))
            begun = time.process_time()
            (task.loss(model, batch).total / batch.targets).backward()
            optimizer.step()
            optimizer.zero_grad()
            seconds, trained = (seconds + time.process_time() - begun, trained + batch.real) if i else (0.0, 0)
        rate = trained / seconds
        print(f"training {chosen.size}: {rate:,.0f} tokens/s of CPU; the data, all in all: {both / rate:.1f} x as fast")


if __name__ == "__main__":
    main()
