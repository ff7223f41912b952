"""Our Transformer against ``transformers`` and CTranslate2: training, greedy and beam search, on this machine's CPU.

    python benchmarks/translate.py            # 6+6 blocks of width 512, 16,000 words, 512 sentences: an hour on 2 cores
    python benchmarks/translate.py --quick    # 2+2 blocks of width 128: a few minutes
    python benchmarks/translate.py --run RUN --source FILE    # decoding with a trained model and real text

Everything in a row is measured in turn, several times, and the row gives medians; a ratio is the median of the ratios
of the rounds, so that a machine that slows down slows both. Each engine decodes in a process of its own. All have the
same weights in float32 and as many threads, and the last columns say how many of their outputs are the same as ours.

Without ``--run`` the weights are random but for the output layer, which is made so that each sentence gets an output of
a length that suits it (see `planted`): a random model says nothing or never ends. Decoding costs the same.

Decoding rows: **file** gives each engine the lines as they come. ``transformers`` runs them in batches as they are;
ours and CTranslate2 sort by length first, as ``qkv translate`` and ``translate_batch`` do. **sorted** gives all of them
the same batches of lines of about one length; **batches** gives all of them the same batches in file order.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from qkv.decode.search import Marks, Search, search
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.models.saved import build
from qkv.models.seq2seq import Seq2SeqConfig
from qkv.models.transformer import Transformer, TransformerConfig
from qkv.models.transformer_names import marian, marian_config_of

END, START = 0, 1  # START also pads, as in Marian
FIRST = 2
CONFIG = TransformerConfig(
    16_000, 16_000, dim=512, encoder_depth=6, decoder_depth=6, heads=8, hidden=2048, dropout=0.1, activation="swish",
    positions="sinusoidal-halves", tie="all", output_bias=True,
)  # fmt: skip
QUICK = replace(
    CONFIG, source_words=4000, target_words=4000, dim=128, encoder_depth=2, decoder_depth=2, heads=4, hidden=256
)
RECURRENT = Seq2SeqConfig(
    16_000, 16_000, dim=512, depth=2, dropout=0.1, attention="bilinear", tie="none", output_bias=True
)
Sentences = list[list[int]]
Translate = Callable[[list[Sentences], int], Sentences]


@dataclass(frozen=True)
class Task:
    """What is translated: a model, and sentences with their end mark."""

    model: Transformer
    sources: Sentences
    marks: Marks
    longest: int


# --- the model and the sentences


def lengths(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Source and target lengths as in mixed text: log-normal with a median of 16 tokens, the sides 15 % apart."""
    chance = torch.Generator().manual_seed(seed)
    source = torch.exp(torch.randn(count, generator=chance) * 0.55 + 2.77).clamp(3, 80)
    target = source * (1 + 0.15 * torch.randn(count, generator=chance)).clamp(0.5, 1.5)
    return source.round().long(), target.clamp(2, 80).round().long()


