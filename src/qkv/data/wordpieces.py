"""The WordPiece vocabulary of a published BERT, kept as it came: ``vocab.txt``, ``tokenizer.json`` and their settings.

Its maker's normalisation (capitals, accents, blanks around Chinese characters) is respected. Two things differ from
``transformers``: text that looks like a mark (``[SEP]``) is text, and Hangul is composed first and stays composed,
unless the vocabulary itself holds the single letters.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qkv.axis import Tokens
from qkv.data.normalise import clean, raw_spans
from qkv.errors import RunError

__all__ = ["FILES", "WordPieces"]

FILES = (
    "vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
MARKS = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "unknown": "[UNK]"}
OPTIONS = {  # of ``tokenizer_config.json`` -> of the normaliser
    "do_lower_case": "lowercase", "strip_accents": "strip_accents", "tokenize_chinese_chars": "handle_chinese_chars",
}  # fmt: skip
CHUNK = 4096
_JAMO = re.compile("[\u1100-\u11ff]")
_UNUSED = re.compile(r"\[unused\d+\]")


class WordPieces:
    """A published vocabulary on a `tokenizers.Tokenizer`. Make one with `read` or `load`.

    ``files`` are those that it came in, by name. ``pad``, ``cls``, ``sep``, ``mask`` and ``unknown`` are its marks.

    Raises:
        RunError: the files hold no WordPiece vocabulary, or it lacks a mark.
    """

    kind = "wordpieces"

    def __init__(self, files: Mapping[str, bytes]):
        self.files = dict(files)
        config = json.loads(files.get("tokenizer_config.json", b"{}"))
        whole = json.loads(files["tokenizer.json"]) if "tokenizer.json" in files else None
        plain = _parts(whole, config) if whole else _of_list(files["vocab.txt"], config)
        numbers = plain["model"]["vocab"]
        self.composes = not any(map(_JAMO.search, numbers))
        normaliser = plain["normalizer"]
        if self.composes and normaliser:
            plain["normalizer"] = {"type": "Sequence", "normalizers": [normaliser, {"type": "NFC"}]}
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_str(json.dumps(plain))
        added = {token["content"]: token["id"] for token in (whole or {}).get("added_tokens", ())}
        numbers = {**numbers, **added}
        self._pieces = [""] * (max(numbers.values()) + 1)
        for piece, number in numbers.items():
            self._pieces[number] = piece
        said = {name: _content(config.get(f"{'unk' if name == 'unknown' else name}_token")) for name in MARKS}
        for name, usual in MARKS.items():
            piece = said[name] or usual
            if piece not in numbers:
                raise RunError(f"the vocabulary has no {piece}", expected="the marks of a BERT: " + ", ".join(MARKS))
            setattr(self, name, numbers[piece])
        self.end = self.sep
        self._marks = {getattr(self, name) for name in MARKS}

    @property
    def size(self) -> int:
        return len(self._pieces)

    @classmethod
    def read(cls, folder: Path) -> "WordPieces":
        """Of the folder of a published model."""
        files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}
        if not {"vocab.txt", "tokenizer.json"} & files.keys():
            raise RunError("there is no vocab.txt and no tokenizer.json", file=folder)
        try:
            return cls(files)
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"the vocabulary cannot be read ({error})", file=folder) from error
        except RunError as error:
            raise RunError(str(error), file=folder) from None

    load = read

    def save(self, folder: Path) -> None:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)

    def ordinary(self) -> list[int]:
        """Ids that stand for text: no marks and no unused places."""
        return [i for i, p in enumerate(self._pieces) if i not in self._marks and p and not _UNUSED.fullmatch(p)]

    def normalise(self, text: str) -> str:
        """The text as the vocabulary sees it; unknown words stay."""
        return clean(self.tokenizer.normalizer.normalize_str(clean(text))) if self.tokenizer.normalizer else clean(text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each text, without marks; a word that has no pieces is unknown."""
        rows: list[list[int]] = []
        for begin in range(0, len(texts), CHUNK):
            cleaned = [clean(text) for text in texts[begin : begin + CHUNK]]
            rows += [found.ids for found in self.tokenizer.encode_batch_fast(cleaned, add_special_tokens=False)]
        return rows

    def locate(self, text: str, inside: bool = False) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids of the pieces of a text, and the ``(start, end)`` of each in the text as it was given.

        ``inside``, right after a mark, a word begins all the same: so it does for the vocabulary's maker.
        """
        found, places = self.tokenizer.encode(clean(text), add_special_tokens=False), raw_spans(clean, text)
        spans = [(places[start][0], places[end - 1][1]) if end > start else (0, 0) for start, end in found.offsets]
        return found.ids, spans

    def opens_word(self, i: int) -> bool:
        """Whether the piece stands at the beginning of a word."""
        return not self._pieces[i].startswith("##")

    def decode(self, ids: Sequence[int]) -> str:
        """The words of any ids; marks stand for nothing."""
        return "".join(self._shown(ids)).strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What to show for each id: ``play``, ``##ing``, ``[SEP]``."""
        return [self._pieces[i] for i in ids]

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """Pieces, spans and text of any ids; ``text`` is ``decode(ids)``."""
        text, spans = "", []
        for shown in self._shown(ids):
            shown = shown if text else shown.lstrip()
            blank = shown.startswith(" ")
            spans.append((len(text) + blank, len(text) + len(shown)))
            text += shown
        return Tokens(tuple(self.pieces(ids)), tuple(spans), text)

    def _shown(self, ids: Sequence[int]) -> list[str]:
        pieces = ["" if i in self._marks - {self.unknown} else self._pieces[i] for i in ids]
        return [piece[2:] if piece.startswith("##") else f" {piece}" if piece else "" for piece in pieces]


def _parts(whole: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What cuts text into pieces of a ``tokenizer.json``, without the marks that it would find in text."""
    if whole["model"].get("type", "WordPiece") != "WordPiece":
        raise RunError(f"the tokenizer is {whole['model']['type']}", expected="WordPiece, as BERT has it")
    normaliser = whole.get("normalizer")
    if normaliser and normaliser["type"] == "BertNormalizer":  # the settings win, as they do in transformers
        normaliser |= {ours: config[theirs] for theirs, ours in OPTIONS.items() if theirs in config}
    return {
        "version": "1.0",
        "normalizer": normaliser,
        "pre_tokenizer": whole.get("pre_tokenizer"),
        "model": whole["model"],
    }


def _of_list(vocabulary: bytes, config: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a ``vocab.txt``, which has a piece a line."""
    pieces = vocabulary.decode("utf-8").removesuffix("\n").split("\n")
    options = {"lowercase": True, "strip_accents": None, "handle_chinese_chars": True}
    options |= {ours: config[theirs] for theirs, ours in OPTIONS.items() if theirs in config}
    return {
        "version": "1.0",
        "normalizer": {"type": "BertNormalizer", "clean_text": True, **options},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": _content(config.get("unk_token")) or MARKS["unknown"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece.removesuffix("\r"): number for number, piece in enumerate(pieces)},
        },
    }


def _content(token: Any) -> str:
    """The text of a mark, which may be written as a text or as a table about it."""
    return token["content"] if isinstance(token, Mapping) else token or ""
