"""Our BERT against that of ``transformers``: vectors of texts, training on hidden words, and what looking costs.

    python benchmarks/bert.py FILE [FILE ...]          # files of lines of up to 400 characters (.gz too; of .tsv the
                                                       # last column)
    python benchmarks/bert.py FILE --size mini --sentences 128 --threads 1

Both have the same weights in float32, the same threads, and the same sentences of the files, drawn evenly and in file
order; their ids are made beforehand. ``transformers`` runs them as is usual: batches of 32 in that order, padded to the
longest, ``sdpa``. Ours sorts by length (`by_length`), and in training only hidden words go through the output layer.
Everything in a row is measured in turn, round by round; a row gives medians, and its ratio is the median of those of
the rounds. Tokens a second count real tokens alone. The words to be told are hidden in the same places for both, and
the losses of a batch, printed beside each other, must be the same.
"""

import argparse
import gzip
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from qkv.data.buckets import by_length, pad_rows
from qkv.data.corpus import PARAGRAPH
from qkv.data.masking import mask_tokens
from qkv.data.normalise import clean
from qkv.data.pretraining import MaskedBatch
from qkv.data.subwords import Subwords
from qkv.data.text_codec import TextCodec
from qkv.look.trace import trace
from qkv.models.bert import SIZES, Bert, BertConfig
from qkv.models.bert_names import bert, bert_config_of
from qkv.tasks.pretrain import Pretrain

MINILM = {"dim": 384, "depth": 6, "heads": 12, "hidden": 1536}
BATCH, LONGEST = 32, 512
CLOCK = time.perf_counter


def sentences_of(files: list[Path], count: int) -> list[str]:
    """As many sentences, the same number of each file, evenly spread over it."""
    found = []
    for file in files:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8") as stream:
            texts = (clean(line.split("\t")[-1]) for line in islice(stream, 100_000))
            own = [text for text in texts if 0 < len(text) <= PARAGRAPH]
        share = count // len(files)
        found += [own[i * len(own) // share] for i in range(share)]
    return found


def as_theirs(model: Bert, head: str):
    """The model of transformers with the same weights."""
    import transformers

    kind, config = bert_config_of(model.config)
    theirs = getattr(transformers, head)(transformers.BertConfig(**config, attn_implementation="sdpa"))
    missing, unexpected = theirs.load_state_dict(bert(kind, model.config).save(model.state_dict()), strict=False)
    assert not unexpected and all("predictions" in name or "position_ids" in name for name in missing), missing
    theirs.tie_weights()
    return theirs


def in_turn(rounds: int, *doers: Callable[[], None]) -> list[list[float]]:
    """Seconds of each, round by round; the first round warms up."""
    seconds: list[list[float]] = [[] for _ in doers]
    for _ in range(rounds + 1):
        for taken, do in zip(seconds, doers, strict=True):
            begun = CLOCK()
            do()
            taken.append(CLOCK() - begun)
    return [taken[1:] for taken in seconds]


def row(name: str, real: int, ours: list[float], theirs: list[float], note: str = "") -> None:
    ratio = statistics.median(t / o for o, t in zip(ours, theirs, strict=True))
    rates = [real / statistics.median(taken) for taken in (ours, theirs)]
    print(
        f"{name:34} ours {rates[0]:9,.0f}   transformers {rates[1]:9,.0f} tokens/s   {ratio:.2f} x   {note}", flush=True
    )


def encode(config: BertConfig, rows: list[list[int]], rounds: int, budget: int) -> None:
    """A mean vector for each line."""
    model = Bert(config).eval()
    theirs, found = as_theirs(model, "BertModel").eval(), {}

    @torch.inference_mode()
    def run_ours() -> None:
        vectors = torch.empty(len(rows), config.dim)
        for batch in by_length([len(row) for row in rows], budget):
            tokens, lengths = pad_rows([rows[i] for i in batch], 0)
            vectors[batch] = model.pool(model(tokens, lengths), lengths, "mean")
        found["ours"] = vectors

    @torch.inference_mode()
    def run_theirs() -> None:
        vectors = []
        for begin in range(0, len(rows), BATCH):
            tokens, lengths = pad_rows(rows[begin : begin + BATCH], 0)
            real = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
            states = theirs(tokens, attention_mask=real).last_hidden_state
            vectors.append((states * real[..., None]).sum(1) / real.sum(1, keepdim=True))
        found["theirs"] = torch.cat(vectors)

    seconds = in_turn(rounds, run_ours, run_theirs)
    apart = (found["ours"] - found["theirs"]).abs().max()
    row("encoding", sum(map(len, rows)), *seconds, f"vectors at most {apart:.1e} apart")


def learn(config: BertConfig, codec: TextCodec, rows: list[list[int]], rounds: int, budget: int) -> None:
    """One pass over the lines, hidden words, a step a batch."""
    model = Bert(config).train()
    theirs, task, losses = as_theirs(model, "BertForMaskedLM").train(), Pretrain(next=0.0), {}
    batches = [list(range(begin, min(begin + BATCH, len(rows)))) for begin in range(0, len(rows), BATCH)]
    hidden = hide(codec, rows)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True) for m in (model, theirs)]

    def step(which: int, loss: Tensor) -> None:
        optimizers[which].zero_grad()
        loss.backward()
        optimizers[which].step()

    def run_ours() -> None:
        total = told = 0
        for places in by_length([len(row) for row in rows], budget):
            batch = masked(codec, rows, hidden, places)
            loss = task.loss(model, batch).total
            step(0, loss / batch.targets)
            total, told = total + float(loss.detach()), told + batch.targets
        losses.setdefault("ours", total / told)

    def run_theirs() -> None:
        total = told = 0
        for places in batches:
            batch = masked(codec, rows, hidden, places)
            labels = torch.full_like(batch.tokens, -100)
            labels.view(-1)[batch.places] = batch.words
            real = (torch.arange(batch.tokens.shape[1]) < batch.lengths[:, None]).long()
            loss = theirs(batch.tokens, attention_mask=real, labels=labels).loss
            step(1, loss)
            total, told = total + float(loss.detach()) * batch.targets, told + batch.targets
        losses.setdefault("theirs", total / told)

    model.eval(), theirs.eval()
    with torch.no_grad():
        batch = masked(codec, rows, hidden, batches[0])
        labels = torch.full_like(batch.tokens, -100)
        labels.view(-1)[batch.places] = batch.words
        real = (torch.arange(batch.tokens.shape[1]) < batch.lengths[:, None]).long()
        same = [
            float(task.loss(model, batch).total) / batch.targets,
            float(theirs(batch.tokens, attention_mask=real, labels=labels).loss),
        ]
    model.train(), theirs.train()
    seconds = in_turn(rounds, run_ours, run_theirs)
    passes = f"of the first pass {losses['ours']:.2f} and {losses['theirs']:.2f}"
    note = f"loss of a batch {same[0]:.5f} and {same[1]:.5f}, {passes}"
    row("training on hidden words", sum(map(len, rows)), *seconds, note)


