"""The source of a translator as BERT reads it: ``[CLS] pieces [SEP]``, with the vocabulary of a trained encoder."""

from collections.abc import Sequence
from pathlib import Path

from qkv.axis import Tokens
from qkv.data.normalise import clean
from qkv.data.text_codec import TextCodec

__all__ = ["TextSide"]


class TextSide:
    """The vocabulary of a `TextCodec` as one side of a `qkv.data.codec.Codec`.

    Attributes:
        text: what cuts text into pieces and knows the marks.
        pad, end: ids of [PAD] and [SEP].
        before: ids that come before every text: [CLS].
    """

    kind = "texts"

    def __init__(self, text: TextCodec):
        self.text = text
        self.pad, self.before, self.end = text.pad, (text.cls,), text.sep

    @property
    def size(self) -> int:
        return self.text.size

    def normalise(self, text: str) -> str:
        """The text as one clean line; what is made of its capitals and accents is seen in the pieces only."""
        return clean(text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each text, without marks."""
        return self.text.pieces_of(texts)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, as far as the vocabulary has kept it; marks stand for nothing."""
        return self.text.decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What to show for each id: ``play``, ``##ing``, ``[SEP]``."""
        return self.text.shown(ids)

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """The pieces, their spans in ``decode(ids)``, and that text; of a text that is known, `axis` knows more."""
        plain = self.text.vocabulary.tokens(ids)
        return Tokens(tuple(self.pieces(ids)), plain.spans, plain.text)

    def axis(self, text: str) -> Tokens:
        """What each position of a text with its marks is, with spans in the text itself."""
        return self.text.axis(self.text.encode(text), text)

    def save(self, folder: Path) -> None:
        self.text.save(folder)

    @classmethod
    def load(cls, folder: Path) -> "TextSide":
        return cls(TextCodec.load(folder))