def planted(config: TransformerConfig, count: int) -> Task:
    """A random model whose output layer is made so that sentence i gets an output of its own of length n_i.

    The words of an output are a first word of the sentence's own and then a countdown: n_i - 1, ..., 2, 1, end. The
    first word's vector is that of n_i, so the random decoder's state after a word says which number comes next, and
    the rows of the output layer are the mean states before each word: what is nearest is said.
    """
    torch.manual_seed(0)
    source_lengths, target_lengths = lengths(count)
    model = build("transformer", replace(config, tie="none", dropout=0.0)).eval()
    longest = int(target_lengths.max())
    with torch.no_grad():
        words = model.target.words.weight
        words.mul_(2.0)
        words[START] = 0
        first = FIRST + longest + torch.arange(count)
        words[first] = words[FIRST + target_lengths] + 0.1 * words[first]
        for name, weight in model.named_parameters():
            if name.endswith((".output.weight", "reduce.weight")):
                weight.mul_(0.5 if "cross" in name else 0.2)  # or a deep random model makes all states alike
    sources = [[*torch.randint(FIRST, config.source_words, (n - 1,)).tolist(), END] for n in source_lengths.tolist()]
    targets = [
        [START, int(first[i]), *(FIRST + n for n in range(length - 1, 0, -1)), END]
        for i, length in enumerate(target_lengths.tolist())
    ]
    states, labels = [], []
    with torch.inference_mode():
        for begin in range(0, count, 64):
            source, sizes = pad(sources[begin : begin + 64])
            target, target_sizes = pad(targets[begin : begin + 64])
            real = torch.arange(target.shape[1] - 1) < target_sizes[:, None] - 1
            states.append(model(source, sizes, target[:, :-1])[real])
            labels.append(target[:, 1:][real])
    state, label = torch.cat(states), torch.cat(labels)
    with torch.no_grad():
        middle = state.mean(0)
        used, place = label.unique(return_inverse=True)
        means = torch.zeros(len(used), config.dim).index_add_(0, place, state) / place.bincount()[:, None]
        model.output.weight.copy_(torch.randn_like(model.output.weight) * 0.02)
        model.output.bias.fill_(-config.dim)
        model.output.weight[used] = means - middle
        model.output.bias[used] = -0.5 * (means.square().sum(1) - middle.square().sum())
        logits = state[:2000] @ model.output.weight[used].T + model.output.bias[used]
        best = logits.topk(2).values
        sharpness = 5 / (best[:, 0] - best[:, 1]).median()
        model.output.weight.mul_(sharpness)
        model.output.bias.mul_(sharpness)
        model.output.bias[model.output.bias < model.output.bias[used].min() - 1] = model.output.bias[used].mean() - 8
    return Task(model, sources, Marks(START, END, (START,)), 100)


def pad(rows: Sentences, mark: int = START) -> tuple[Tensor, Tensor]:
    sizes = torch.tensor([len(row) for row in rows])
    padded = torch.full((len(rows), int(sizes.max())), mark)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.tensor(row)
    return padded, sizes


def trained(run: Path, file: Path, count: int) -> Task:
    """A trained run and lines of text."""
    from qkv.data.codec import Codec
    from qkv.models.saved import load_model

    codec, model = Codec.load(run / "codec"), load_model(run)
    lines = file.read_text(encoding="utf-8").split("\n")
    texts = [line for line in lines if line.strip()][:count]
    never = tuple({codec.pad, codec.start} - {codec.end})
    return Task(model, codec.encode_source(texts), Marks(codec.start, codec.end, never), 128)


# --- the engines: batches of sentences and a beam in, outputs in the same order out


def with_ours(task: Task) -> Translate:
    def translate(batches: list[Sentences], beam: int) -> Sentences:
        said = []
        for batch in batches:
            source, sizes = pad(batch, task.marks.start)
            with torch.inference_mode():
                state = task.model.start(source, sizes)
            found = search(task.model, state, task.marks, torch.full_like(sizes, task.longest), Search(beam=beam))
            said += [list(best[0].tokens) for best in found]
        return said

    return translate


def with_transformers(task: Task) -> Translate:
    theirs = their_model(task)

    def translate(batches: list[Sentences], beam: int) -> Sentences:
        said = []
        for batch in batches:
            source, sizes = pad(batch, task.marks.start)
            keep = (torch.arange(source.shape[1]) < sizes[:, None]).long()
            rows = theirs.generate(
                input_ids=source, attention_mask=keep, num_beams=beam, max_new_tokens=task.longest, do_sample=False,
                bad_words_ids=[[word] for word in task.marks.never],
                # Their quickest way to stop; here it says the same as the others.
                **({"length_penalty": 0.0, "early_stopping": True} if beam > 1 else {}),
            )  # fmt: skip
            for row in rows[:, 1:].tolist():
                said.append(row[: row.index(task.marks.end)] if task.marks.end in row else row)
        return said

    return translate