def hide(codec: TextCodec, rows: list[list[int]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each line with some of its words hidden, and where."""
    chance, found = np.random.default_rng(0), []
    for ids in rows:
        tokens = np.array([ids])
        maskable = (tokens != codec.cls) & (tokens != codec.sep)
        made, chosen = mask_tokens(tokens, maskable, codec.mask, codec.ordinary, 0.15, chance)
        found.append((made[0], chosen[0]))
    return found


def masked(codec: TextCodec, rows: list[list[int]], hidden: list, places: list[int]) -> MaskedBatch:
    tokens, lengths = pad_rows([hidden[i][0] for i in places], codec.pad)
    plain, _ = pad_rows([rows[i] for i in places], codec.pad)
    chosen, _ = pad_rows([hidden[i][1].astype(np.int64) for i in places], 0)
    where = chosen.view(-1).nonzero()[:, 0]
    words, none = plain.view(-1)[where], torch.zeros(0, dtype=torch.int64)
    return MaskedBatch(tokens, lengths, torch.zeros_like(tokens), where, words, none, len(where), int(lengths.sum()))


def look(config: BertConfig, rounds: int) -> None:
    """A text of 128 and one of 512 tokens, with the first token's rows of all layers and heads recorded."""
    model = Bert(config).eval()
    for length in (128, 512):
        tokens, lengths = torch.randint(5, config.words, (1, length)), torch.tensor([length])

        @torch.inference_mode()
        def run(queries: list[int] | None, again: int = max(1, 1024 // length)) -> None:
            for _ in range(again):
                with trace(model, queries=queries) if queries else nullcontext():
                    model(tokens, lengths)  # noqa: B023

        plain, seen = in_turn(5 * rounds, lambda: run(None), lambda: run([0]))
        ratio = statistics.median(s / p for s, p in zip(seen, plain, strict=True))
        print(f"{f'looking, CLS rows, {length} tokens':34} {ratio:.2f} x the time of a plain pass", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--size", default="minilm", choices=["minilm", *SIZES])
    options.add_argument("--sentences", type=int, default=512)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--budget", type=int, default=1024, help="padded tokens of a batch of ours")
    options.add_argument("--words", type=int, default=16_000)
    options.add_argument("--cpu", action="store_true", help="seconds of the CPU, where others use the machine too")
    chosen = options.parse_args()
    if chosen.cpu:
        global CLOCK
        CLOCK = time.process_time
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    texts = sentences_of(chosen.files, max(chosen.sentences, 6000))
    codec = TextCodec(Subwords.learn(texts, chosen.words, "wordpiece"))
    some = [texts[i * len(texts) // chosen.sentences] for i in range(chosen.sentences)]
    rows = [codec.join(ids[: LONGEST - 2])[0] for ids in codec.pieces_of(some)]
    sizes = sorted(map(len, rows))
    quarter = [sizes[len(sizes) * i // 4] for i in (1, 2, 3)]
    padded = sum(
        len(rows[b : b + BATCH]) * max(map(len, rows[b : b + BATCH])) for b in range(0, len(rows), BATCH)
    )  # fmt: skip
    shape = {**({} if chosen.size == "minilm" else SIZES[chosen.size]), **(MINILM if chosen.size == "minilm" else {})}
    config = BertConfig(words=codec.size, **shape, head="none")
    print(
        f"{chosen.size}: {config.depth} blocks of width {config.dim}, {codec.size:,} words, {chosen.threads} threads; "
        f"{len(rows)} sentences of {quarter[0]}, {quarter[1]}, {quarter[2]} tokens (quartiles), at most {sizes[-1]}; "
        f"padded in file order {padded / sum(sizes):.2f} x"
    )
    encode(config, rows, chosen.rounds, chosen.budget)
    some = rows[:: max(1, len(rows) // 256)]
    head = BertConfig(words=codec.size, **shape, head="pretrain", next=False, pooler=False)
    learn(head, codec, some, chosen.rounds, chosen.budget)
    look(config, chosen.rounds)


if __name__ == "__main__":
    main()
