"""Our own vocabulary: BPE, WordPiece, unigram, words or characters, learned from the user's text.

It is unable to meet an unknown.

How it is safe by construction rather than by escaping rules:

- The marks ``<pad> <s> </s>`` are ids 0, 1, 2 and exist nowhere in the tokenizer, whose own ids are shifted by three.
  Text that looks like a mark is only text.
- The *alphabet* is printable ASCII and every character seen often enough. Any other character is spelled by its UTF-8
  bytes before the tokenizer sees it, each byte as one of the private characters U+10FF80 to U+10FFFF. Those are never
  in the alphabet, so the same characters in a user's text are spelled by their bytes too, and nothing can clash.
- A blank is part of the piece that it opens (`` the``), also before the first word of a line, so that a word has the
  same ids everywhere. Pieces therefore say everything: text and spans are read from the ids alone.
"""

import json
import random
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from qkv.axis import Tokens
from qkv.data.bpe_dropout import Merges, segment
from qkv.data.normalise import Normaliser, clean, raw_spans
from qkv.errors import ConfigError, DataError

__all__ = ["Kind", "Subwords", "default_words"]

Kind = Literal["bpe", "unigram", "word", "character", "wordpiece"]

PAD, START, END = 0, 1, 2
MARKS = ("<pad>", "<s>", "</s>")
ASCII = frozenset(map(chr, range(0x21, 0x7F)))
BYTE = 0x10FF00  # byte b is spelled chr(BYTE + b); ASCII is in every alphabet, so only 0x80 to 0xFF are needed
BYTES = tuple(chr(BYTE + byte) for byte in range(0x80, 0x100))
RARE = 3  # a character seen less often is spelled by its bytes
LONGEST = 64  # characters of a word that WordPiece looks at together: it tries every end of a piece
CHUNK = 4096  # texts handed to the tokenizer at once: its results are bulky

# A word with the blank before it; scripts apart (API는 -> API, 는), digits one by one, punctuation in runs.
WORDS = r"[ '’]?\p{Hangul}+|[ '’]?[\p{L}\p{M}&&[^\p{Hangul}]]+| ?\p{N}| ?[^ \p{L}\p{M}\p{N}]+| "


def default_words(pairs: int) -> int:
    """Vocabulary size for a corpus of so many pairs: more data can teach more pieces."""
    sizes = ((10_000_000, 32_000), (1_000_000, 16_000), (20_000, 8_000), (5_000, 4_000), (1_000, 2_000))
    return next((words for more_than, words in sizes if pairs > more_than), 1_000)


