"""A trained encoder of texts: what it would say where something is hidden, and the one vector of each text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from qkv.data.buckets import by_length, pad_rows
from qkv.data.lines import Line, decode_line
from qkv.data.text_codec import MASK, TextCodec
from qkv.errors import ConfigError, DataError
from qkv.look.record import Trace
from qkv.models.saved import load_model
from qkv.store import json_text
from qkv.tasks.encoder_look import Reading, look_at
from qkv.tasks.settings import read_settings
from qkv.tasks.text_holes import read_holes

__all__ = ["Guess", "Near", "TextEncoder", "filled_lines"]


@dataclass(frozen=True)
class Guess:
    """What may stand in a hole: the piece, its probability, and the text with it in the hole."""

    piece: str
    probability: float
    text: str

    def __str__(self) -> str:
        return f"{self.probability:.4f}  {self.piece}  {self.text}"


@dataclass(frozen=True)
class Near:
    """A line that is near to a text: their cosine, its number from 1, and the line."""

    cosine: float
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.cosine:.4f}  {self.line}  {self.text}"


@dataclass
class TextEncoder:
    """A model with its codec. ``encoder("a [MASK] text")`` fills holes; `embed` gives a vector for each text.

    Attributes:
        model: the network, in evaluation mode.
        codec: its vocabulary.
        pool: what the vector of a text is, if not said otherwise: cls, mean or max.
        normalise: vectors have length one, if not said otherwise.
        longest: most tokens that are read of a text, marks counted.
        folder: the run it was loaded from.
        counts: what became of the lines that were embedded: "lines", "blank", "undecodable", "over-long", "cut".
    """

    model: nn.Module
    codec: TextCodec
    pool: str = "mean"
    normalise: bool = True
    longest: int = 512
    folder: Path | None = None
    counts: Counter = field(default_factory=Counter)

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None) -> "TextEncoder":
        """The encoder of a run's folder."""
        folder = Path(folder)
        model, settings = load_model(folder), read_settings(folder)
        longest = min(settings.get("longest") or model.config.longest, model.config.longest)
        pool, normalise = settings.get("pool", "mean"), settings.get("normalise", True)
        codec = TextCodec.load(folder / "codec")
        return cls(model.to(device or "cpu"), codec, pool, normalise, longest, folder)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dim(self) -> int:
        return self.model.config.dim

    def reading(self, text: str, pair: str | None = None) -> Reading:
        """A text as the model reads it, and what it would put into its holes."""
        return read_holes(self.model, self.codec, self.longest, text, pair)

    def look(self, text: str, pair: str | None = None, **which: Any) -> Trace:
        """What the model looks at while it reads a text, and what the words hang on that it puts into holes.

        ``which`` goes to `qkv.tasks.encoder_look.look_at`: layers, heads, queries, edit.
        """
        seen = look_at(self.model, self.reading(text, pair), **which)
        seen.notes["run"] = str(self.folder) if self.folder else ""
        return seen

    def __call__(self, text: str, top: int = 5) -> list[list[Guess]]:
        """See `fill`."""
        return self.fill(text, top)

    def fill(self, text: str, top: int = 5) -> list[list[Guess]]:
        """For each ``[MASK]`` in a text, the likeliest pieces there, each hole by itself.

        Probabilities are over the whole vocabulary; marks are never offered.

        Raises:
            ConfigError: the model was not trained to tell words.
            DataError: nothing is hidden, or the text is too long.
        """
        if self.model.config.head != "pretrain":
            raise ConfigError("this model has no output for words", expected="a run of: qkv train pretrain")
        encoded = self.codec.encode_holes(text)
        holes = [i for i, token in enumerate(encoded.ids) if token == self.codec.mask]
        if not holes:
            raise DataError(f"nothing is hidden in {text!r}", expected=f"{MASK} somewhere in it")
        if len(encoded) > self.longest:
            raise DataError(f"the text has {len(encoded)} tokens", expected=f"at most {self.longest}")
        tokens = torch.tensor([encoded.ids], device=self.device)
        with torch.inference_mode():
            states = self.model(tokens, torch.tensor([len(encoded)], device=self.device))
            chances = self.model.words(states[0, holes]).float().softmax(-1)
            ordinary = torch.from_numpy(self.codec.ordinary).to(self.device)
            found = chances[:, ordinary].topk(min(top, len(ordinary)))
        answers = []
        for hole, values, places in zip(holes, found.values.tolist(), found.indices, strict=True):
            begin, end = encoded.spans[hole]
            pieces = self.codec.vocabulary.pieces(ordinary[places].tolist())
            words = [self.codec.vocabulary.decode([i]) for i in ordinary[places].tolist()]
            answers.append([
                Guess(piece, value, text[:begin] + word + text[end:])
                for piece, word, value in zip(pieces, words, values, strict=True)
            ])  # fmt: skip
        return answers

    def embed(
        self,
        lines: Iterable[str | Line],
        *,
        pool: str = "",
        normalise: bool | None = None,
        window: int = 4096,
        batch_tokens: int = 8192,
    ) -> Iterator[Float[np.ndarray, "dim"]]:
        """One vector for each line, in order; memory is that of a ``window`` of lines, however many there are.

        A line that is no text has a vector of zeros; of one that is too long the beginning is read. Both are counted.

        Args:
            pool: cls, mean or max; the run's own if not given.
            normalise: divide each vector by its length.
            window: lines that are sorted by length together.
            batch_tokens: padded tokens that run at once.
        """
        numbered = enumerate(lines, start=1)
        scale = self.normalise if normalise is None else normalise
        while chunk := list(islice(numbered, window)):
            found = [line if isinstance(line, Line) else decode_line(number, line) for number, line in chunk]
            yield from self._window(found, pool or self.pool, scale, batch_tokens)

    def _window(
        self, lines: Sequence[Line], pool: str, normalise: bool, batch_tokens: int
    ) -> Float[np.ndarray, "line dim"]:
        self.counts["lines"] += len(lines)
        self.counts.update(line.unusable for line in lines if line.unusable)
        usable = [i for i, line in enumerate(lines) if not line.unusable]
        rows = self.codec.pieces_of([lines[i].text for i in usable])
        room = self.longest - 2
        self.counts["cut"] += sum(len(row) > room for row in rows)
        rows = [self.codec.join(row[:room])[0] for row in rows]
        vectors = np.zeros((len(lines), self.dim), np.float32)
        for batch in by_length([len(row) for row in rows], batch_tokens):
            tokens, lengths = (x.to(self.device) for x in pad_rows([rows[i] for i in batch], self.codec.pad))
            with torch.inference_mode():
                found = self.model.pool(self.model(tokens, lengths), lengths, pool).float()
                found = nn.functional.normalize(found, dim=-1) if normalise else found
            vectors[[usable[i] for i in batch]] = found.cpu().numpy()
        return vectors

    def nearest(
        self, texts: Sequence[str], corpus: Iterable[str | Line], top: int = 5, pool: str = "", window: int = 4096
    ) -> list[list[Near]]:
        """For each text the lines of a corpus with the highest cosine, the nearest first; the corpus is gone through
        once, a window at a time. Lines that are no text are left out.
        """
        wanted = np.stack(list(self.embed(texts, pool=pool, normalise=True))) if texts else np.zeros((0, self.dim))
        best: list[list[Near]] = [[] for _ in texts]
        numbered = enumerate(corpus, start=1)
        while chunk := list(islice(numbered, window)):
            lines = [line if isinstance(line, Line) else decode_line(number, line) for number, line in chunk]
            vectors = self._window(lines, pool or self.pool, True, 8192)
            for row, cosines in enumerate(wanted @ vectors.T):
                usable = (i for i in np.argsort(-cosines, kind="stable").tolist() if not lines[i].unusable)
                near = [Near(float(cosines[i]), lines[i].number, lines[i].text) for i in islice(usable, top)]
                best[row] = sorted([*best[row], *near], key=lambda line: -line.cosine)[:top]
        return best


def filled_lines(encoder: TextEncoder, text: str, top: int, as_json: bool = False) -> Iterator[str]:
    """The answers of `TextEncoder.fill` as lines; several holes are told apart by a line before each."""
    holes = encoder.fill(text, top)
    if as_json:
        yield json_text({"text": text, "holes": [list(map(asdict, guesses)) for guesses in holes]})
        return
    for number, guesses in enumerate(holes, start=1):
        if len(holes) > 1:
            yield f"# {MASK} {number}"
        yield from map(str, guesses)