def their_model(task: Task, config: TransformerConfig | None = None):
    """The same model as a MarianMTModel; with a config alone, a new one of its size."""
    from transformers import MarianConfig, MarianMTModel, logging

    logging.set_verbosity_error()
    ours = config or task.model.config
    marks = task.marks if task else Marks(START, END)
    settings = marian_config_of(replace(ours, positions="sinusoidal-halves"))
    theirs = MarianMTModel(
        MarianConfig(
            **settings, pad_token_id=marks.start, decoder_start_token_id=marks.start, eos_token_id=marks.end,
            forced_eos_token_id=None, max_position_embeddings=512,
        )
    )  # fmt: skip
    if task:
        theirs.load_state_dict(marian(ours.tie).save(task.model.state_dict()), strict=False)
        theirs.tie_weights()
        table = task.model.source.position(0, 512)
        with torch.no_grad():
            for half in (theirs.model.encoder, theirs.model.decoder):
                half.embed_positions.weight.copy_(table)
        theirs.eval()
    return theirs


def with_ctranslate2(task: Task, threads: int) -> Translate:
    import ctranslate2

    folder = tempfile.TemporaryDirectory()
    save_for_ctranslate2(task, folder.name)
    engine = ctranslate2.Translator(
        folder.name, device="cpu", compute_type="float32", inter_threads=1, intra_threads=threads
    )
    words = [str(i) for i in range(task.model.config.source_words)]

    def translate(batches: list[Sentences], beam: int) -> Sentences:
        said = []
        for batch in batches:
            rows = [[words[i] for i in sentence] for sentence in batch]
            results = engine.translate_batch(
                rows, max_batch_size=BATCH, beam_size=beam, length_penalty=0, max_decoding_length=task.longest,
                suppress_sequences=[[str(word)] for word in task.marks.never],
            )  # fmt: skip
            said += [[int(word) for word in result.hypotheses[0]] for result in results]
        return said

    translate.folder = folder  # kept for as long as the engine
    return translate


def save_for_ctranslate2(task: Task, folder: str) -> None:
    """Our weights as a CTranslate2 model, whose words are the ids as text."""
    from ctranslate2.specs import common_spec, transformer_spec

    model, c = task.model, task.model.config
    activation = {"swish": "SWISH", "relu": "RELU", "gelu": "GELU"}[c.activation]
    spec = transformer_spec.TransformerSpec.from_config(
        (c.encoder_depth, c.decoder_depth), c.heads, pre_norm=c.order == "pre",
        activation=getattr(common_spec.Activation, activation),
    )  # fmt: skip

    def put(layer, *modules) -> None:
        layer.weight = torch.cat([module.weight.detach() for module in modules]).numpy()
        layer.bias = torch.cat([module.bias.detach() for module in modules]).numpy()

    def norm(layer, residual) -> None:
        layer.gamma, layer.beta = residual.norm.weight.detach().numpy(), residual.norm.bias.detach().numpy()

    def attention(layer, ours, residual, cross: bool) -> None:
        groups = ([ours.query], [ours.key, ours.value]) if cross else ([ours.query, ours.key, ours.value],)
        for linear, modules in zip(layer.linear, (*groups, [ours.output]), strict=True):
            put(linear, *modules)
        norm(layer.layer_norm, residual)

    for half, ours, blocks, embed in (
        (spec.encoder, model.source, model.encoder, spec.encoder.embeddings[0]),
        (spec.decoder, model.target, model.decoder, spec.decoder.embeddings),
    ):
        embed.weight = ours.words.weight.detach().numpy()
        half.scale_embeddings = ours.scale
        half.position_encodings.encodings = ours.position(0, 512).numpy()
        for layer, block in zip(half.layer, blocks, strict=True):
            attention(layer.self_attention, block.attention, block.attention_residual, cross=False)
            if hasattr(block, "cross"):
                attention(layer.attention, block.cross, block.cross_residual, cross=True)
            put(layer.ffn.linear_0, block.feed_forward.expand)
            put(layer.ffn.linear_1, block.feed_forward.reduce)
            norm(layer.ffn.layer_norm, block.feed_forward_residual)
    spec.decoder.projection.weight = model.output.weight.detach().numpy()
    if model.output.bias is not None:
        spec.decoder.projection.bias = model.output.bias.detach().numpy()
    spec.register_source_vocabulary([str(i) for i in range(c.source_words)])
    spec.register_target_vocabulary([str(i) for i in range(c.target_words)])
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.eos_token, spec.config.decoder_start_token = str(task.marks.end), str(task.marks.start)
    spec.config.unk_token = str(c.target_words - 1)
    spec.validate()
    spec.optimize()
    spec.save(folder)


