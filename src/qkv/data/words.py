"""The words that have vectors: a list, how often each was seen, and how text is cut into them."""

import json
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from qkv.data.codec import Codec, Vocabulary, load_vocabulary
from qkv.data.normalise import clean
from qkv.data.text_codec import TextCodec
from qkv.errors import ConfigError, DataError, RunError

__all__ = ["Cut", "Words"]


@dataclass(frozen=True)
class Cut:
    """How a line becomes words: between blanks, by a pattern, or into the pieces of a subword vocabulary."""

    pattern: str = ""
    lowercase: bool = False
    vocabulary: Vocabulary | None = None

    def __post_init__(self):
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(f"data.pattern {self.pattern!r} is no regular expression ({error})") from None

    @classmethod
    def of(cls, pattern: str = "", lowercase: bool = False, pieces: str = "") -> "Cut":
        """``pieces`` is the folder of a run whose (source) vocabulary cuts."""
        return cls(pattern, lowercase, _vocabulary_in(Path(pieces) / "codec") if pieces else None)

    @cached_property
    def _found(self) -> re.Pattern:
        return re.compile(self.pattern)

    def __call__(self, line: str) -> list[str]:
        line = clean(line)
        if self.lowercase:
            line = unicodedata.normalize("NFC", line.lower())
        if self.vocabulary:
            return self.vocabulary.pieces(self.vocabulary.encode([line])[0])
        if self.pattern:
            return [found[0] for found in self._found.finditer(line) if found[0].strip()]
        return line.split()


def _vocabulary_in(codec: Path) -> Vocabulary:
    """Of a run that pretrains, or a translator's source side.

    Raises:
        DataError: there is no vocabulary of either.
    """
    for load in (lambda: TextCodec.load(codec).vocabulary, lambda: Codec.load(codec).source):
        with suppress(RunError):
            return load()
    raise DataError("there is no vocabulary that can cut words", expected="a run of pretrain or translate", file=codec)


@dataclass(frozen=True, eq=False)
class Words:
    """The vocabulary of a table of vectors: word i has row i. There is no mark for unknown words: they have no vector.

    ``words`` is any sequence of strings; ``counts`` is int64, 0 where it is not known.
    """

    words: Sequence[str]
    counts: np.ndarray
    cut: Cut = Cut()

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def find(self, word: str) -> int | None:
        """Its row: of the word as it is, else as text is read here (composed, without capitals where they went)."""
        if (row := self.index.get(word)) is not None:
            return row
        pieces = self.cut(word)
        return self.index.get(pieces[0]) if len(pieces) == 1 else None

    def save(self, folder: Path) -> None:
        """Write ``codec.json``, ``words.txt`` (a word a line) and ``counts`` into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "words.txt").write_bytes("".join(f"{word}\n" for word in self.words).encode("utf-8", "surrogatepass"))
        np.asarray(self.counts, "<i8").tofile(folder / "counts")
        header: dict[str, Any] = {"version": 1, "kind": "words", "words": len(self.words)}
        header |= {"pattern": self.cut.pattern, "lowercase": self.cut.lowercase}
        if self.cut.vocabulary:
            header["vocabulary"] = self.cut.vocabulary.kind
            (folder / "pieces").mkdir()
            self.cut.vocabulary.save(folder / "pieces")
        (folder / "codec.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Words":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        try:
            header = json.loads((folder / "codec.json").read_text(encoding="utf-8"))
            if header["kind"] != "words" or header["version"] != 1:
                raise RunError(
                    "this codec is not of words",
                    expected="a run of vectors; a BERT goes to --encoder",
                    file=folder,
                )
            words = (folder / "words.txt").read_bytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
            counts = np.fromfile(folder / "counts", "<i8")
            if not len(words) == len(counts) == header["words"]:
                raise ValueError(f"{len(words)} words, {len(counts)} counts where {header['words']} were written")
            kind = header.get("vocabulary")
            vocabulary = load_vocabulary(kind, folder / "pieces") if kind else None
            return cls(words, counts, Cut(header["pattern"], header["lowercase"], vocabulary))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the words cannot be read ({error})", remedy="copy the whole run folder again", file=folder
            ) from error
