"""Text to numbers and back, for both sides of a translator, as one folder that travels with the model.

A `Vocabulary` serves one side. Ours is `qkv.data.subwords.Subwords`; published models bring their own through the same
protocol. A `Codec` holds the two sides (the same object when the vocabulary is joint) and the id that starts a target.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, runtime_checkable

from qkv.axis import Tokens
from qkv.errors import RunError

__all__ = ["VOCABULARIES", "Codec", "Vocabulary", "fingerprint_of", "load_vocabulary"]

# What `codec.json` may name. A literal table, so that opening a folder from elsewhere can load no other code.
VOCABULARIES = {
    "subwords": "qkv.data.subwords:Subwords",
    "sentencepiece": "qkv.data.sentencepieces:SentencePieces",
    "wordpieces": "qkv.data.wordpieces:WordPieces",
    "texts": "qkv.data.text_side:TextSide",
}


@runtime_checkable
class Vocabulary(Protocol):
    """The pieces of one side. Ids count from 0 to ``size - 1``, the marks ``pad`` and ``end`` among them.

    Laws: ``decode(encode([text])[0]) == normalise(text)``; no mark ever comes out of ``encode``; nothing is unknown.
    """

    kind: str  # its name in VOCABULARIES
    pad: int
    end: int

    @property
    def size(self) -> int: ...

    def normalise(self, text: str) -> str:
        """The text as the vocabulary sees it: one line; what `decode` gives back and spans count in."""
        ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each text, without marks."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids as one line; marks stand for nothing; bytes that are no character give U+FFFD."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What to show for each id: ``▁the``, ``<0xEA>``, ``</s>``."""
        ...

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """The pieces, their spans in characters of ``decode(ids)``, and that text. See `Subwords.tokens`."""
        ...

    def save(self, folder: Path) -> None: ...

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary": ...


@dataclass(frozen=True, eq=False)
class Codec:
    """Both sides of a translator.

    ``start`` is the id that begins every target: ours is ``<s>``; Marian's is its pad, the lectures' its ``</s>``.
    """

    source: Vocabulary
    target: Vocabulary
    start: int

    @property
    def joint(self) -> bool:
        """Whether both sides are one vocabulary, so that their embeddings can be tied."""
        return self.source is self.target

    @property
    def pad(self) -> int:
        return self.target.pad

    @property
    def end(self) -> int:
        return self.target.end

    def source_row(self, ids: Sequence[int]) -> list[int]:
        """What the encoder reads of a text's pieces: one end mark after them, and [CLS] before them if it has one."""
        return [*getattr(self.source, "before", ()), *ids, self.source.end]

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """What the encoder reads of each text; see `source_row`."""
        return [self.source_row(ids) for ids in self.source.encode(texts)]

    def source_axis(self, text: str, row: Sequence[int]) -> Tokens:
        """What each id of a text's row is, in characters of the text itself, or of what the vocabulary kept of it."""
        return self.source.axis(text) if hasattr(self.source, "axis") else self.source.tokens(row)

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """What the decoder learns of each text: ``start``, its pieces, and exactly one end mark, at the end."""
        return [[self.start, *ids, self.target.end] for ids in self.target.encode(texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """The target text of ids that a decoder gave; marks are left out."""
        return self.target.decode([i for i in ids if i != self.start])

    def save(self, folder: Path) -> None:
        """Write ``folder`` (the run's ``codec/``), replacing one that is there."""
        folder = Path(folder)
        beside = folder.with_name(folder.name + ".partial")
        shutil.rmtree(beside, ignore_errors=True)
        sides = {"joint": self.source} if self.joint else {"source": self.source, "target": self.target}
        for side, vocabulary in sides.items():
            (beside / side).mkdir(parents=True)
            vocabulary.save(beside / side)
        header = {"version": 1, "start": self.start, "sides": {side: v.kind for side, v in sides.items()}}
        (beside / "codec.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        for file in beside.rglob("*"):
            if file.is_file():
                with open(file, "rb") as written:
                    os.fsync(written.fileno())
        before = folder.with_name(folder.name + ".old")
        shutil.rmtree(before, ignore_errors=True)
        if folder.exists():
            folder.rename(before)
        beside.rename(folder)
        shutil.rmtree(before, ignore_errors=True)

    @classmethod
    def load(cls, folder: Path) -> "Codec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        folder = Path(folder)
        try:
            header = json.loads((folder / "codec.json").read_text(encoding="utf-8"))
            if header["version"] != 1:
                raise RunError(f"codec version {header['version']!r}", expected="version 1", file=folder)
            sides = {side: load_vocabulary(kind, folder / side) for side, kind in header["sides"].items()}
            source, target = (sides["joint"],) * 2 if "joint" in sides else (sides["source"], sides["target"])
            return cls(source, target, int(header["start"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the codec cannot be read ({error})",
                expected="codec.json and the vocabularies beside it",
                remedy="copy the whole run folder again",
                file=folder,
            ) from error

    def fingerprint(self) -> str:
        """Equal for equal codecs: what encoded data is keyed by."""
        return fingerprint_of(self.save)


def fingerprint_of(save: Callable[[Path], None]) -> str:
    """Of all that ``save`` writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "codec")
        digest = hashlib.blake2b(digest_size=16)
        for file in sorted((Path(folder) / "codec").rglob("*")):
            if file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()


def load_vocabulary(kind: str, folder: Path) -> Vocabulary:
    """The vocabulary that its ``save`` left in a folder."""
    module, _, name = VOCABULARIES[kind].partition(":")
    return getattr(import_module(module), name).load(folder)
