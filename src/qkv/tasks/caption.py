"""Learning to tell about pictures: teacher forcing on captions, scored by what is said of held-out pictures."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from qkv.data.caption_batches import CaptionBatch, HeldOutCaptions
from qkv.data.caption_codec import CaptionCodec
from qkv.data.caption_files import CaptionFiles
from qkv.data.caption_prepare import PreparedCaptions, prepare_captions
from qkv.data.cell_store import fill_cells
from qkv.data.preprocess import Preprocess
from qkv.decode.search import Search
from qkv.errors import ConfigError
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.layers.keep import Keeper, keep
from qkv.models.image_encoder import ENCODERS, ImageEncoder
from qkv.models.saved import load_weights, read_config
from qkv.tasks.caption_recipe import described, recipe
from qkv.tasks.caption_scores import caption_scores
from qkv.tasks.captioner import Captioner, looks
from qkv.tasks.forcing import chance_of_truth, partly_own
from qkv.tasks.settings import write_settings
from qkv.tasks.task import Loss, Scores

__all__ = ["Caption"]

SCORED = 500  # held-out pictures told about at each evaluation
SAMPLES = 3
TESTS = ("test.jsonl", "test.csv", "test.tsv", "test.parquet")
GREEDY = Search()


class Caption:
    """Train a captioner on pictures with captions.

    Args:
        smoothing: label smoothing: this share of each target's mass is spread over all words.
        doubly: weight of the doubly stochastic penalty (Xu et al. 2015, eq. 14): over the words of a caption every cell
            should get a weight of one in all. 0 is none.
        encoder: folder of a run of an image model, trained or imported: the encoder is it, with its weights and its
            preprocessing. A new one, as --size says, if not given.
        tune_from: the step from which the encoder learns too; -1 is never for an encoder that was trained before (what
            it sees is then computed once and kept), and from the first for a new one.
        cells: folder where what the encoder sees is kept; the run's own if not given. Runs may share it.
        teacher_forcing: chance that a word which the decoder reads in training is the true one; else it is the one that
            the model itself would say there (scheduled sampling, Bengio et al. 2015).
        forcing_steps: the chance falls from 1 to that in so many steps, linearly; 0 has it there from the first.
    """

    name = "caption"
    short: Mapping[str, str] = {"attention": "size.attention"}
    Data = CaptionFiles
    models = ("captioner", "caption-transformer")
    from_codec = ("words", "image")
    unit = "words"
    best = "cider_d"
    higher_is_better: Mapping[str, bool] = {
        "loss": False,
        "accuracy": True,
        **dict.fromkeys(("bleu1", "bleu2", "bleu3", "bleu4", "rouge_l", "cider_d", "chrf"), True),
    }

    def __init__(
        self,
        smoothing: float = 0.1,
        doubly: float = 1.0,
        encoder: str = "",
        tune_from: int = -1,
        cells: str = "",
        teacher_forcing: float = 1.0,
        forcing_steps: int = 0,
    ):
        for key, value, below in (("smoothing", smoothing, 1), ("doubly", doubly, math.inf)):
            if not 0 <= value < below:
                raise ConfigError(f"learn.{key} is {value}", expected="0 or more" + ", less than 1" * (below == 1))
        if not 0 <= teacher_forcing <= 1:
            raise ConfigError(f"learn.teacher_forcing is {teacher_forcing}", expected="a chance: from 0 to 1")
        for key, value, least in (("forcing_steps", forcing_steps, 0), ("tune_from", tune_from, -1)):
            if value < least:
                raise ConfigError(f"learn.{key} is {value}", expected=f"a whole number from {least}")
        self.smoothing, self.doubly, self.encoder, self.tune_from = smoothing, doubly, encoder, tune_from
        self.cells, self.teacher_forcing, self.forcing_steps = cells, teacher_forcing, forcing_steps
        self.test = ""  # captions of the user's own to evaluate with, once a run begins

    @staticmethod
    def recipe(run: Any) -> Mapping[str, Any]:
        """Settings that suit the model and the pictures; see `qkv.tasks.caption_recipe`."""
        return recipe(run)

    def begin(self, run: Any, prepared: PreparedCaptions) -> list[str]:
        """Say which recipe it is; know the user's own test."""
        self.test = _test_of(run.data)
        return [described(run, len(prepared.train.captions.images))]

    @property
    def frozen(self) -> bool:
        """The encoder never learns: what it sees of a picture is always the same."""
        return bool(self.encoder) and self.tune_from < 0

    def prepare(
        self, data: CaptionFiles, folder: Path, seed: int, codec: CaptionCodec | None = None
    ) -> PreparedCaptions:
        """Read, check and encode the user's captions; see the pictures through a frozen encoder."""
        preprocess = Preprocess.load(Path(self.encoder) / "codec") if self.encoder else None
        prepared = prepare_captions(data, folder, seed, codec, preprocess)
        if not self.frozen:
            return prepared
        where = Path(self.cells) if self.cells else folder / "data"
        return _seen_once(prepared, _encoder_of(Path(self.encoder)), where)

    def load_codec(self, folder: Path) -> CaptionCodec:
        """The codec of a run that is gone on with or fine-tuned."""
        return CaptionCodec.load(folder)

    def config(self, codec: CaptionCodec, size: Any) -> Any:
        """The model's config with the size of vocabulary and pictures, and with the encoder's own config."""
        if self.encoder:
            name, config = _config_of(Path(self.encoder))
            size = replace(size, encoder=name, encoder_size=json.dumps(asdict(config)))
        return replace(size, words=codec.vocabulary.size, image=codec.preprocess.size)

    def fill(self, model: nn.Module, codec: CaptionCodec) -> list[str]:
        """Give a new model the encoder's weights."""
        if not self.encoder:
            return []
        model.encoder.load(Path(self.encoder))
        when = "never learns" if self.frozen else f"learns from step {self.tune_from}"
        return [f"the encoder is that of {self.encoder}, and {when}"]

    def start_from(self, init: Path, model: nn.Module) -> list[str]:
        """Weights of another captioner; those of ``encoder`` go before its own."""
        load_weights(model, init / "model.safetensors")
        return [f"weights and codec are those of {init}", *self.fill(model, None)]

    def loss(self, model: nn.Module, batch: CaptionBatch, step: int = 0) -> Loss:
        """Cross entropy of each next word given the true ones before it, smoothed, summed over real words; and the
        penalty, summed over captions."""
        cells = self._see(model, batch, step)[batch.which]
        given, words = batch.target[:, :-1], batch.target[:, 1:]
        forced = chance_of_truth(self.teacher_forcing, self.forcing_steps, step) if model.training else 1.0
        if forced < 1:
            given = partly_own(model, lambda: model.start(cells), given, forced)
        watched = looks(model) if self.doubly and model.training else []
        with _kept(model, watched) if watched else nullcontext({}) as heard:
            states = model.tell(cells, given)
        real = torch.arange(words.shape[1], device=words.device) < (batch.lengths - 1)[:, None]
        smoothing = self.smoothing if model.training else 0.0
        total, nll, correct = linear_cross_entropy(
            states[real], model.output.weight, model.output.bias, words[real], smoothing
        )
        parts = {"nll": nll, "accuracy": correct}
        if watched:
            uneven = sum(_unevenness(torch.cat(keeper.runs, 2), real) for keeper in heard.values()) / len(watched)
            total = total + self.doubly * uneven
            parts["uneven"] = uneven.detach()
        return Loss(total, parts)

    def _see(self, model: nn.Module, batch: CaptionBatch, step: int) -> Float[Tensor, "picture cell width"]:
        """What is seen of a batch's pictures. An encoder that does not learn yet is as in evaluation."""
        if batch.seen:
            return batch.pictures
        learns = model.training and step >= self.tune_from
        model.encoder.train(learns)
        with nullcontext() if learns else torch.no_grad():
            return model.encode(batch.pictures)

    def score(self, model: nn.Module, prepared: PreparedCaptions) -> Scores:
        """Dev loss and accuracy a word, and the scores of greedy captions of the first dev pictures."""
        captioner = Captioner(model, prepared.codec, GREEDY)
        totals, targets = {"loss": 0.0, "accuracy": 0.0}, 0
        with torch.inference_mode():
            for batch in prepared.dev:
                loss = self.loss(model, batch.to(captioner.device))
                totals["loss"] += float(loss.parts["nll"])
                totals["accuracy"] += float(loss.parts["accuracy"])
                targets += batch.targets
        ids = range(min(SCORED, len(prepared.references)))
        references = [prepared.references[i] for i in ids]
        captions = [text for i in range(0, len(ids), 32) for text in _told(captioner, prepared.dev, ids[i : i + 32])]
        scores, signatures, _ = caption_scores(captions, references)
        scores.setdefault("cider_d", math.nan)  # of one picture
        samples = [f"{prepared.dev.images.where(i)}\n  = {references[i][0]}\n  > {captions[i]}" for i in ids[:SAMPLES]]
        return Scores({name: total / targets for name, total in totals.items()} | scores, samples, signatures)

    def finish(self, model: nn.Module, prepared: PreparedCaptions, folder: Path) -> None:
        """Say that the run tells about pictures, and how long a caption may be."""
        longest = int(prepared.train.captions.widths.max()) + 9
        write_settings(folder, task=self.name, longest=longest)

    def next_commands(self, folder: Path) -> list[str]:
        """What to type next; the user's own test where there is one."""
        return [
            f"qkv caption {folder} photo.jpg",
            f"qkv look {folder} photo.jpg --out look.html",
            f"qkv evaluate {folder} --data {self.test}",
        ]


