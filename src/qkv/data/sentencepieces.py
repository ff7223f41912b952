"""The vocabulary of a published Marian model: a SentencePiece model that cuts, and a table that numbers the pieces.

Two things differ from our own `qkv.data.subwords.Subwords`. The published table has no bytes to spell rare characters
with, so what it lacks becomes ``<unk>`` and reads ``⁇``. And a model of several target languages is told which one by
a code that begins the source text, as in ``>>fra<< Good morning``: a code of the table is one piece.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from qkv.axis import Tokens
from qkv.data.normalise import clean
from qkv.errors import RunError

__all__ = ["SentencePieces"]

PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"
UNKNOWN_SHOWN = "⁇"  # as sentencepiece shows it
BLANK = "▁"


class SentencePieces:
    """One side of a Marian model.

    Args:
        model: the bytes of a ``.spm`` file.
        numbers: id of each piece, as in ``vocab.json``.

    Raises:
        RunError: the table lacks ``<pad>``, ``</s>`` or ``<unk>``, or the file is no SentencePiece model.
    """

    kind = "sentencepiece"

    def __init__(self, model: bytes, numbers: dict[str, int]):
        missing = [mark for mark in (PAD, END, UNKNOWN) if mark not in numbers]
        if missing:
            raise RunError(f"the vocabulary has no {missing[0]}", expected="the vocab.json of a Marian model")
        try:
            self.cutter = SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise RunError(f"not a SentencePiece model ({error})", remedy="copy the .spm file again") from None
        self.model, self.numbers = model, numbers
        self.pad, self.end, self.unknown = numbers[PAD], numbers[END], numbers[UNKNOWN]
        self._pieces = [UNKNOWN] * (max(numbers.values()) + 1)
        for piece, number in numbers.items():
            self._pieces[number] = piece
        self._codes = {piece for piece in numbers if piece.startswith(">>") and piece.endswith("<<")}
        self._shown = [self._show(piece) for piece in self._pieces]

    @property
    def size(self) -> int:
        return len(self._pieces)

    def normalise(self, text: str) -> str:
        """The text as the pieces spell it: `clean`, then the SentencePiece model's own rules (often NFKC)."""
        code, text = self._split_code(clean(text))
        text = self.cutter.normalize(text).replace(BLANK, " ").strip()
        return f"{code} {text}".strip()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each text. Text that looks like a mark is text; what the table lacks is ``<unk>``."""
        codes, texts = zip(*(self._split_code(clean(text)) for text in texts), strict=True) if texts else ((), ())
        rows = self.cutter.encode(list(texts), out_type=str)
        return [
            [*([self.numbers[code]] if code else ()), *map(self._number, pieces)]
            for code, pieces in zip(codes, rows, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids as one line; marks stand for nothing, ``<unk>`` for ⁇."""
        return " ".join("".join([self._shown[i] for i in ids]).split())

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each piece as the table names it: ``▁the``."""
        return [self._pieces[i] for i in ids]

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """Pieces, and their spans in characters of ``decode(ids)``, which is the text.

        A span leaves out the blank before a word; a piece that is only a blank shares the character that it opens; a
        mark has an empty span where it stands.
        """
        text = self.decode(ids)
        spans, at = [], 0
        for i in ids:
            shown = self._shown[i]
            if shown and text[at : at + 1] == " ":
                at += 1
            begin = at
            at = min(begin + len(shown.strip()), len(text))
            only_blank = shown != "" and shown.isspace()
            spans.append((begin, min(begin + 1, len(text)) if only_blank else at))
        return Tokens(tuple(self.pieces(ids)), tuple(spans), text)

    def save(self, folder: Path) -> None:
        (folder / "pieces.spm").write_bytes(self.model)
        (folder / "vocab.json").write_text(json.dumps(self.numbers, ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "SentencePieces":
        numbers = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        return cls((folder / "pieces.spm").read_bytes(), numbers)

    def _number(self, piece: str) -> int:
        # What no piece covers comes as it was written: in the user's hands that could be the very text of a mark.
        return self.unknown if piece in (PAD, END) else self.numbers.get(piece, self.unknown)

    def _split_code(self, text: str) -> tuple[str, str]:
        """The language code that begins a text, if the table knows it, and the rest."""
        code, found, rest = text.partition("<<")
        return (code + found, rest.lstrip()) if code + found in self._codes else ("", text)

    def _show(self, piece: str) -> str:
        """What a piece adds to a text: nothing for a mark, a blank for each ▁."""
        if piece in (PAD, END):
            return ""
        if piece == UNKNOWN:
            return UNKNOWN_SHOWN
        return f"{piece} " if piece in self._codes else piece.replace(BLANK, " ")