# --- decoding


ENGINES = {"ours": with_ours, "transformers": with_transformers}
BATCH = 64
CLOCK = time.perf_counter


class Engine:
    """An engine in a process of its own: in one process, CTranslate2's threads slow down torch's by a quarter."""

    def __init__(self, name: str, task: Task, threads: int):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        given = (name, task, threads, CLOCK is time.process_time, theirs)
        self.process = context.Process(target=serve, args=given, daemon=True)
        self.process.start()

    def translate(self, batches: list[Sentences], beam: int) -> tuple[float, Sentences]:
        """Seconds, and the outputs."""
        self.connection.send((batches, beam))
        return self.connection.recv()


def serve(name: str, task: Task, threads: int, cpu_clock: bool, connection) -> None:
    """Translate what comes, until the other end is gone."""
    torch.set_num_threads(threads)
    clock = time.process_time if cpu_clock else time.perf_counter
    translate = with_ctranslate2(task, threads) if name == "ctranslate2" else ENGINES[name](task)
    while True:
        try:
            batches, beam = connection.recv()
        except EOFError:
            return
        began = clock()
        said = translate(batches, beam)
        connection.send((clock() - began, said))


def decode(
    task: Task, beams: list[int], orders: list[str], rounds: int, threads: int, engines: list[str]
) -> list[dict]:
    engine = {name: Engine(name, task, threads) for name in engines}
    rows = []
    for beam in beams:
        # A quarter of the sentences is enough for a beam, of which transformers needs minutes for each hundred.
        as_given = list(range(len(task.sources) if beam == 1 else len(task.sources) // 4))
        by_length = sorted(as_given, key=lambda i: -len(task.sources[i]))
        for order in orders:
            plans = {}
            for name in engines:
                sorts = order == "sorted" or (order == "file" and name == "ours")
                numbers = by_length if sorts else as_given
                size = len(numbers) if order == "file" and name == "ctranslate2" else BATCH
                plans[name] = [numbers[i : i + size] for i in range(0, len(numbers), size)]
            seconds, said = {name: [] for name in engines}, {}
            for number in range(rounds + 1):
                # The first round warms up, with as much as shows every length.
                for name in engines if number % 2 else engines[::-1]:
                    plan = plans[name] if number else plans[name][:1]
                    batches = [[task.sources[i] for i in batch] for batch in plan]
                    took, found = engine[name].translate(batches, beam)
                    if number:
                        seconds[name].append(took)
                        flat = [i for batch in plan for i in batch]
                        said[name] = [found[flat.index(i)] for i in as_given]
            tokens = sum(len(words) + 1 for words in said["ours"])
            row = {"what": "greedy" if beam == 1 else f"beam {beam}", "order": order, "sentences": len(as_given)}
            row["tokens"] = tokens
            for name in engines:
                row[name] = tokens / statistics.median(seconds[name])
                if name != "ours":
                    row[f"ours / {name}"] = ratio(seconds[name], seconds["ours"])
                    same = sum(a == b for a, b in zip(said[name], said["ours"], strict=True))
                    row[f"same as {name}"] = same / len(said["ours"])
            rows.append(row)
            report(row)
    return rows


def ratio(theirs: list[float], ours: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


# --- training


def training_batches(config: TransformerConfig, count: int) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Batches of sentences of about one length, as a loader with length buckets gives them."""
    torch.manual_seed(1)
    source_lengths, target_lengths = (sizes.sort().values for sizes in lengths(BATCH * count, seed=1))
    batches = []
    for begin in range(0, BATCH * count, BATCH):
        rows = [
            [[*torch.randint(FIRST, config.source_words, (n - 1,)).tolist(), END] for n in sizes[begin : begin + BATCH]]
            for sizes in (source_lengths.tolist(), target_lengths.tolist())
        ]
        batches.append((*pad(rows[0]), *pad([[START, *row] for row in rows[1]])))
    order = torch.randperm(count).tolist()
    return [batches[i] for i in order]


def adamw(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)


def our_step(config: TransformerConfig, name: str = "transformer") -> Callable:
    model = build(name, config).train()
    optimizer = adamw(model)

    def step(source, source_sizes, target, target_sizes) -> None:
        states = model(source, source_sizes, target[:, :-1])
        real = torch.arange(target.shape[1] - 1) < target_sizes[:, None] - 1
        labels = target[:, 1:][real]
        loss, _, _ = linear_cross_entropy(states[real], model.output.weight, model.output.bias, labels, smoothing=0.1)
        (loss / len(labels)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def their_step(config: TransformerConfig) -> Callable:
    model = their_model(None, config).train()
    optimizer = adamw(model)

    def step(source, source_sizes, target, target_sizes) -> None:
        keep = (torch.arange(source.shape[1]) < source_sizes[:, None]).long()
        labels = target[:, 1:].masked_fill(torch.arange(target.shape[1] - 1) >= target_sizes[:, None] - 1, -100)
        logits = model(input_ids=source, attention_mask=keep, decoder_input_ids=target[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


STEPS = {"ours": our_step, "transformers": their_step}


class Tutorial(torch.nn.Module):
    """LSTM encoder and decoder as tutorials write them.

    A packed encoder, then a Python loop over the target's steps, each with a look at the source (Luong's bilinear
    attention) and an output layer.
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        nn, dim = torch.nn, config.dim
        self.source, self.target = nn.Embedding(config.source_words, dim), nn.Embedding(config.target_words, dim)
        self.encoder = nn.LSTM(dim, dim // 2, config.depth, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(dim, dim, config.depth, batch_first=True)
        self.score, self.join = nn.Linear(dim, dim, bias=False), nn.Linear(2 * dim, dim)
        self.output = nn.Linear(dim, config.target_words)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, source, source_sizes, target):
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.source(source)), source_sizes, batch_first=True, enforce_sorted=False
        )
        states, ended = self.encoder(packed)
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        cells = tuple(torch.cat([each[0::2], each[1::2]], -1) for each in ended)
        hidden = torch.arange(source.shape[1]) >= source_sizes[:, None]
        keys, vectors, logits = self.score(states), self.dropout(self.target(target)), []
        for place in range(target.shape[1]):
            state, cells = self.decoder(vectors[:, place : place + 1], cells)
            scores = (state @ keys.transpose(1, 2)).masked_fill(hidden[:, None], float("-inf"))
            seen = scores.softmax(-1) @ states
            logits.append(self.output(self.dropout(self.join(torch.cat([seen, state], -1)).tanh())))
        return torch.cat(logits, 1)