def _test_of(data: CaptionFiles) -> str:
    """The test captions of a run's data; a name like theirs where there are none."""
    beside = Path(data.folder or "nowhere").expanduser()
    return data.test or next((str(beside / name) for name in TESTS if (beside / name).is_file()), "test.jsonl")


def _config_of(folder: Path) -> tuple[str, Any]:
    name, config = read_config(folder)
    if name not in ENCODERS:
        raise ConfigError(
            f"learn.encoder {folder} is a run of {name}", expected="an image model: " + ", ".join(ENCODERS)
        )
    return name, config


def _encoder_of(folder: Path) -> ImageEncoder:
    name, config = _config_of(folder)
    encoder = ImageEncoder(name, json.dumps(asdict(config)))
    encoder.load(folder)
    return encoder.eval()


def _seen_once(prepared: PreparedCaptions, encoder: ImageEncoder, where: Path) -> PreparedCaptions:
    """The captions with what the encoder sees of their pictures, computed once.

    What is kept is keyed by the encoder's weights, the preprocessing and the pixels of the pictures.
    """
    digest = hashlib.blake2b(repr(prepared.codec.preprocess).encode(), digest_size=12)
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    grid = encoder.grid(prepared.codec.preprocess.size)
    shape, stores = (grid[0] * grid[1], encoder.width), {}
    for part, images in (("train", prepared.train.captions.images), ("dev", prepared.dev.images)):
        own = digest.copy()
        own.update(prepared.contents[part].tobytes())
        shown = HeldOutCaptions(images, 1).shown

        @torch.inference_mode()
        def see(ids, shown=shown):
            return encoder(shown(list(ids)))

        stores[part] = fill_cells(where / f"cells-{own.hexdigest()}", len(images), shape, see)
    prepared.report.append(f"features: {grid[0]} x {grid[1]} cells of {encoder.width} numbers, computed once")
    return prepared.with_cells(stores)


def _told(captioner: Captioner, dev: HeldOutCaptions, ids: range) -> list[str]:
    pictures = dev.pictures(ids).to(captioner.device)
    with torch.inference_mode():
        cells = captioner.model.encode(pictures) if pictures.ndim == 4 else pictures
    return [answer.text for answer in captioner.tell(cells)]


@contextmanager
def _kept(model: nn.Module, names: list[str]) -> Iterator[dict[str, Keeper]]:
    """Keep what several layers look at."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(keep(model.get_submodule(name))) for name in names}


def _unevenness(
    weights: Float[Tensor, "caption head target cell"], real: Bool[Tensor, "caption target"]
) -> Float[Tensor, ""]:
    """How far the weights that each cell got over a caption are from one (Xu et al. 2015, eq. 14), heads averaged."""
    got = (weights.mean(1) * real[:, :, None]).sum(1)
    return ((1 - got) ** 2).sum()
