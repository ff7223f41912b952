"""A trained captioner: picture in, caption out, with scores and with what each word looked at."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from qkv.axis import Grid, Tokens
from qkv.data.buckets import pad_rows
from qkv.data.caption_codec import CaptionCodec
from qkv.data.lines import windows
from qkv.data.pictures import PictureError, decode
from qkv.decode.search import Hypothesis, Marks, Search, search
from qkv.errors import ConfigError, DataError
from qkv.layers.attention import Attention
from qkv.layers.cross_entropy import word_log_probabilities
from qkv.layers.gated import GatedDecoder
from qkv.look.record import Trace
from qkv.look.trace import no_attention, trace
from qkv.models.saved import load_model
from qkv.tasks.settings import read_settings

__all__ = ["Caption", "Captioner", "looks"]

Pixels = UInt8[np.ndarray, "row column 3"]
Source = str | Path | bytes | Pixels  # a file, what it holds, or pixels
INSTEAD = "Every word is given the mean of the picture."


@dataclass(frozen=True)
class Caption:
    """What became of one picture.

    Attributes:
        text: the caption; empty where there is none.
        picture: the file, or what was given as its name.
        score: what the search compared it by; None where nothing was said.
        tokens, token_scores, ids: the pieces (the end mark last, where it ended), the log-probability of each, and its
            id, so that a replay says exactly what was said.
        ended: False where the longest allowed length cut it off: the best of what was not finished.
        mark: why there is no caption: "unreadable pictures" and the like; empty otherwise.
        wrong: what is wrong with the picture, in a sentence.
        others: the rest of the n best.
    """

    text: str
    picture: str = ""
    score: float | None = None
    tokens: tuple[str, ...] = ()
    token_scores: tuple[float, ...] = ()
    ids: tuple[int, ...] = ()
    ended: bool = True
    mark: str = ""
    wrong: str = ""
    others: tuple["Caption", ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass
class Captioner:
    """A model with its codec. ``captioner("photo.jpg")`` tells about a picture; `caption` does so for any number.

    Attributes:
        model: the network, in evaluation mode.
        codec: its preprocessing and vocabulary.
        search: how it searches unless told otherwise.
        longest: most tokens of a caption.
        folder: the run it was loaded from.
    """

    model: nn.Module
    codec: CaptionCodec
    search: Search = field(default_factory=lambda: Search(beam=3, length_penalty=1.0))
    longest: int = 64
    folder: Path | None = None
    counts: Counter = field(default_factory=Counter)

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None) -> "Captioner":
        """The captioner of a run's folder."""
        folder = Path(folder)
        settings = read_settings(folder)
        told = {"search": Search(**settings["search"])} if "search" in settings else {}
        told |= {"longest": settings["longest"]} if "longest" in settings else {}
        model = load_model(folder).eval().to(device or "cpu")
        return cls(model, CaptionCodec.load(folder / "codec"), folder=folder, **told)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def __call__(self, picture: Source | Sequence[Source], **how: Any) -> Caption | list[Caption]:
        """Tell about one picture, or several. Raises PictureError (a DataError) for one that cannot be read."""
        several = isinstance(picture, (list, tuple))
        told = list(self.caption(picture if several else [picture], **how))
        for one in told:
            if one.mark:
                raise DataError(one.wrong)
        return told if several else told[0]

    def caption(
        self, pictures: Iterable[Source], *, how: Search | None = None, longest: int | None = None, batch: int = 32
    ) -> Iterator[Caption]:
        """One answer for each picture, in order; memory is that of a ``batch``. What cannot be read is marked.

        Args:
            how: the search; the run's own if not given.
            longest: most tokens of a caption.
        """
        how, longest = how or self.search, longest or self.longest
        if longest < 1:
            raise ConfigError(f"the longest caption has {longest} tokens", expected="1 or more")
        with ThreadPoolExecutor(4) as pool:
            for chunk in windows(pictures, batch):
                shown = list(pool.map(self._shown, chunk))
                whole = [pixels for pixels in shown if not isinstance(pixels, Caption)]
                told = iter(self.tell(self.see(whole), how, longest) if whole else [])
                for picture, pixels in zip(chunk, shown, strict=True):
                    self.counts["pictures"] += 1
                    if isinstance(pixels, Caption):
                        self.counts[pixels.mark] += 1
                        yield pixels
                    else:
                        answer = next(told)
                        self.counts["told"] += 1
                        self.counts["cut off"] += not answer.ended
                        yield _named(answer, _name(picture))

    def see(self, shown: Sequence[Pixels]) -> Float[Tensor, "picture cell width"]:
        """What the encoder sees of pictures as `Preprocess.shown` gives them."""
        pixels = torch.from_numpy(np.stack(shown))
        with torch.inference_mode():
            return self.model.encode(self.codec.preprocess.normalise(pixels).to(self.device))

    def tell(
        self, cells: Float[Tensor, "picture cell width"], how: Search | None = None, longest: int | None = None
    ) -> list[Caption]:
        """The captions of pictures that were seen before."""
        never = tuple({self.codec.pad, self.codec.start} - {self.codec.end})
        most = torch.full((len(cells),), longest or self.longest, device=cells.device)
        with torch.inference_mode():
            state = self.model.start(cells)
        marks = Marks(self.codec.start, self.codec.end, never)
        found = search(self.model, state, marks, most, how or self.search)
        return [self._answer(best) for best in found]

    def score(self, cells: Float[Tensor, "picture cell width"], captions: Sequence[str]) -> list[Caption]:
        """Given captions as answers: the log-probability of each token, and the score that a search would give."""
        rows = [ids[0][1:] for ids in self.codec.encode([[caption] for caption in captions])]
        gains = self.gains(cells, rows)
        told = []
        for ids, own in zip(rows, gains, strict=True):
            token_scores = tuple(own[: len(ids)].tolist())
            score = self.search.score(sum(token_scores), len(ids))
            told.append(self._told(Hypothesis(tuple(ids[:-1]), token_scores, score, True)))
        return told

    def gains(
        self, cells: Float[Tensor, "picture cell width"], rows: Sequence[Sequence[int]]
    ) -> Float[Tensor, "picture target"]:
        """The log-probability of each id of each row, the ids before it being given."""
        target, _ = pad_rows([[self.codec.start, *ids] for ids in rows], self.codec.pad)
        target = target.to(self.device)
        with torch.inference_mode():
            return word_log_probabilities(self.model.tell(cells, target[:, :-1]), self.model.output, target[:, 1:])

    def replay(
        self, cells: Float[Tensor, "picture cell width"], answers: Sequence[Caption], **which: Any
    ) -> tuple[Trace, Float[Tensor, "picture target"] | None]:
        """One traced pass with the captions given: what the model looks at while it says just this; and beta.

        Row t of a map is the step that says token t of the answer. ``which`` goes to `qkv.trace`.
        """
        inputs = [[self.codec.start, *(a.ids[:-1] if a.ids else ())] for a in answers]
        target, _ = pad_rows(inputs, self.codec.pad)
        axes = {"cells": [self.grid()] * len(answers), "target": [self._axis(row) for row in inputs]}
        with torch.inference_mode(), trace(self.model, axes=axes, **which) as seen, _betas(self.model) as betas:
            self.model.tell(cells, target.to(self.device))
        return seen, torch.cat(betas, 1)[..., 0].cpu() if betas else None

    def grid(self) -> Grid:
        """The cells of what the model reads."""
        size = self.codec.preprocess.size
        return self.model.axes(torch.empty(1, 3, *size, device="meta"))["cells"][0]

    def look(self, picture: Source, **which: Any) -> Trace:
        """Tell about a picture and replay what was returned under a trace; ``which`` goes to `qkv.trace`."""
        cells = self.see([self.codec.preprocess.shown(self.read(picture))])
        return self.look_at(cells, _named(self.tell(cells)[0], _name(picture)), **which)

    def look_at(self, cells: Float[Tensor, "1 cell width"], answer: Caption, **which: Any) -> Trace:
        """What the model looked at while it said this of a picture; the trace's notes hold the rest of what is known.

        `qkv.look.told.look_at_picture` adds the picture itself.
        """
        if looks(self.model):
            seen, betas = self.replay(cells, [answer], **which)
        else:
            seen, betas = Trace(notes={"remark": no_attention(which, INSTEAD)}), None
        tokens = self.codec.vocabulary.tokens(answer.ids)
        seen.notes.update(
            shows="told", picture=answer.picture, caption=answer.text, score=answer.score,
            token_scores=list(answer.token_scores),
            said={"pieces": list(tokens.pieces), "spans": [list(span) for span in tokens.spans], "text": tokens.text},
            ended=answer.ended, run=str(self.folder) if self.folder else "",
        )  # fmt: skip
        if betas is not None:
            seen.notes["beta"] = betas[0].tolist()
        return seen

    def read(self, picture: Source) -> Pixels:
        """The pixels of a picture, turned as it was held. Raises PictureError."""
        return picture if isinstance(picture, np.ndarray) else decode(picture, _name(picture)).pixels

    def _shown(self, picture: Source) -> Pixels | Caption:
        try:
            return self.codec.preprocess.shown(self.read(picture))
        except PictureError as error:
            return Caption("", _name(picture), mark=error.kind, wrong=str(error))

    def _answer(self, best: list[Hypothesis]) -> Caption:
        first, *others = map(self._told, best)
        return replace(first, others=tuple(others))

    def _told(self, found: Hypothesis) -> Caption:
        vocabulary = self.codec.vocabulary
        ids = (*found.tokens, self.codec.end) if found.ended else found.tokens
        text, pieces = vocabulary.decode(found.tokens), tuple(vocabulary.pieces(ids))
        return Caption(text, "", found.score, pieces, found.token_scores, ids, found.ended)

    def _axis(self, ids: Sequence[int]) -> Tokens:
        return self.codec.vocabulary.tokens(ids)


def looks(model: nn.Module) -> list[str]:
    """Names of the attention layers that look from the words into the picture."""
    layers = [(name, m) for name, m in model.named_modules() if isinstance(m, Attention)]
    return [name for name, layer in layers if layer.between == ("target", "cells")]


class _betas:
    """Hear the gate of a decoder that has one, step by step."""

    def __init__(self, model: nn.Module):
        self.gates = [m.gate for m in model.modules() if isinstance(m, GatedDecoder) and m.gate is not None]

    def __enter__(self) -> list[Float[Tensor, "picture 1 1"]]:
        heard: list[Tensor] = []
        self.handles = [gate.register_forward_hook(lambda *run: heard.append(run[2])) for gate in self.gates]
        return heard

    def __exit__(self, *_) -> None:
        for handle in self.handles:
            handle.remove()


def _name(picture: Source) -> str:
    return str(picture) if isinstance(picture, (str, Path)) else ""


def _named(answer: Caption, picture: str) -> Caption:
    return replace(answer, picture=picture, others=tuple(replace(one, picture=picture) for one in answer.others))
