"""The shared laws, for every model: a new one adds a line to `EVERY` and, if it is of a new kind, how it is spoken to.

Collected through `test_every_model.py`.
"""

import json
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from qkv import models
from qkv.layers.attention import Attention
from qkv.layers.mixing import TokenMixing
from qkv.layers.score import Score
from qkv.look.trace import trace
from qkv.models.saved import build, load_model, save_model
from samples import END, RECURRENT, SMALL, START, WORDS, close, padded, tensor, texts


@dataclass(frozen=True)
class ReadsAndWrites:
    """How the laws speak to a model that reads a source and writes a target."""

    config: dict = field(default_factory=lambda: SMALL)

    def examples(self, seed: int, lengths) -> list:
        """``(source, target)`` of ids; targets begin with the start mark."""
        targets = texts(seed + 1, [length + 1 for length in reversed(lengths)])
        return [(source, [START, *target]) for source, target in zip(texts(seed, lengths), targets, strict=True)]

    def batch(self, examples: list, wider: int = 0, fill: int = 0) -> tuple[Tensor, ...]:
        """What `forward` takes, padded to ``wider`` than need be with any id."""
        sources, targets = zip(*examples, strict=True)
        source, target = (padded(side, max(map(len, side)) + wider, fill) for side in (sources, targets))
        return *source, *target

    def answers(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """Logits of each example, at its real positions."""
        logits = model.output(model(*batch))
        return [row[:length] for row, length in zip(logits, batch[-1].tolist(), strict=True)]

    def stepwise(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """The same, token by token."""
        state, steps = model.start(*batch[:2]), []
        for tokens in batch[2].unbind(1):
            logits, state = model.step(state, tokens[:, None])
            steps.append(logits)
        return [row[:length] for row, length in zip(torch.cat(steps, 1), batch[-1].tolist(), strict=True)]

    def with_another_end(self, examples: list) -> list:
        """The same but for the last target of each: nothing before it may notice."""
        return [(source, [*target[:-1], END]) for source, target in examples]


@dataclass(frozen=True)
class Classifies:
    """How the laws speak to a model that reads an image and tells the class; lengths of texts mean nothing to it."""

    config: dict = field(default_factory=lambda: {"classes": 7})
    size: tuple[int, int] = (16, 24)

    def examples(self, seed: int, lengths) -> list:
        """An image each."""
        return list(tensor(seed, len(lengths), 3, *self.size))

    def batch(self, examples: list, wider: int = 0, fill: int = 0) -> tuple[Tensor, ...]:
        """What `forward` takes: nothing is padded."""
        return (torch.stack(examples),)

    def answers(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """Logits of each image, as of one position."""
        return list(model(*batch)[:, None])


@dataclass(frozen=True)
class Reads:
    """How the laws speak to an encoder of texts, with whatever head it has."""

    config: dict = field(default_factory=lambda: BERT)

    def examples(self, seed: int, lengths) -> list:
        """Ids and segments of texts."""
        return [(ids, [2 * i >= len(ids) for i in range(len(ids))]) for ids in texts(seed, lengths)]

    def batch(self, examples: list, wider: int = 0, fill: int = 0) -> tuple[Tensor, ...]:
        """What `forward` takes, padded to ``wider`` than need be with any id."""
        ids, segments = zip(*examples, strict=True)
        width = max(map(len, ids)) + wider
        return *padded(ids, width, fill), padded(segments, width)[0].long()

    def answers(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """Logits of each text, or of each of its tokens; of a model without a head, its states and its vector."""
        states, lengths = model(*batch), batch[1]
        match model.config.head:
            case "none":
                vectors = model.pool(states, lengths)
                vectors = vectors if model.pooler is None else model.pooler(vectors)
                rows = torch.cat([vectors[:, None], states], 1)
                return [row[: 1 + length] for row, length in zip(rows, lengths.tolist(), strict=True)]
            case "class":
                return list(model.classify(states, lengths)[:, None])
            case "tag":
                rows = model.classify(states, lengths)
            case "pretrain":
                rows = model.words(states)
                if model.config.next:
                    follows = nn.functional.pad(model.follows(states, lengths), (0, WORDS - 2))
                    rows = torch.cat([follows[:, None], rows], 1)
                    lengths = lengths + 1
        return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


@dataclass(frozen=True)
class ClassifiesFrames:
    """How the laws speak to a model that reads frames and tells the class of the clip and of each frame."""

    config: dict = field(default_factory=lambda: {"classes": 7, "frame_classes": 7, "image": (16, 24), "frames": 9})

    def examples(self, seed: int, lengths) -> list:
        """A clip each, of as many frames as it is long."""
        return [tensor(seed + i, length, 3, *self.config["image"]) for i, length in enumerate(lengths)]

    def batch(self, examples: list, wider: int = 0, fill: int = 0) -> tuple[Tensor, ...]:
        """What `forward` takes, padded with frames of any one brightness to ``wider`` than need be."""
        lengths = torch.tensor([len(example) for example in examples])
        images = torch.full((len(examples), int(lengths.max()) + wider, 3, *self.config["image"]), float(fill))
        for row, example in zip(images, examples, strict=True):
            row[: len(example)] = example
        return images, lengths

    def answers(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """Logits of each clip, then of each of its frames."""
        states, lengths = model(*batch), batch[1]
        each = zip(model.of_clip(states, lengths), model.of_frames(states), lengths.tolist(), strict=True)
        return [torch.cat([clip[None], frames[:length]]) for clip, frames, length in each]

    def maps(self, layer: str, lengths) -> int:
        """How many maps a layer gives: inside the encoder one for each frame."""
        return sum(lengths) if layer.startswith("encoder.") else len(lengths)


@dataclass(frozen=True)
class Tells:
    """How the laws speak to a model that reads an image and writes a target; the image is the same for all lengths."""

    config: dict = field(default_factory=lambda: {"words": WORDS, "image": (16, 24), "dim": 16, "dropout": 0.0})
    size: tuple[int, int] = (16, 24)

    def examples(self, seed: int, lengths) -> list:
        """``(image, target)``; targets begin with the start mark."""
        targets = texts(seed + 1, [length + 1 for length in reversed(lengths)])
        images = tensor(seed, len(lengths), 3, *self.size)
        return [(image, [START, *ids]) for image, ids in zip(images, targets, strict=True)]

    def batch(self, examples: list, wider: int = 0, fill: int = 0) -> tuple[Tensor, ...]:
        """What `forward` takes, targets padded to ``wider`` than need be with any id."""
        images, targets = zip(*examples, strict=True)
        return torch.stack(images), *padded(targets, max(map(len, targets)) + wider, fill)

    def answers(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """Logits of each example, at its real positions."""
        logits = model.output(model(*batch))
        return [row[:length] for row, length in zip(logits, batch[-1].tolist(), strict=True)]

    def stepwise(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """The same, token by token."""
        state, steps = model.start(model.encode(batch[0])), []
        for tokens in batch[1].unbind(1):
            logits, state = model.step(state, tokens[:, None])
            steps.append(logits)
        return [row[:length] for row, length in zip(torch.cat(steps, 1), batch[-1].tolist(), strict=True)]

    def with_another_end(self, examples: list) -> list:
        """The same but for the last target of each: nothing before it may notice."""
        return [(image, [*target[:-1], END]) for image, target in examples]


@dataclass(frozen=True)
class ReadsWindows:
    """How the laws speak to a model of word vectors: it reads the words of a window and scores every word.

    CBOW makes one answer of a window; of an empty one there is nothing to combine, so a window has a word at least.
    """

    config: dict = field(default_factory=lambda: {"words": WORDS, "dim": 6})

    def examples(self, seed: int, lengths) -> list:
        """Words of a window each."""
        return texts(seed, [max(length, 1) for length in lengths])

    def batch(self, examples: list, wider: int = 0, fill: int = 0) -> tuple[Tensor, ...]:
        """What `forward` takes, padded to ``wider`` than need be with any id."""
        return padded(examples, max(map(len, examples)) + wider, fill)

    def answers(self, model: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
        """Scores of all words, for each word of a window or for the window."""
        return [row[: int(length)] for row, length in zip(model(*batch), batch[1], strict=True)]


@dataclass(frozen=True)
class Case:
    """A model to be judged: its name in `qkv.models.MODELS`, its kind, what its config changes of the kind's.

    To export takes seconds: those do so whose graphs differ.
    """

    name: str
    kind: object
    changes: dict
    exported: bool = False

    def make(self) -> nn.Module:
        """A random model in evaluation mode; batch norms have seen something."""
        torch.manual_seed(0)
        model = build(self.name, models.find(self.name).Config(**{**self.kind.config, **self.changes}))
        model(*self.kind.batch(self.kind.examples(9, [3, 5])))
        for parameter in model.parameters():  # zero biases would hide that they are left out
            parameter.data += 0.02 * tensor(1, *parameter.shape)
        return model.eval()


def _transformer(exported: bool = False, **changes) -> Case:
    return Case("transformer", ReadsAndWrites(), changes, exported)


def _seq2seq(**changes) -> Case:
    return Case("seq2seq", ReadsAndWrites(RECURRENT), changes)


def _image(name: str, exported: bool = False, size: tuple[int, int] = (16, 24), **changes) -> Case:
    return Case(name, Classifies(size=size), changes, exported)


def _bert(exported: bool = False, **changes) -> Case:
    return Case("bert", Reads(), changes, exported)


def _rnn(**changes) -> Case:
    return Case("rnn", Reads(RNN), {"outputs": 5, **changes})


RNN = dict(words=WORDS, dim=16, dropout=0.0)
BERT = dict(words=WORDS, longest=12, dim=16, depth=2, heads=4, hidden=32, dropout=0.0, eps=1e-6)


def _video(**changes) -> Case:
    return Case("video", ClassifiesFrames(), {**VIDEO, **changes})


VIDEO = dict(encoder_size="nano", dim=16, depth=2, heads=4, hidden=32)


def _tells(name: str, exported: bool = False, **changes) -> Case:
    return Case(name, Tells(), {**ENCODER, **changes}, exported)


VIT = dict(image=(16, 24), patch=8, dim=16, depth=2, heads=4, hidden=32)
SWIN = dict(patch=2, window=4, dim=8, depths=(2, 2), heads=(2, 4), ratio=2)
MIXER = dict(image=(16, 24), patch=8, dim=16, depth=2, token_hidden=5, channel_hidden=32)
RESNET = dict(stem_width=8, widths=(8, 12), depths=(2, 1))
EFFICIENTNET = models.find("efficientnet").SIZES["nano"]
ENCODER = dict(encoder="resnet", encoder_size='{"stem_width": 8, "widths": [8, 12], "depths": [1, 1]}')
DECODER = dict(depth=2, heads=4, hidden=32)


def _bert_transformer(exported: bool = False, bert: dict | None = None, **changes) -> Case:
    config = {"target_words": WORDS, "encoder": json.dumps({**BERT, **(bert or {})}), **OF_BERT}
    return Case("bert-transformer", ReadsAndWrites(config), changes, exported)


OF_BERT = dict(dim=24, decoder_depth=2, heads=4, hidden=32, dropout=0.0)

EVERY = {
    "transformer": _transformer(exported=True),
    "transformer, norm before": _transformer(order="pre"),
    "transformer, batch norm": _transformer(norm="batch"),
    "transformer, batch norm before": _transformer(norm="batch", order="pre"),
    "transformer, dot": _transformer(score="dot"),
    "transformer, cosine, norm before": _transformer(score="cosine", order="pre", exported=True),
    "transformer, positions in halves": _transformer(positions="sinusoidal-halves"),
    "transformer, learned positions": _transformer(positions="learned", longest=20),
    "transformer, no positions": _transformer(positions="none"),
    "transformer, positions concatenated": _transformer(join="concatenated"),
    "transformer, gelu, output bias": _transformer(activation="gelu", output_bias=True),
    "transformer, output tied": _transformer(tie="output", source_words=WORDS + 2),
    "transformer, nothing tied": _transformer(tie="none", encoder_depth=1, decoder_depth=3),
    "lstm, no attention": _seq2seq(attention="none"),
    "lstm, no attention, reversed, one way": _seq2seq(attention="none", reverse=True, both_ways=False),
    "lstm, dot": _seq2seq(attention="dot"),
    "lstm, bilinear": _seq2seq(attention="bilinear"),
    "lstm, additive, reversed": _seq2seq(attention="additive", reverse=True, depth=1),
    "lstm, bilinear, fed": _seq2seq(feed="state"),
    "lstm, additive, Bahdanau": _seq2seq(attention="additive", order="bahdanau"),
    "gru, additive, Bahdanau, fed": _seq2seq(cell="gru", attention="additive", order="bahdanau", feed="state"),
    "gru, dot, nothing tied": _seq2seq(cell="gru", attention="dot", tie="none", output_bias=True),
    "rnn, bilinear, one way": _seq2seq(cell="rnn", both_ways=False),
    "vit": _image("vit", exported=True, **VIT),
    "vit, another image": _image("vit", size=(24, 16), **VIT),
    "vit, distilled, registers, prelogits": _image("vit", distilled=True, registers=2, prelogits=6, **VIT),
    "vit, mean of patches": _image("vit", pool="mean", class_token=False, **VIT),
    "vit, attention pooling": _image("vit", pool="attention", **VIT),
    "swin": _image("swin", exported=True, **SWIN),
    "swin, padded": _image("swin", size=(19, 26), **SWIN),
    "swin, window longer than the image": _image("swin", **{**SWIN, "window": 9}),
    "mixer": _image("mixer", **MIXER),
    "bert": _bert(exported=True),
    "bert, words only, relu": _bert(next=False, pooler=False, activation="relu"),
    "bert, class": _bert(head="class", outputs=5),
    "bert, class, as DistilBERT": _bert(head="class", outputs=5, segments=0, pooler_activation="relu"),
    "bert, class, largest": _bert(head="class", outputs=5, pool="max", pooler=False),
    "bert, tags": _bert(head="tag", outputs=5, pooler=False),
    "bert, mean": _bert(head="none", pool="mean"),
    "rnn, attention pooling": _rnn(),
    "rnn, last, one way": _rnn(pool="last", both_ways=False, cell="rnn"),
    "rnn, last, two layers": _rnn(pool="last", depth=2, cell="gru"),
    "rnn, mean": _rnn(pool="mean"),
    "rnn, largest": _rnn(pool="max"),
    "rnn, tags": _rnn(head="tag"),
    "skip-gram": Case("skipgram", ReadsWindows(), {}),
    "cbow": Case("cbow", ReadsWindows(), {}),
    "cbow, added": Case("cbow", ReadsWindows(), {"combine": "sum"}),
    "cbow, undivided": Case("cbow", ReadsWindows(), {"combine": "undivided"}),
    "glove": Case("glove", ReadsWindows(), {}),
    "resnet, basic": _image("resnet", **RESNET),
    "resnet, bottleneck": _image("resnet", block="bottleneck", **RESNET),
    "resnet, small images, padded shortcuts": _image("resnet", stem="small", shortcut="padded", **RESNET),
    "resnet with attention": _image("resnet-attention", looks_after=(0, 1), **RESNET),
    "local attention": _image("local-attention", exported=True, reach=1, **RESNET),
    "local attention, odd sides": _image("local-attention", size=(19, 26), reach=2, stem="small", **RESNET),
    "video": _video(),
    "video, mean of frames, swin": _video(pool="mean", encoder="swin", patch=4),
    "video, resnet": _video(encoder="resnet"),
    "video, mean of projected frames": _video(pool="mean", encoder="linear"),
    "video, max of projected frames": _video(pool="max", encoder="linear"),
    "efficientnet": _image("efficientnet", size=(48, 70), **EFFICIENTNET),
    "captioner": _tells("captioner"),
    "captioner, no attention": _tells("captioner", attention="none"),
    "captioner, dot, ungated, tied": _tells("captioner", attention="dot", gated=False, tie="output", dim=12),
    "captioner, bilinear, positions": _tells("captioner", attention="bilinear", positions="learned"),
    "captioner, vit": _tells("captioner", encoder="vit", encoder_size=json.dumps(VIT)),
    "captioner, swin": _tells("captioner", encoder="swin", encoder_size=json.dumps(SWIN)),
    "caption-transformer": _tells("caption-transformer", exported=True, **DECODER),
    "bert-transformer": _bert_transformer(exported=True),
    "bert-transformer, norm before, untied": _bert_transformer(order="pre", tie="none"),
    "bert-transformer, as DistilBERT": _bert_transformer(bert=dict(segments=0, head="class", outputs=5), dim=16),
    "caption-transformer, norm after, untied": _tells("caption-transformer", order="post", tie="none", **DECODER),
}


def _which(of_these) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=name) for name, case in EVERY.items() if of_these(case)]
    )


def _looks(case: Case) -> bool:
    # A recurrent encoder looks when its states are pooled, which is after its `forward`.
    nothing_to_see = case.name in ("resnet", "efficientnet", "rnn") or isinstance(case.kind, ReadsWindows)
    return case.changes.get("attention") != "none" and not nothing_to_see


def _looks_at_once(case: Case) -> bool:
    one_by_one = (case.changes.get("feed"), case.changes.get("order")) not in ((None, None), (None, "pre"))
    # A pool looks with one query, and so does a last block of which one token is read: the fused kernel is not worth it
    # on a CPU. (What is exported has it there too.)
    pool = case.changes.get("pool", "class" if case.name == "vit" and "distilled" not in case.changes else None)
    one_by_one |= case.name == "captioner" or (case.name == "video" and "encoder" not in case.changes)
    return _looks(case) and not one_by_one and pool not in ("attention", "class")


every_model = _which(lambda case: True)
every_model_that_writes = _which(lambda case: isinstance(case.kind, (ReadsAndWrites, Tells)))
every_model_that_looks = _which(_looks)
every_model_whose_steps_look_at_once = _which(_looks_at_once)
LENGTHS = [5, 1, 4]


@every_model_that_looks
@torch.no_grad()
def test_the_traced_output_is_the_untraced_and_there_are_as_many_maps_as_layers(case):
    model, batch = case.make(), case.kind.batch(case.kind.examples(0, LENGTHS))
    before = model(*batch)
    with trace(model) as seen:
        during = model(*batch)
    assert torch.equal(before, during)
    assert torch.equal(before, model(*batch))
    assert set(seen) == {name for name, layer in model.named_modules() if isinstance(layer, (Attention, TokenMixing))}
    maps = getattr(case.kind, "maps", lambda layer, lengths: len(lengths))
    assert {name: len(some) for name, some in seen.items()} == {name: maps(name, LENGTHS) for name in seen}


@every_model_that_looks
@torch.no_grad()
def test_rows_of_every_map_sum_to_one_or_are_all_zero(case):
    examples = case.kind.examples(0, [5, 0, 4])
    with trace(model := case.make()) as seen:
        model(*case.kind.batch(examples))
    for map in [*seen.select(kind="self"), *seen.select(kind="cross")]:
        assert (map.weights >= 0).all()
        sums = map.weights.sum(-1)
        close(torch.where(sums == 0, 1.0, sums), torch.ones_like(sums))


@every_model
@torch.no_grad()
def test_padding_and_neighbours_change_no_answer(case):
    model, examples = case.make(), case.kind.examples(0, LENGTHS)
    alone = [case.kind.answers(model, case.kind.batch([example]))[0] for example in examples]
    for order, wider, fill in [([0, 1, 2], 0, 0), ([2, 0, 1], 3, 0), ([1, 2, 0], 3, WORDS - 1)]:
        together = case.kind.answers(model, case.kind.batch([examples[i] for i in order], wider, fill))
        for i, answer in zip(order, together, strict=True):
            close(answer, alone[i])


@every_model_that_writes
@torch.no_grad()
def test_an_empty_text_has_a_finite_answer_and_changes_no_neighbour(case):
    model, examples = case.make(), case.kind.examples(0, [5, 0])
    full, empty = case.kind.answers(model, case.kind.batch(examples))
    assert empty.isfinite().all()
    close(full, case.kind.answers(model, case.kind.batch(examples[:1]))[0])


@every_model_that_writes
@torch.no_grad()
def test_a_token_changes_nothing_before_it(case):
    model, examples = case.make(), case.kind.examples(0, LENGTHS)
    before = case.kind.answers(model, case.kind.batch(examples))
    after = case.kind.answers(model, case.kind.batch(case.kind.with_another_end(examples)))
    for one, other in zip(before, after, strict=True):
        close(one[:-1], other[:-1])
        assert not torch.allclose(one[-1], other[-1], atol=1e-5)


@every_model_that_writes
@torch.no_grad()
def test_step_by_step_gives_what_one_pass_gives(case):
    model, batch = case.make(), case.kind.batch(case.kind.examples(0, LENGTHS))
    for step, whole in zip(case.kind.stepwise(model, batch), case.kind.answers(model, batch), strict=True):
        close(step, whole)


@every_model
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_identical_answers(case, tmp_path):
    model, batch = case.make(), case.kind.batch(case.kind.examples(0, LENGTHS))
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert torch.equal(model(*batch), loaded(*batch))
    assert loaded.config == model.config
    assert len(list(loaded.parameters())) == len(list(model.parameters()))  # what was tied is tied


class Called(TorchFunctionMode):
    """The names of the torch functions that ran."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


@every_model_whose_steps_look_at_once
@torch.no_grad()
def test_every_score_that_folds_runs_in_the_fused_kernel(case):
    model, batch = case.make(), case.kind.batch(case.kind.examples(0, LENGTHS))
    with Called() as called:
        model(*batch)
    folding, others = layers_by_fold(model)
    assert called.names.count("scaled_dot_product_attention") == folding
    assert sum("softmax" in name for name in called.names) == others


@pytest.mark.parametrize("case", [case for case in EVERY.values() if case.exported])
@torch.no_grad()
def test_an_exported_graph_has_the_fused_kernel_too(case):
    model, batch = case.make(), case.kind.batch(case.kind.examples(0, LENGTHS))
    program = torch.export.export(model, batch, strict=False)
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    folding, others = layers_by_fold(model)
    assert sum("scaled_dot_product_attention" in target for target in targets) == folding
    assert sum("softmax" in target for target in targets) == others
    close(program.module()(*batch), model(*batch))


def layers_by_fold(model: nn.Module) -> tuple[int, int]:
    """How many attention layers have a score that folds into a dot product, and how many have not."""
    folds = [type(m.score).fold is not Score.fold for m in model.modules() if isinstance(m, Attention)]
    return sum(folds), len(folds) - sum(folds)


@every_model
def test_every_parameter_gets_a_finite_gradient_with_an_empty_text_in_the_batch_too(case):
    model = case.make().train()
    answers = case.kind.answers(model, case.kind.batch(case.kind.examples(0, [5, 0, 4])))
    sum(answer.log_softmax(-1)[:, 3].sum() for answer in answers).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # A key's bias, or a word's own, adds the same to every score of a row, and softmax does not notice.
        assert parameter.grad.abs().sum() > 0 or name.endswith(("key.bias", "input_bias.weight")), name
