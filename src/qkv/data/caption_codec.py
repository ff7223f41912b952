"""What a captioner's numbers mean, as one folder that travels with it: the preprocessing, and the vocabulary."""

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qkv.data.codec import Vocabulary
from qkv.data.preprocess import Preprocess
from qkv.data.subwords import Subwords
from qkv.errors import RunError

__all__ = ["CaptionCodec"]

FILE = "codec.json"


@dataclass(frozen=True)
class CaptionCodec:
    """Pictures to numbers, and captions to numbers and back."""

    preprocess: Preprocess
    vocabulary: Vocabulary

    @property
    def start(self) -> int:
        return Subwords.start

    @property
    def end(self) -> int:
        return self.vocabulary.end

    @property
    def pad(self) -> int:
        return self.vocabulary.pad

    def encode(self, captions: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Ids of each caption of each picture: the start mark, its pieces, and exactly one end mark, at the end."""
        flat = iter(self.vocabulary.encode([caption for some in captions for caption in some]))
        return [[[self.start, *next(flat), self.end] for _ in some] for some in captions]

    def save(self, folder: Path) -> None:
        """Write ``codec.json``, ``preprocess.json`` and the vocabulary into ``folder``."""
        folder = Path(folder)
        (folder / "vocabulary").mkdir(parents=True, exist_ok=True)
        self.preprocess.save(folder)
        self.vocabulary.save(folder / "vocabulary")
        header = {"version": 1, "kind": "captions", "vocabulary": self.vocabulary.kind}
        (folder / FILE).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "CaptionCodec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        folder = Path(folder)
        try:
            header = json.loads((folder / FILE).read_text(encoding="utf-8"))
            if (header["version"], header["kind"]) != (1, "captions"):
                raise ValueError("it is no codec of captions, version 1")
            if header["vocabulary"] != Subwords.kind:
                raise ValueError(f"its vocabulary is {header['vocabulary']!r}")
            return cls(Preprocess.load(folder), Subwords.load(folder / "vocabulary"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the codec cannot be read ({error})",
                expected="codec.json, preprocess.json and the vocabulary",
                remedy="copy the whole run folder again",
                file=folder,
            ) from error

    def fingerprint(self) -> str:
        """Equal for equal codecs."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder))
            digest = hashlib.blake2b(digest_size=16)
            for file in sorted(Path(folder).rglob("*.json")):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
            return digest.hexdigest()
