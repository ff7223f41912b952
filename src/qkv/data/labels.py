"""What a classifier of texts needs beside its weights, as one folder that travels with it: vocabulary and targets."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from qkv.data.codec import fingerprint_of
from qkv.data.targets import Targets
from qkv.data.text_codec import TextCodec
from qkv.errors import RunError

__all__ = ["LabelCodec"]

FILE = "labels.json"


@dataclass(frozen=True)
class LabelCodec:
    """How texts become numbers (``text``), and what the model's numbers mean (``targets``).

    Attributes:
        longest: most pieces that a text was trained with, marks counted; what is longer is cut off.
        pair: whether there are two texts.
    """

    text: TextCodec
    targets: Targets
    longest: int
    pair: bool = False

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[tuple[list[int], list[int]]]:
        """``(ids, segments)`` of each text or pair, of at most ``longest`` ids: see `TextCodec.fit`."""
        sides = [self.text.pieces_of(side) for side in zip(*texts, strict=True)]
        return [self.text.join(*self.text.fit(row, self.longest)) for row in zip(*sides, strict=True)]

    def save(self, folder: Path) -> None:
        """Write the folder of the vocabulary, and ``labels.json`` in it."""
        self.text.save(folder)
        plain = {"version": 1, "longest": self.longest, "pair": self.pair, **asdict(self.targets)}
        (folder / FILE).write_text(json.dumps(plain, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "LabelCodec":
        """Read what `save` wrote; RunError if it is not there or not whole."""
        folder = Path(folder)
        try:
            plain = json.loads((folder / FILE).read_text(encoding="utf-8"))
            if plain.pop("version") != 1 or plain["labels"] not in ("class", "several", "number"):
                raise ValueError("it is of another version")
            longest, pair = plain.pop("longest"), plain.pop("pair")
            targets = Targets(**{**plain, "classes": tuple(plain["classes"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"the labels cannot be read ({error})",
                expected=FILE,
                remedy="copy the whole run folder again",
                file=folder,
            ) from error
        return cls(TextCodec.load(folder), targets, longest, pair)

    def fingerprint(self) -> str:
        """Equal for equal codecs."""
        return fingerprint_of(self.save)