class Subwords:
    """One side's vocabulary on a `tokenizers.Tokenizer`. Build with `learn` or `load`."""

    kind = "subwords"
    pad, start, end = PAD, START, END

    def __init__(self, tokenizer, normaliser: Normaliser, pieces: Kind):
        self.tokenizer, self.normalise, self.made_of = tokenizer, normaliser, pieces
        self._pieces = [*MARKS, *("",) * tokenizer.get_vocab_size()]
        for piece, number in tokenizer.get_vocab().items():
            self._pieces[number + len(MARKS)] = piece
        self._bytes = [b"" if i < len(MARKS) else _as_bytes(piece) for i, piece in enumerate(self._pieces)]
        alphabet = {piece for piece in self._pieces[len(MARKS) :] if len(piece) == 1} - set(BYTES)
        self._foreign = _not_in(alphabet | {" "})

    @property
    def size(self) -> int:
        return len(self._pieces)

    @classmethod
    def learn(cls, texts: Iterable[str], words: int, kind: Kind = "bpe", normaliser: Normaliser | None = None):
        """Learn at most ``words`` pieces (marks, bytes and alphabet included).

        ``texts`` is gone through twice, one at a time; an iterator is read into memory first. Equal texts give an equal
        vocabulary in any process.

        Raises:
            DataError: there is no text.
            ConfigError: ``words`` has no room for the bytes and the alphabet.
        """
        normaliser = normaliser or Normaliser()
        texts = list(texts) if isinstance(texts, Iterator) else texts
        seen: Counter[str] = Counter()
        for text in texts:
            seen.update(normaliser(text))
        del seen[" "]
        if not seen:
            raise DataError("there is no text to learn a vocabulary from", remedy="run qkv check on the data")
        least = len(MARKS) + len(BYTES) + len(ASCII) + 1
        if words < least + 32:
            raise ConfigError(f"a vocabulary of {words} pieces is too small", expected=f"at least {least + 32}")
        often = [
            character
            for character, count in sorted(seen.items(), key=lambda item: (-item[1], item[0]))
            if count >= RARE and character not in ASCII and character != "▁" and ord(character) < BYTE
        ]
        room = words - least
        alphabet = ASCII.union(often[: room if kind == "character" else room // 2])
        foreign = _not_in(alphabet | {" "})
        mapped = (" " + foreign.sub(_spell, text) for text in map(normaliser, texts) if text)
        letters = [" ", *sorted(alphabet), *BYTES]
        tokenizer = _LEARN[kind](mapped, words - len(MARKS), letters)
        return cls(tokenizer, normaliser, kind)

    def encode(self, texts: Sequence[str], dropout: float = 0.0, seed: tuple[int, ...] = (0,)) -> list[list[int]]:
        """Ids of the pieces of each text, without marks; an empty text gives none.

        With ``dropout`` each BPE merge is skipped with that probability (Provilkov et al. 2020): the same text is cut
        in other ways each time, as a pure function of the texts and ``seed``.
        """
        mapped = [self._map(self.normalise(text)) for text in texts]
        if dropout:
            return self._drop(mapped, dropout, random.Random(repr(tuple(seed))))
        rows: list[list[int]] = []
        for begin in range(0, len(mapped), CHUNK):
            found = self.tokenizer.encode_batch_fast(mapped[begin : begin + CHUNK], add_special_tokens=False)
            rows.extend([i + len(MARKS) for i in encoding.ids] for encoding in found)
        return rows

    def locate(self, text: str, inside: bool = False) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids of the pieces of a text, and the ``(start, end)`` of each in the text as it was given.

        ``inside``: the text stands right after something, with no blank between.
        """
        mapped = self._map(self.normalise(text))[inside:]
        ids = [i + len(MARKS) for i in self.tokenizer.encode(mapped, add_special_tokens=False).ids]
        places = raw_spans(self.normalise, text)
        spans = self.tokens(ids).spans
        return ids, [(places[start][0], places[end - 1][1]) if end > start else (0, 0) for start, end in spans]

    def opens_word(self, i: int) -> bool:
        """Whether the piece stands at the beginning of a word."""
        return self._pieces[i].startswith(" ")

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids as one line; marks stand for nothing; bytes that are no character give U+FFFD."""
        return _one_line(b"".join([self._bytes[i] for i in ids]).decode("utf-8", errors="replace"))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What to show for each id: the blank before a word as ``▁``, a byte as ``<0xEA>``."""
        return [_show(self._pieces[i]) if i >= len(MARKS) else MARKS[i] for i in ids]

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """Pieces, spans and text of any ids, be they encoded or generated; ``text`` is ``decode(ids)``.

        A span leaves out the blank before a word. Pieces of one character's bytes share that character; a piece that
        is only a blank shares the character that it opens; a mark has an empty span where it stands.
        """
        ends, raw = [0], b""
        for i in ids:
            raw += self._bytes[i]
            ends.append(len(raw))
        text, starts = _characters(raw)
        spans = []
        for begin, end in pairwise(ends):
            first, last = bisect_right(starts, begin) - 1, bisect_left(starts, end)
            first = bisect_left(starts, begin) if begin == end else first
            spans.append((first, max(first, last)))
        kept, at = [], []  # characters that stay, and for each raw character how many stay before it
        for character in text:
            at.append(len(kept))
            kept += _kept(character, kept)
        at.append(len(kept))
        line = "".join(kept).rstrip(" ")
        shown = []
        for first, last in spans:
            begin, end = min(at[first], len(line)), min(at[last], len(line))
            if last > first and begin < end and line[begin] == " ":
                begin += 1
            if last > first and begin == end < len(line):  # only a blank
                begin, end = (begin + 1, begin + 2) if line[begin] == " " else (begin, begin + 1)
            shown.append((begin, end))
        return Tokens(tuple(self.pieces(ids)), tuple(shown), line)

    def save(self, folder: Path) -> None:
        header = {
            "version": 1,
            "made_of": self.made_of,
            "lowercase": self.normalise.lowercase,
            "strip_accents": self.normalise.strip_accents,
            "size": self.size,
        }
        (folder / "subwords.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        (folder / "tokenizer.json").write_text(self.tokenizer.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Subwords":
        from tokenizers import Tokenizer

        header = json.loads((folder / "subwords.json").read_text(encoding="utf-8"))
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
        try:
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # tokenizers raises nothing narrower
            raise ValueError(f"tokenizer.json: {error}") from error
        loaded = cls(tokenizer, Normaliser(header["lowercase"], header["strip_accents"]), header["made_of"])
        if loaded.size != header["size"]:
            raise ValueError(f"tokenizer.json has {loaded.size} pieces, subwords.json says {header['size']}")
        return loaded

    def _map(self, text: str) -> str:
        """What the tokenizer sees: a blank before the first word, characters outside the alphabet as bytes."""
        return " " + self._foreign.sub(_spell, text) if text else ""

    @cached_property
    def _merges(self) -> Merges:
        model = json.loads(self.tokenizer.to_str())["model"]
        if self.made_of != "bpe":
            raise ConfigError(f"BPE-dropout with a vocabulary of kind {self.made_of!r}", expected="kind 'bpe'")
        number = model["vocab"]
        return {
            (number[left], number[right]): (rank, number[left + right])
            for rank, (left, right) in enumerate(model["merges"])
        }

    @cached_property
    def _letters(self) -> dict[str, int]:
        return {piece: number for piece, number in self.tokenizer.get_vocab().items() if len(piece) == 1}

    def _drop(self, mapped: Iterable[str], dropout: float, chance: random.Random) -> list[list[int]]:
        merges, letters, split = self._merges, self._letters, self.tokenizer.pre_tokenizer.pre_tokenize_str
        rows = []
        for text in mapped:
            row: list[int] = []
            for word, _ in split(text):
                row += segment([letters[letter] for letter in word], merges, dropout, chance)
            rows.append([i + len(MARKS) for i in row])
        return rows


def _not_in(alphabet: Iterable[str]) -> re.Pattern[str]:
    return re.compile("[^" + "".join(map(re.escape, sorted(alphabet))) + "]")


def _spell(match: re.Match[str]) -> str:
    return "".join(chr(BYTE + byte) for byte in match[0].encode("utf-8"))


def _as_bytes(piece: str) -> bytes:
    return b"".join(bytes([ord(c) - BYTE]) if ord(c) >= BYTE else c.encode("utf-8") for c in piece)


def _show(piece: str) -> str:
    if any(ord(c) >= BYTE for c in piece):
        raw = _as_bytes(piece.lstrip(" "))
        try:
            shown = raw.decode("utf-8")
        except UnicodeDecodeError:
            shown = "".join(f"<0x{byte:02X}>" for byte in raw)
        return "▁" * piece.startswith(" ") + shown
    return piece.replace(" ", "▁")


def _characters(raw: bytes) -> tuple[str, list[int]]:
    """``raw.decode("utf-8", errors="replace")`` and the byte at which each character begins, with the end added."""
    text, starts, begin = "", [], 0
    while begin < len(raw):
        try:
            good, stop, following = raw[begin:].decode("utf-8"), len(raw), len(raw)
        except UnicodeDecodeError as error:
            stop, following = begin + error.start, begin + error.end
            good = raw[begin:stop].decode("utf-8")
        for character in good:
            starts.append(begin)
            begin += len(character.encode("utf-8"))
        text += good
        if following > stop:
            text += "\ufffd"
            starts.append(stop)
        begin = following
    return text, [*starts, len(raw)]


def _kept(character: str, before: list[str]) -> str:
    """What stays of one generated character so that the whole is one line with single blanks."""
    if character.isspace():
        return " " if before and before[-1] != " " else ""
    return character if clean(character) else ""


def _one_line(text: str) -> str:
    """`_kept` for each character, fast where nothing can go."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept: list[str] = []
    for character in text:
        kept += _kept(character, kept)
    return "".join(kept).rstrip(" ")


def _tokenizer(model):
    from tokenizers import Regex, Tokenizer, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
    return tokenizer


def _learn_bpe(mapped: Iterable[str], words: int, letters: list[str]):
    from tokenizers import models, trainers

    tokenizer = _tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=words, min_frequency=2, initial_alphabet=letters, special_tokens=[], show_progress=False
    )
    tokenizer.train_from_iterator(mapped, trainer)
    return tokenizer


def _learn_wordpieces(mapped: Iterable[str], words: int, letters: list[str]):
    """The pieces of BPE, of which the longest that fits is taken first (Wu et al. 2016, section 4.1, as in BERT)."""
    from tokenizers import Regex, models, pre_tokenizers

    vocabulary = _learn_bpe(mapped, words, letters).get_vocab()
    # No character is unknown to it, so its unknown piece never comes; a blank opens a word, so nothing else marks it.
    model = models.WordPiece(
        vocab=vocabulary, unk_token=letters[0], continuing_subword_prefix="", max_input_chars_per_word=2 * LONGEST
    )
    tokenizer = _tokenizer(model)
    pieces = pre_tokenizers.Split(Regex(f"[\\s\\S]{{1,{LONGEST}}}"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([tokenizer.pre_tokenizer, pieces])
    return tokenizer


def _learn_words(mapped: Iterable[str], words: int, letters: list[str]):
    """Whole words, most frequent first; any other word is spelled by its characters.

    A BPE without merges does just that: it takes a word that is in the vocabulary whole and cuts others into letters.
    """
    from tokenizers import models, trainers

    counter = _tokenizer(models.WordLevel())
    trainer = trainers.WordLevelTrainer(vocab_size=10 * words, min_frequency=2, special_tokens=[], show_progress=False)
    counter.train_from_iterator(mapped, trainer)
    frequent = sorted(counter.get_vocab().items(), key=lambda item: item[1])
    known = dict.fromkeys([*letters, *(word for word, _ in frequent)])
    vocabulary = {piece: number for number, piece in enumerate(known) if number < words}
    return _tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))


def _learn_characters(mapped: Iterable[str], words: int, letters: list[str]):
    from tokenizers import models

    return _tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))