def tutorial_step(config: Seq2SeqConfig) -> Callable:
    model = Tutorial(config).train()
    optimizer = adamw(model)

    def step(source, source_sizes, target, target_sizes) -> None:
        labels = target[:, 1:].masked_fill(torch.arange(target.shape[1] - 1) >= target_sizes[:, None] - 1, -100)
        logits = model(source, source_sizes, target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def train_recurrent(config: Seq2SeqConfig, rounds: int) -> list[dict]:
    """Our recurrent encoder and decoder with attention against the same as tutorials write it."""
    steps = {"ours": our_step(config, "seq2seq"), "tutorial": tutorial_step(config)}
    return [_measure("training, seq2seq", steps, training_batches(config, 4), rounds)]


def train(config: TransformerConfig, rounds: int, quick: bool) -> list[dict]:
    row = _measure(
        "training", {name: make(config) for name, make in STEPS.items()}, training_batches(config, 4), rounds
    )
    memory = {"what": "peak memory of training, MB", "order": "buckets"}
    for name in STEPS:  # each in a process of its own
        command = [sys.executable, __file__, "--memory-of", name, *(["--quick"] if quick else [])]
        memory[name] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
    memory["ours / transformers"] = memory["ours"] / memory["transformers"]
    report(memory)
    return [row, memory]


def _measure(what: str, steps: dict[str, Callable], batches: list, rounds: int) -> dict:
    """Tokens a second of each kind of step, and ours in parts of the other."""
    seconds = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name in list(steps)[:: 1 if number % 2 else -1]:
            began = CLOCK()
            for batch in batches if number else batches[:1]:
                steps[name](*batch)
            if number:
                seconds[name].append(CLOCK() - began)
    tokens = sum(int(batch[3].sum()) - len(batch[3]) for batch in batches)
    row = {"what": what, "order": "buckets", "tokens": tokens}
    row |= {name: tokens / statistics.median(times) for name, times in seconds.items()}
    row |= {f"ours / {name}": ratio(seconds[name], seconds["ours"]) for name in steps if name != "ours"}
    report(row)
    return row


def memory_of(name: str, config: TransformerConfig) -> None:
    """Print the megabytes that two training steps take at most, the longest batch among them."""
    step = STEPS[name](config)
    batches = sorted(training_batches(config, 4), key=lambda batch: -batch[0].numel())
    for batch in batches[:2]:
        step(*batch)
    # Not ru_maxrss, which a new process inherits from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def report(row: dict) -> None:
    """Tell a row as soon as it is measured."""
    print("  ".join(f"{key}: {shown(value)}" for key, value in row.items()), file=sys.stderr, flush=True)


def shown(value: str | int | float) -> str:
    """A ratio with two places, a speed or a size with none."""
    return str(value) if not isinstance(value, float) else f"{value:.2f}" if value < 20 else f"{value:.0f}"


def table(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row if key != "tokens"))
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(shown(row.get(column, "")) for column in columns) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Our Transformer against transformers and CTranslate2, on the CPU.")
    parser.add_argument("--quick", action="store_true", help="a small model and few sentences")
    parser.add_argument("--only", choices=("train", "decode"), help="one half of the table")
    parser.add_argument("--engines", default="ours,transformers,ctranslate2", help="which to decode with")
    parser.add_argument("--run", type=Path, help="decode with this trained run ...")
    parser.add_argument("--source", type=Path, help="... these lines of text")
    parser.add_argument("--sentences", type=int, help="how many (512)")
    parser.add_argument("--beams", default="1,5", help="beam sizes; 1 is greedy")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of each engine")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall",
        help="cpu counts processor time, for a machine that others use too; take --threads 1 with it",
    )  # fmt: skip
    parser.add_argument("--orders", default="file,sorted,batches", help="which rows of decoding")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.add_argument("--memory-of", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    global CLOCK
    CLOCK = time.process_time if options.clock == "cpu" else time.perf_counter
    config = QUICK if options.quick else CONFIG
    if options.memory_of:
        memory_of(options.memory_of, config)
        return
    rows = []
    if options.only != "decode":
        rows += train(config, options.rounds, options.quick)
        small = replace(RECURRENT, source_words=4000, target_words=4000, dim=128, depth=1)
        rows += train_recurrent(small if options.quick else RECURRENT, options.rounds)
    if options.only != "train":
        count = options.sentences or (128 if options.quick else 512)
        task = trained(options.run, options.source, count) if options.run else planted(config, count)
        beams = [int(beam) for beam in options.beams.split(",")]
        orders, engines = options.orders.split(","), options.engines.split(",")
        rows += decode(task, beams, orders, options.rounds, options.threads, engines)
    print(json.dumps(rows, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