def _learn_unigram(mapped: Iterable[str], words: int, letters: list[str]):
    """Learned by sentencepiece, because the trainer of tokenizers gives another vocabulary in each process."""
    from io import BytesIO

    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
    from tokenizers import models

    split = _tokenizer(models.BPE()).pre_tokenizer.pre_tokenize_str
    between = "\x1f"  # removed by `clean`, so never in the text

    def sentences() -> Iterator[str]:
        for text in mapped:
            yield between.join(word for word, _ in split(text)).replace(" ", "▁")

    model = BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=sentences(),
        model_writer=model,
        model_type="unigram",
        vocab_size=words + 1,  # with its <unk>, which we leave out
        hard_vocab_limit=False,
        character_coverage=1.0,
        required_chars="".join(letters[1:]),
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        split_by_unicode_script=False,
        split_by_number=False,
        pretokenization_delimiter=between,
        max_sentence_length=1 << 24,
        num_threads=1,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        minloglevel=2,
    )
    learned = SentencePieceProcessor(model_proto=model.getvalue())
    # Few enough digits that they are read back from JSON as the same numbers.
    scored = [
        (learned.id_to_piece(i).replace("▁", " "), round(learned.get_score(i), 4)) for i in range(1, len(learned))
    ]
    missing = set(letters) - {piece for piece, _ in scored}
    lowest = min(score for _, score in scored) - 1.0
    scored += [(letter, lowest) for letter in letters if letter in missing]
    return _tokenizer(models.Unigram(scored, unk_id=None, byte_fallback=False))


_LEARN = {
    "bpe": _learn_bpe, "unigram": _learn_unigram, "word": _learn_words, "character": _learn_characters,
    "wordpiece": _learn_wordpieces,
}  # fmt: skip
