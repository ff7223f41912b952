"""A grammar of Korean-English sentence pairs with their gold word alignment: the sample data that ships with qkv.

A **template** says the same thing in both languages, side by side:

    past_not    {who:는} {deed:지} 않았-    {who} did~12 not=2~1 {deed}~2

`{slot:form}` is filled from the lexicon and inflected: `{who:는}` takes the topic particle that its last syllable
asks for (민수는, 지영은), `{deed:지}` is a whole predicate with its object (책을 읽지). The final `-` takes the ending
of the sentence (습니다, 습니까, or 고 and 지만 where another clause follows). Words of a slot are linked to the Korean
words of that slot; the others carry their links: `=2` is a **sure** link to the third word of the Korean template,
`~12` are **possible** links to the second and third. So the template above gives

    민수는 책을 읽지 않았습니다.
    Minsu did not read a book.
    0-0 1p4 1-5 2p1 2p2 2-3 3p1 3-2 3p3

written as pairs Korean-English: sure links (`-`) join content words, possible links (`p`) articles, auxiliaries and
prepositions to the words that carry their meaning. Words are split at blanks, so a particle belongs to its noun and
punctuation to the word before it.

The translation is a function: what English must say and Korean does not (article, number, tense, person) follows from
the lexicon (빵 "bread", 사과 "an apple", 문 "the door"), from the determiner (그 "the") or from the ending.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from qkv.data import phrases_lexicon as lexicon
from qkv.data.phrases_lexicon import Adjective, Expression, Noun, Predicate, Verb

LONGEST = 40  # English words in a sentence of several clauses
LONGEST_CLAUSE = 10  # English words in a sentence of one clause


@dataclass(frozen=True)
class Phrase:
    """A sentence pair and its word alignment; links are (Korean word index, English word index)."""

    korean: str
    english: str
    sure: tuple[tuple[int, int], ...]
    possible: tuple[tuple[int, int], ...]  # further links, disjoint from `sure`
    template: str

    @property
    def pharaoh(self) -> str:
        """The alignment as one line of text, "0-0 1p2": `-` a sure link, `p` a possible one."""
        links = sorted([(*link, "-") for link in self.sure] + [(*link, "p") for link in self.possible])
        return " ".join(f"{korean}{kind}{english}" for korean, english, kind in links)


@dataclass(frozen=True)
class Splits:
    """Pairs to train on, to choose by and to report on; no sentence of either language is in two of them."""

    train: tuple[Phrase, ...]
    dev: tuple[Phrase, ...]
    test: tuple[Phrase, ...]


# --- Korean: syllables, particles, endings --------------------------------------------------------------------------

FINALS = {"ㄴ": 4, "ㄹ": 8, "ㅂ": 17, "ㅆ": 20}  # final consonants by their place in the Hangul block
PARTICLES = {  # after a final consonant, after a vowel
    "는": ("은", "는"),
    "가": ("이", "가"),
    "를": ("을", "를"),
    "와": ("과", "와"),
    "로": ("으로", "로"),
    "였": ("이었", "였"),  # was: not a particle, but chosen like one
}
HONORIFIC_PARTICLES = {"는": "께서는", "가": "께서", "에게": "께"}


def final_consonant(word: str) -> int:
    """The number of the last syllable's final consonant (batchim), 0 where it ends in a vowel."""
    return (ord(word[-1]) - ord("가")) % 28


def with_final(word: str, consonant: str) -> str:
    """`word`, which ends in a vowel, with a final consonant: 가, ㅂ -> 갑."""
    return word[:-1] + chr(ord(word[-1]) + FINALS[consonant])


def with_particle(noun: str, particle: str) -> str:
    """The noun with the form of the particle that its last syllable asks for: 책, 를 -> 책을; 칼, 로 -> 칼로."""
    if noun == "저" and particle in ("가", "의"):
        return {"가": "제가", "의": "제"}[particle]
    after_consonant, after_vowel = PARTICLES.get(particle, (particle, particle))
    final = final_consonant(noun)
    if particle == "로" and final == FINALS["ㄹ"]:
        final = 0
    return noun + (after_consonant if final else after_vowel)


def honorific(predicate: Predicate) -> Predicate:
    """The predicate with -(으)시-: 가르치다 -> 가르치시다; 먹다 -> 드시다."""
    stem = lexicon.HONORIFIC_STEMS.get(predicate.stem, predicate.open + "시")
    return Predicate(stem, stem, stem[:-1] + "셔")


def conjugate(predicate: Predicate, form: str) -> str:
    """A form of a verb or adjective.

    `now` and `past` are stems that still want an ending (읽-, 읽었-; see `finish`), the other forms are whole words
    named after their ending. A form with 시 in front is the honorific one; with 높 in front only the verbs whose
    honorific is a word of its own change (드시고, but 가르치고).
    """
    if form.startswith("시"):
        return conjugate(honorific(predicate), form[1:])
    if form.startswith("높"):
        has_own_word = predicate.stem in lexicon.HONORIFIC_STEMS
        return conjugate(honorific(predicate) if has_own_word else predicate, form[1:])
    stem, open_, inf = predicate.stem, predicate.open, predicate.inf
    match form:
        case "now":
            return stem
        case "past":
            return with_final(inf, "ㅆ")
        case "지" | "고" | "기":
            return stem + form
        case "past기":
            return with_final(inf, "ㅆ") + "기"
        case "ㄹ" | "ㄴ":
            return with_final(open_, form)
        case "ㅂ시다":
            return with_final(open_, "ㅂ") + "시다"
        case "세요":
            return open_ + form
        case "면" | "러":  # the two (으)-endings that keep a final ㄹ: 만들면
            return (stem if final_consonant(stem) == FINALS["ㄹ"] else open_) + form
        case "야" | "도":
            return inf + form
    raise ValueError(f"unknown form: {form}")


def finish(stem: str, ending: str) -> str:
    """The stem with an ending that may follow any stem: 읽+습니다, 가+습니다 -> 갑니다, 살+습니다 -> 삽니다."""
    if not ending.startswith("습니"):
        return stem + ending
    final = final_consonant(stem)
    if final == FINALS["ㄹ"]:
        stem, final = stem[:-1] + chr(ord(stem[-1]) - final), 0
    return stem + ending if final else with_final(stem, "ㅂ") + ending[1:]


# --- English: articles and agreement --------------------------------------------------------------------------------

FUNCTION_WORDS = frozenset(["a", "an", "the", "in", "at", "on", "to", "of", "by", "with", "for"])
DEMONSTRATIVES = {"그": ("the", "the"), "이": ("this", "these"), "저": ("that", "those")}
POSSESSIVES = {"제": "my", "우리": "our"}
AGREEMENT = {  # by subject: I, plural, third person singular
    "be": ("am", "are", "is"),
    "was": ("was", "were", "was"),
    "do": ("do", "do", "does"),
    "have": ("have", "have", "has"),
    "want": ("want", "want", "wants"),
}
FIRST, PLURAL, THIRD = range(3)


def article(word: str) -> str:
    """a or an, by the sound that the word begins with."""
    return "an" if word[0] in "aeiou" and not word.startswith(("uni", "use")) else "a"


def third_person(verb: str) -> str:
    """The -s form of a verb."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


# --- What fills a slot ----------------------------------------------------------------------------------------------


class Word(NamedTuple):
    """An English word and its links to the Korean words of its slot, counted from the slot's first."""

    text: str
    sure: frozenset[int] = frozenset()
    possible: frozenset[int] = frozenset()
    head: bool = False  # takes the links that the template gives to the slot


def linked(text: str, *korean: int, head: bool = False) -> Word:
    """A word linked to Korean words: possibly where it is a function word, surely where not."""
    links = frozenset(korean)
    return Word(text, possible=links, head=head) if text in FUNCTION_WORDS else Word(text, links, head=head)


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what stands before it, in Korean order: 이 / 제 / 민수의, adjective, noun, number and counter."""

    noun: Noun
    determiner: str = ""  # Korean: a key of DEMONSTRATIVES or POSSESSIVES
    owner: Noun | None = None
    adjective: tuple[str, str] | None = None  # before a noun: (Korean, English)
    number: tuple[str, str] | None = None  # two or more: (세, three)
    generic: bool = False  # bare, and plural in English: "I like apples"
    preposition: str = ""  # of a place: at, in, on

    def korean(self, particle: str) -> list[str]:
        words = [self.determiner] if self.determiner else []
        words += [with_particle(self.owner.korean, "의")] if self.owner else []
        words += [self.adjective[0]] if self.adjective else []
        words += [self.noun.korean]
        words += [self.number[0], self.noun.counter] if self.number else []
        if self.noun.honorific:
            particle = HONORIFIC_PARTICLES.get(particle, particle)
        return [*words[:-1], with_particle(words[-1], particle)] if particle else words

    @property
    def agreement(self) -> int:
        if "first" in self.noun.classes:
            return FIRST
        plural = self.noun.always_plural or "several" in self.noun.classes or (self.generic and self.noun.plural)
        return PLURAL if plural or self.number else THIRD

    def english(self, form: str, _agreement: int = THIRD) -> list[Word]:
        """`form` is "" or: bare (no determiner), the, at and to (places), again (see below)."""
        at_noun = len(self.korean("")) - 1 - (2 if self.number else 0)
        if form == "again":  # a pronoun that Korean says once
            return [Word(self.noun.english, possible=frozenset([0]))]
        if form in ("at", "to"):
            if self.noun.english == "home" and form == "to":
                return [linked("home", at_noun, head=True)]
            preposition = self.preposition if form == "at" else "to"
            return [linked(preposition, at_noun), *self.english("")]
        plural = self.agreement == PLURAL
        nouns = (self.noun.plural if plural and self.noun.plural else self.noun.bare).split()
        words = [linked(word, at_noun, head=True) for word in nouns]
        if self.number:
            number = linked(self.number[1], at_noun + 1)
            if measure := lexicon.MEASURES.get(self.noun.korean):  # two cups of coffee
                return [number, linked(measure, at_noun + 2), linked("of", at_noun, at_noun + 2), *words]
            counter = frozenset([at_noun + 2])
            return [number._replace(possible=counter), *(word._replace(possible=counter) for word in words)]
        if self.adjective:
            words = [linked(self.adjective[1], at_noun - 1), *words]
        return words if form == "bare" else [*self._determiner(form, words, at_noun), *words]

    def _determiner(self, form: str, words: list[Word], at_noun: int) -> list[Word]:
        plural = self.agreement == PLURAL
        if form == "the":
            return [linked("the", at_noun)]
        if self.determiner in DEMONSTRATIVES:
            word = linked(DEMONSTRATIVES[self.determiner][plural], 0)  # "the" possibly, this and that surely
            return [word._replace(possible=word.possible | {at_noun})]
        if self.determiner:
            return [linked(POSSESSIVES[self.determiner], 0)]
        if self.owner:
            *before, last = self.owner.english.split()
            return [*(linked(word, 0) for word in before), linked(f"{last}'s", 0)]
        if self.noun.article == "the":
            return [linked("the", at_noun)]
        if not self.noun.article or plural:
            return []
        return [linked(article(words[0].text), at_noun)]


@dataclass(frozen=True)
class Deed:
    """A verb with its object, if any: 책을 읽다, "read a book"."""

    verb: Verb
    what: NounPhrase | None = None

    def korean(self, form: str) -> list[str]:
        return [*(self.what.korean("를") if self.what else []), conjugate(self.verb.korean, form)]

    def english(self, form: str, agreement: int = THIRD) -> list[Word]:
        at_verb = len(self.what.korean("를")) if self.what else 0
        first, *rest = self.verb.english.split()
        if form == "s" and agreement == THIRD:
            first = third_person(first)
        first = {"ed": self.verb.past, "ing": self.verb.ing}.get(form, first)
        verb = [linked(first, at_verb, head=True), *(linked(word, at_verb) for word in rest)]
        what = [word._replace(head=False) for word in self.what.english("")] if self.what else []
        return [*verb, *what]


@dataclass(frozen=True)
class Rain:
    """비가 오다, "rain": one English word for two Korean ones."""

    noun: str
    verb: Verb

    def korean(self, form: str) -> list[str]:
        return [with_particle(self.noun, "가"), conjugate(self.verb.korean, form)]

    def english(self, form: str, _agreement: int = THIRD) -> list[Word]:
        return [linked(self.verb.past if form == "ed" else self.verb.english, 0, 1, head=True)]


@dataclass(frozen=True)
class Quality:
    """An adjective as predicate; `form` of English: "", er, est (without more and most)."""

    adjective: Adjective

    def korean(self, form: str) -> list[str]:
        return [conjugate(self.adjective.korean, form)]

    def english(self, form: str, _agreement: int = THIRD) -> list[Word]:
        words = {"er": self.adjective.comparative, "est": self.adjective.superlative}.get(form, self.adjective.english)
        return [linked(words.split()[-1], 0, head=True)]


@dataclass(frozen=True)
class Fixed:
    """A fixed expression; its English words carry links (see `annotated`) or link to all of its Korean words."""

    expression: Expression
    agreement = THIRD

    def korean(self, form: str) -> list[str]:
        *words, last = self.expression.korean.split()
        return [*words, with_particle(last, form) if form else last]

    def english(self, _form: str, _agreement: int = THIRD) -> list[Word]:
        last = len(self.expression.korean.split()) - 1
        words = []
        for token in self.expression.english.split():
            text, sure, possible = annotated(token)
            words.append(Word(text, sure, possible, True) if sure or possible else linked(text, last, head=True))
        return words


Filler = NounPhrase | Deed | Rain | Quality | Fixed


def annotated(token: str) -> tuple[str, frozenset[int], frozenset[int]]:
    """A token's text, sure links and possible links: "not=2~01" -> not, {2}, {0, 1}."""
    text, sure, possible = re.fullmatch(r"([^=~]+)(?:=(\d+))?(?:~(\d+))?", token).groups(default="")
    return text, frozenset(map(int, sure)), frozenset(map(int, possible))


# --- Templates ------------------------------------------------------------------------------------------------------


class KoreanWord(NamedTuple):
    """A word of a Korean template: a slot and its form, or a literal; `ending` if a predicate's ending goes here."""

    slot: str
    form: str
    literal: str
    ending: bool


class EnglishWord(NamedTuple):
    """A word of an English template, with its links to words of the Korean template."""

    slot: str
    form: str
    literal: str
    sure: frozenset[int]
    possible: frozenset[int]


SLOT = re.compile(r"(?:{(\w+):?(\w*)})?([^-]*)(-?\??)")


@dataclass(frozen=True)
class Template:
    """A template, taken apart."""

    name: str
    group: str
    korean: tuple[KoreanWord, ...]
    english: tuple[EnglishWord, ...]
    question: bool

    @classmethod
    def read(cls, name: str, group: str, korean: str, english: str) -> Template:
        left = [SLOT.fullmatch(word).groups(default="") for word in korean.split()]
        right = [annotated(word) for word in english.split()]
        return cls(
            name,
            group,
            tuple(KoreanWord(slot, form, literal, bool(end)) for slot, form, literal, end in left),
            tuple(EnglishWord(*SLOT.fullmatch(text).groups(default="")[:3], *links) for text, *links in right),
            korean.endswith("?"),
        )

    @cached_property
    def mentions(self) -> frozenset[str]:
        """The names of all its slots."""
        return frozenset(word.slot for word in (*self.korean, *self.english)) - {""}

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The slots to fill, in order: subjects first, so that the others are someone else."""
        found = self.mentions - {*AGREEMENT, "more", "most"}
        return tuple(sorted(found, key=lambda slot: (slot not in (*PERSON_SHARES, "elder") or slot == "friend", slot)))

    @cached_property
    def subject(self) -> str:
        """The slot that the English verb agrees with: the first topic or subject of the Korean, or none."""
        return next((word.slot for word in self.korean if word.slot and word.form in ("는", "가")), "")


@cache
def templates() -> tuple[tuple[Template, ...], dict[str, float]]:
    """All templates, and the weight of each by its name."""
    found, weights, group, weight = [], {}, "", 0.0
    for row in lexicon.rows(lexicon.TEMPLATES):
        if heading := re.fullmatch(r"\[(\w+) ([\d.]+)\]", row[0]):
            group, weight = heading[1], float(heading[2])
        else:
            name, korean, english = row
            found.append(Template.read(name, group, korean, english))
            weights[name] = weight
    return tuple(found), weights


# --- Filling the slots ----------------------------------------------------------------------------------------------

COUNTED = frozenset(  # verbs whose object may have a number
    [
        *("먹", "마시", "읽", "쓰", "사", "팔", "그리", "만들", "심", "받", "보내"),
        *("씻", "빌리", "고치", "굽", "가져오", "잃어버리", "옮기", "깨"),
    ]
)
OWNED_CLASSES = frozenset(["small", "goods", "clothes", "shoes", "vehicle", "pet"])
COLOURS = "빨갛 파랗 하얗 까맣"
CONTRASTS = (  # adjectives that do not go together
    *("크 작", "비싸 싸", "무겁 가볍", "길 짧", "재미있 지루하", "어렵 쉽", "뜨겁 차갑", "깨끗하 더럽"),
    *("조용하 시끄럽", "빠르 느리", "부지런하 게으르", "달 짜 맵", COLOURS),
)


@cache
def expressions(table: str) -> tuple[Fixed, ...]:
    return tuple(Fixed(Expression(*row)) for row in lexicon.rows(table))


@cache
def numbers() -> list[tuple[str, str]]:
    """(한, one), (두, two), ..."""
    return [(korean, english) for korean, english in lexicon.rows(lexicon.NUMBERS)]


@cache
def nouns_of(*classes: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in lexicon.NOUNS.values() if set(classes) & set(noun.classes))


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that make sense with a noun; people share the adjectives of "person"."""
    wanted = {noun.korean, "person"} if "human" in noun.classes else {noun.korean}
    return tuple(adjective for adjective in lexicon.ADJECTIVES if wanted & set(adjective.nouns))


@cache
def attributes_of(noun: Noun) -> tuple[tuple[str, str], ...]:
    """What may stand before a noun: (큰, big), (새, new), ..."""
    inflected = tuple((adjective.attributive, adjective.english) for adjective in adjectives_of(noun))
    return inflected + tuple(
        (korean, english) for korean, english, nouns in lexicon.ONLY_BEFORE_NOUNS if noun.korean in nouns
    )


@cache
def others_of(first: Adjective, noun: str) -> tuple[Adjective, ...]:
    """What else may be said of a noun (or of a "person") of which the first adjective is true."""
    stem = first.korean.stem
    unfit = {stem}.union(*(words.split() for words in CONTRASTS if stem in words.split()))
    return tuple(
        adjective for adjective in lexicon.ADJECTIVES if noun in adjective.nouns and adjective.korean.stem not in unfit
    )


# How slots are drawn: the kinds of people by their shares, the verbs, the expressions, ...
PERSON_SHARES = {
    "who": {"저 우리 그 그녀 그들": 30, "name": 38, "kin": 12, "person": 12, "group": 8},
    "other": {"그 그녀 그들": 20, "name": 45, "kin": 15, "person": 15, "group": 5},
    "someone": {"저 그 그녀": 25, "name": 50, "kin": 25},
    "friend": {"name": 70, "kin": 30},
    "praised": {"name": 60, "kin": 25, "person": 15},
    "person": {"person": 1},
    "pronoun": {"저 우리 그 그녀 그들": 1},
    "me": {"저 우리": 1},
}
DEED_STEMS = {
    "deed": tuple(lexicon.VERBS),
    "plan": tuple(stem for stem in lexicon.VERBS if stem not in lexicon.EVENTS),
    "task": tuple(lexicon.COMMON_VERBS),  # one can be asked to do it, and does it often
}
BARE_VERBS = {"like": lexicon.LIKING, "live": lexicon.LIVING, "give": lexicon.GIVING, "work": (lexicon.VERBS["일하"],)}
QUALITIES = {"mood": lexicon.MOODS, "weather": lexicon.WEATHERS}
PLACE_CLASSES = {"public": "public", "city": "city", "room": "room"}
EXPRESSION_TABLES = {
    "then": (lexicon.PAST_TIMES, lexicon.ANY_TIMES),
    "soon": (lexicon.FUTURE_TIMES, lexicon.ANY_TIMES),
    "habit": (lexicon.HABITS,),
    "often": (lexicon.FREQUENCIES,),
    "degree": (lexicon.DEGREES,),
    "side": (lexicon.SIDES,),
}


class Scene:
    """What one clause is about: draws a filler for each slot of a template, so that together they make sense.

    A slot is filled once, from the tables above or by the method of its name; methods look at each other's fillers
    (`self["deed"]`), at the slots that the template has (`self.wants`) and at who has been named (`self.cast`).
    """

    def __init__(self, draw: random.Random, wants: frozenset[str]):
        self.draw = draw
        self.wants = wants
        self.fillers: dict[str, Filler] = {}
        self.cast: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()  # verb and object, as (stem, noun)

    def __getitem__(self, slot: str) -> Filler:
        if slot not in self.fillers:
            self.fillers[slot] = self._filler(slot)
        return self.fillers[slot]

    def _filler(self, slot: str) -> Filler:
        if slot in PERSON_SHARES:
            return self._someone(PERSON_SHARES[slot])
        if slot in DEED_STEMS:
            return self._deed(DEED_STEMS[slot])
        if slot in EXPRESSION_TABLES:
            return self.draw.choice(expressions(self.draw.choice(EXPRESSION_TABLES[slot])))
        if slot in PLACE_CLASSES:
            return self._place(noun.korean for noun in nouns_of(PLACE_CLASSES[slot]))
        if slot in BARE_VERBS:
            return Deed(self.draw.choice(BARE_VERBS[slot]))
        if slot in QUALITIES:
            return Quality(self.draw.choice(QUALITIES[slot]))
        return getattr(self, slot)()

    # People

    def _cast(self, people: Iterable[Noun]) -> Noun:
        noun = self.draw.choice([person for person in people if person.korean not in self.cast])
        self.cast.add(noun.korean)
        return noun

    def _someone(self, shares: dict[str, int]) -> NounPhrase:
        """A person of a kind drawn by its share: name, kin, person, group, or pronouns by their Korean."""
        kind = self.draw.choices(list(shares), list(shares.values()))[0]
        match kind:
            case "name":
                return NounPhrase(self._cast(lexicon.NAMES))
            case "kin":
                return NounPhrase(self._cast(lexicon.KIN), "제")
            case "group":
                return NounPhrase(self._cast(lexicon.GROUPS))
            case "person":
                return NounPhrase(self._cast((*lexicon.PEOPLE, *lexicon.FOLK)), self.draw.choice("그그이저"))
        return NounPhrase(self._cast(noun for noun in lexicon.PRONOUNS if noun.korean in kind.split()))

    def elder(self) -> NounPhrase:
        return NounPhrase(self._cast(lexicon.ELDERS))

    def job(self) -> NounPhrase:
        noun = self._cast(lexicon.PEOPLE)
        adjective = self.draw.choice(attributes_of(noun)) if self.draw.random() < 0.3 else None
        return NounPhrase(noun, adjective=adjective)

    # Deeds

    def local(self) -> Deed:
        """A deed that one goes somewhere to do."""
        return self._deed([stem for stem in lexicon.VERBS if set(lexicon.VERBS[stem].places) & set(SITES)])

    def second(self) -> Deed:
        return self._deed([stem for stem in lexicon.COMMON_VERBS if stem != self["task"].verb.korean.stem])

    def act(self) -> Deed:
        """Something to do when one is sick, sad or busy."""
        return Deed(lexicon.VERBS[self.draw.choice(["자", "쉬", "울"])])

    def _deed(self, stems: Iterable[str]) -> Deed:
        if "manner" in self.wants:
            stems = [stem for stem in stems if stem in MANNER_STEMS]
        if "tool" in self.wants:
            stems = [stem for stem in stems if any(stem in served for served in lexicon.TOOLS.values())]
        if "where" in self.wants:
            stems = [stem for stem in stems if lexicon.VERBS[stem].places]
        if "verb" in self.wants:
            stems = [stem for stem in stems if lexicon.VERBS[stem].objects]
        verb = lexicon.VERBS[self.draw.choice(list(stems))]
        return Deed(verb, self._object(verb) if verb.objects else None)

    def _done(self) -> Deed:
        return next(self[slot] for slot in DEED_STEMS if slot in self.wants)

    def _object(self, verb: Verb) -> NounPhrase:
        korean = self.draw.choice(verb.objects)
        if korean == "person":
            return self._someone(PERSON_SHARES["friend"])
        self.pairs.add((verb.korean.stem, korean))
        return self._described(lexicon.NOUNS[korean], counted=verb.korean.stem in COUNTED)

    def _described(self, noun: Noun, counted: bool = False) -> NounPhrase:
        """The noun as it is (mostly), or with a determiner, an owner, an adjective or a number."""
        chance = self.draw.random()
        if chance < 0.6 or "fixed" in noun.classes:
            return NounPhrase(noun)
        if chance < 0.72:
            return NounPhrase(noun, self.draw.choice("그그이"))
        if chance < 0.8 and OWNED_CLASSES & set(noun.classes):
            return self._owned(noun)
        if chance < 0.9 and attributes_of(noun):
            return NounPhrase(noun, adjective=self.draw.choice(attributes_of(noun)))
        if counted and noun.counter:
            return self._numbered(noun)
        return NounPhrase(noun)

    def _owned(self, noun: Noun) -> NounPhrase:
        if self.draw.random() < 0.4:
            return NounPhrase(noun, self.draw.choice(["제", "우리"]))
        return NounPhrase(noun, owner=self._cast((*lexicon.NAMES, *lexicon.ELDERS)))

    def _numbered(self, noun: Noun) -> NounPhrase:
        return NounPhrase(noun, number=self.draw.choice(numbers()[1:]))

    def verb(self) -> Deed:
        return Deed(self["deed"].verb)

    def what(self) -> NounPhrase:
        return self["deed"].what

    def go(self) -> Deed:
        # of elders 돌아가시다 means to pass away, and nobody returns every day
        come_and_go, verbs = lexicon.GOING[:2], lexicon.GOING
        return Deed(self.draw.choice(come_and_go if self.wants & {"elder", "habit", "local", "pronoun"} else verbs))

    def gift(self) -> NounPhrase:
        noun = self.draw.choice([noun for noun in nouns_of("common") if "small" in noun.classes])
        self.pairs.add(("주", noun.korean))
        return self._described(noun, counted=True)

    def liked(self) -> NounPhrase:
        classes = ["fruit", "vegetable", "dish", "drink", "animal", "sport", "subject", "film", "music"]
        return NounPhrase(self.draw.choice(nouns_of(*classes)), generic=True)

    def rain(self) -> Rain:
        come = lexicon.GOING[1].korean
        noun, english = self.draw.choice([("비", "rain"), ("눈", "snow")])
        return Rain(noun, Verb(come, english, english + "ed", english + "ing"))

    # Places and tools

    def _place(self, korean: Iterable[str]) -> NounPhrase:
        noun, preposition = lexicon.PLACES[self.draw.choice(list(korean))]
        return NounPhrase(noun, preposition=preposition)

    def where(self) -> NounPhrase:
        return self._place(self._done().verb.places)

    def site(self) -> NounPhrase:
        return self._place(place for place in self["local"].verb.places if place in SITES)

    def goal(self) -> NounPhrase:
        daily = "habit" in self.wants
        return self._place(place for place in SITES if not (daily and "city" in lexicon.NOUNS[place].classes))

    def workplace(self) -> NounPhrase:
        return self._place(lexicon.VERBS["일하"].places)

    def ride(self) -> NounPhrase:
        classes = self["goal"].noun.classes
        kind = next((kind for kind in lexicon.RIDES if kind in classes), "near")
        return NounPhrase(lexicon.NOUNS[self.draw.choice(lexicon.RIDES[kind].split())])

    def tool(self) -> NounPhrase:
        stem = self["deed"].verb.korean.stem
        tools = [tool for tool, stems in lexicon.TOOLS.items() if stem in stems]
        return NounPhrase(lexicon.NOUNS[self.draw.choice(tools)])

    # Things

    def _kept(self) -> tuple[Noun, ...]:
        """What may be found in the room."""
        garden = self["room"].noun.korean == "정원"
        kept = nouns_of("plant", "pet") if garden else nouns_of("common", "pet")
        return tuple(noun for noun in kept if "vehicle" not in noun.classes)

    def kept(self) -> NounPhrase:
        noun = self.draw.choice(self._kept())
        return self._numbered(noun) if noun.counter and self.draw.random() < 0.4 else NounPhrase(noun)

    def lacking(self) -> NounPhrase:
        return NounPhrase(self.draw.choice(self._kept()))

    def counted(self) -> NounPhrase:
        return NounPhrase(self.draw.choice([noun for noun in self._kept() if noun.counter]), generic=True)

    def counter(self) -> Fixed:
        return Fixed(Expression(self["counted"].noun.counter, ""))

    def small(self) -> NounPhrase:
        common = [noun for noun in nouns_of("common") if "small" in noun.classes]
        return NounPhrase(self.draw.choice([noun for noun in common if noun.korean != "상자"]))

    def base(self) -> NounPhrase:
        return NounPhrase(lexicon.NOUNS[self.draw.choice(["책상", "탁자", "침대", "의자", "상자"])])

    def placed(self) -> NounPhrase:
        noun = self.small().noun
        return NounPhrase(noun, "그") if self.draw.random() < 0.5 else self._owned(noun)

    def own(self) -> NounPhrase:
        if self.draw.random() < 0.3:
            return NounPhrase(self.draw.choice([kin for kin in lexicon.KIN if kin.korean in lexicon.KIN_OF_ANYONE]))
        noun = self.draw.choice(nouns_of("common", "pet"))
        return self._numbered(noun) if noun.counter and self.draw.random() < 0.3 else NounPhrase(noun)

    def indefinite(self) -> NounPhrase:
        noun = self.draw.choice(nouns_of("common"))
        attributes = attributes_of(noun) if self.draw.random() < 0.6 else ()
        return NounPhrase(noun, adjective=self.draw.choice(attributes) if attributes else None)

    def owned(self) -> NounPhrase:
        return self._owned(self.simple().noun)

    def simple(self) -> NounPhrase:
        return NounPhrase(self.draw.choice(nouns_of("common")))

    def buy(self) -> Deed:
        return Deed(lexicon.VERBS[self.draw.choice(["사", "그리", "빌리", "고르", "잃어버리", "받"])])

    def bought(self) -> NounPhrase:
        verb = self["buy"].verb
        noun = self.draw.choice([noun for noun in map(lexicon.NOUNS.get, verb.objects) if "common" in noun.classes])
        self.pairs.add((verb.korean.stem, noun.korean))
        return NounPhrase(noun)

    # Qualities

    def _subjects(self, adjective: Adjective) -> list[str]:
        """What the adjective can be said of in this template."""
        if "rival" in self.wants:  # this bag and that bag, Minsu and Jiyeong; but there is one kitchen
            return [noun for noun in adjective.nouns if noun not in lexicon.PLACES]
        if "adj2" in self.wants:
            return [noun for noun in adjective.nouns if others_of(adjective, noun)]
        return list(adjective.nouns)

    def adj(self) -> Quality:
        compares = self.wants & {"more", "most"}
        return Quality(
            self.draw.choice(
                [
                    adjective
                    for adjective in lexicon.ADJECTIVES
                    if self._subjects(adjective) and not (compares and adjective.korean.stem in COLOURS.split())
                ]
            )
        )

    def thing(self) -> NounPhrase:
        korean = self.draw.choice(self._subjects(self["adj"].adjective))
        if korean == "person":
            return self._someone(PERSON_SHARES["praised"])
        noun = lexicon.NOUNS[korean]
        if "fixed" in noun.classes:
            return NounPhrase(noun)
        if "rival" in self.wants:
            return NounPhrase(noun, "이")
        if OWNED_CLASSES & set(noun.classes) and self.draw.random() < 0.3:
            return self._owned(noun)
        return NounPhrase(noun, self.draw.choice("그그이저"))

    def rival(self) -> NounPhrase:
        """What the thing is compared with: its like."""
        thing = self["thing"]
        return NounPhrase(thing.noun, "저") if thing.determiner == "이" else self._someone({"name": 60, "kin": 40})

    def adj2(self) -> Quality:
        noun = self["thing"].noun
        others = others_of(self["adj"].adjective, "person" if "human" in noun.classes else noun.korean)
        return Quality(self.draw.choice(others))

    # Pointing, times, manners

    def this(self) -> Fixed:
        return self.draw.choice([Fixed(Expression("이것", "this")), Fixed(Expression("저것", "that"))])

    def hour(self) -> Fixed:
        korean, english = self.draw.choice(numbers())
        return Fixed(Expression(f"{korean} 시에", f"at~1 {english}=0 o'clock=1"))

    def manner(self) -> Fixed:
        stem = self._done().verb.korean.stem
        return Fixed(self.draw.choice([expression for expression, stems in lexicon.MANNERS if stem in stems]))


MANNER_STEMS = frozenset(stem for _, stems in lexicon.MANNERS for stem in stems)
SITES = tuple(korean for korean, (noun, _) in lexicon.PLACES.items() if "goal" in noun.classes)


# --- From templates to sentences ------------------------------------------------------------------------------------


@dataclass
class Clause:
    """A rendered clause; links are (Korean word, English word)."""

    korean: list[str]
    english: list[str]
    sure: set[tuple[int, int]]
    possible: set[tuple[int, int]]
    template: str
    pairs: set[tuple[str, str]]


STATEMENT, QUESTION = "습니다.", "습니까?"


def render(template: Template, scene: Scene, ending: str = STATEMENT) -> Clause:
    """The clause that the template says of the scene, a statement with the ending where the template has a `-`."""
    if template.question:
        ending = QUESTION
    for slot in template.slots:
        scene[slot]
    korean, starts, heads = [], {}, []
    for slot, form, literal, open_ended in template.korean:
        if slot:
            starts[slot] = len(korean)
        *before, last = scene[slot].korean(form) if slot else [""]
        korean += [*before, finish(last + literal, ending) if open_ended else last + literal]
        heads.append(len(korean) - 1)
    agreement = scene[template.subject].agreement if template.subject else THIRD
    clause = Clause(korean, [], set(), set(), template.name, scene.pairs)
    for slot, form, literal, sure, possible in template.english:
        if slot in starts:
            words, start = scene[slot].english(form, agreement), starts[slot]
        else:
            said = _dependent(slot, scene, agreement) if slot else literal
            words, start = [Word(said, head=True)] if said else [], 0
        for word in words:
            at = len(clause.english)
            clause.english.append(word.text)
            clause.sure.update((start + index, at) for index in word.sure)
            clause.possible.update((start + index, at) for index in word.possible)
            if word.head:
                clause.sure.update((heads[index], at) for index in sure)
                clause.possible.update((heads[index], at) for index in possible)
    clause.possible -= clause.sure
    return clause


def _dependent(slot: str, scene: Scene, agreement: int) -> str:
    """The English of a slot that Korean lacks: a verb that agrees with the subject, or the adjective's more or most."""
    if slot in AGREEMENT:
        return AGREEMENT[slot][agreement]
    return slot if scene["adj"].adjective.comparative.startswith("more") else ""


# What the clauses of a longer sentence may be, by the tense that they share.
TENSES = {
    "past": ("past", "wish", "two", "went", "gave", "rain", "elder_past", "was"),
    "present": ("habit", "elder_habit", "there", "state", "job"),
    "future": ("future",),
}
ENDINGS = {"고": "and", "지만": "but"}  # one sentence: A고 B, "A, and B"
CONNECTIVES = {"그리고": "and", "하지만": "but"}  # two sentences on one line: A. 그리고 B, "A. And B"


def _clause(draw: random.Random, groups: tuple[str, ...] = (), ending: str = STATEMENT) -> Clause:
    """A clause of a template drawn from some groups (all of them: a sentence of its own)."""
    candidates, cumulative = _choices(groups)
    template = draw.choices(candidates, cum_weights=cumulative)[0]
    return render(template, Scene(draw, template.mentions), ending)


@cache
def _choices(groups: tuple[str, ...]) -> tuple[list[Template], list[float]]:
    found, weights = templates()
    chosen = [template for template in found if not groups or template.group in groups]
    return chosen, list(accumulate(weights[template.name] for template in chosen))


def _joined(*parts: Clause) -> Clause:
    """The parts one after the other in both languages."""
    whole = Clause([], [], set(), set(), "+".join(part.template for part in parts if part.template), set())
    for part in parts:
        korean, english = len(whole.korean), len(whole.english)
        whole.sure |= {(korean + left, english + right) for left, right in part.sure}
        whole.possible |= {(korean + left, english + right) for left, right in part.possible}
        whole.korean += part.korean
        whole.english += part.english
        whole.pairs |= part.pairs
    return whole


def _because(reason: Clause, result: Clause) -> Clause:
    """R기 때문에 B, "B because R": the languages put the two clauses in opposite order."""
    before, after = len(reason.korean) + 1, len(result.english) + 1  # of the Korean result, of the English reason
    return Clause(
        [*reason.korean, "때문에", *result.korean],
        [*result.english, "because", *reason.english],
        {(before + left, right) for left, right in result.sure}
        | {(left, after + right) for left, right in reason.sure}
        | {(before - 1, after - 1)},
        {(before + left, right) for left, right in result.possible}
        | {(left, after + right) for left, right in reason.possible}
        | {(before - 2, after - 1)},
        f"because({reason.template}, {result.template})",
        reason.pairs | result.pairs,
    )


def _discourse(draw: random.Random, count: int) -> Clause:
    """`count` clauses of one tense, joined by endings, conjunctions and causes."""
    tense = draw.choice(list(TENSES))
    whole = _joined()
    additions, contrasts = ("고", "그리고"), ("지만", "하지만")
    join = ""
    while count:
        has_cause = tense == "past" and count > 1 and draw.random() < 0.4
        count -= 2 if has_cause else 1
        join = draw.choice(additions if join in contrasts else (*additions, *contrasts)) if count else ""
        clause = _clause(draw, TENSES[tense], join if join in ENDINGS else STATEMENT)
        if has_cause and draw.random() < 0.5:
            clause = _because(_clause(draw, ("cause",), "기"), clause)
        elif has_cause:
            clause = _joined(_closed(_clause(draw, ("cause",)), "."), _word("그래서", "so"), clause)
        whole = _joined(whole, clause)
        if join in ENDINGS:
            conjunction = Clause([], [ENDINGS[join]], set(), {(-1, 0)}, "", set())  # carried by the Korean word before
            whole = _joined(_closed(whole, ","), conjunction)
        elif join:
            whole = _joined(_closed(whole, "."), _word(join, CONNECTIVES[join]))
    return whole


def _word(korean: str, english: str) -> Clause:
    return Clause([korean], [english], {(0, 0)}, set(), "", set())


def _closed(clause: Clause, mark: str) -> Clause:
    """The clause with a punctuation mark after its English."""
    return replace(clause, english=[*clause.english[:-1], clause.english[-1] + mark])


def sentence(clause: Clause) -> Phrase:
    """The clause as a sentence: capitals and the last English punctuation are put in."""
    english = clause.english
    english[-1] += "?" if clause.korean[-1].endswith("?") else "."
    starts = [0, *(index + 1 for index, word in enumerate(english[:-1]) if word.endswith("."))]
    for index in starts:
        english[index] = english[index][0].upper() + english[index][1:]
    return Phrase(
        " ".join(clause.korean),
        " ".join(english),
        tuple(sorted(clause.sure)),
        tuple(sorted(clause.possible - clause.sure)),
        clause.template,
    )


def _drafts(draw: random.Random, clauses: int, fewest: int) -> Iterator[tuple[Phrase, set[tuple[str, str]]]]:
    """Endless distinct phrases, each with its (verb, object) pairs; no sentence of either language comes twice."""
    korean_seen, english_seen = set(), set()
    while True:
        count = draw.randint(min(fewest, clauses), clauses)
        clause = _clause(draw) if count == 1 else _discourse(draw, count)
        if not 3 <= len(clause.english) <= (LONGEST_CLAUSE if count == 1 else LONGEST):
            continue
        phrase = sentence(clause)
        if phrase.korean not in korean_seen and phrase.english not in english_seen:
            korean_seen.add(phrase.korean)
            english_seen.add(phrase.english)
            yield phrase, clause.pairs


def phrases(seed: int = 0, clauses: int = 1, fewest: int = 2) -> Iterator[Phrase]:
    """Endless distinct phrases, the same for the same arguments.

    `clauses` is the most clauses a sentence has; beyond 1, sentences have at least `fewest` (or `clauses`, if that is
    less) and up to LONGEST English words. No Korean and no English sentence comes twice.
    """
    for phrase, _ in _drafts(random.Random(seed), clauses, fewest):
        yield phrase


def forms(sentence: str) -> list[str]:
    """The word forms of a sentence, without punctuation."""
    return [word.strip(".,?") for word in sentence.split()]


def split(
    train: int = 8000,
    dev: int = 200,
    test: int = 300,
    seed: int = 0,
    clauses: int = 1,
    fewest: int = 2,
    occurrences: int = 10,
) -> Splits:
    """Training, development and test pairs that share no sentence; `clauses` and `fewest` as in `phrases`.

    Every word form of dev and test occurs in train `occurrences` times or more, so that what is tested is putting known
    words together in new ways. Up to half of the held-out pairs have a (verb, object) combination that train lacks:
    such combinations are set aside by the seed.
    """
    draw = random.Random(seed)
    reserved = _reserved(draw)
    drafts = _drafts(draw, clauses, fewest)
    learned: list[Phrase] = []
    novel: list[Phrase] = []
    while len(learned) < train:
        phrase, pairs = next(drafts)
        (novel if pairs & reserved else learned).append(phrase)
    counts = Counter(form for phrase in learned for form in _both_forms(phrase))

    def known(phrase: Phrase) -> bool:
        return all(counts[form] >= occurrences for form in _both_forms(phrase))

    wanted = dev + test
    held = [phrase for phrase in novel if known(phrase)][: wanted // 2]
    further = (phrase for phrase, pairs in islice(drafts, 50 * wanted) if not pairs & reserved and known(phrase))
    held += islice(further, wanted - len(held))
    if len(held) < wanted:
        raise ValueError(
            f"in so few pairs too few words occur {occurrences} times: "
            f"of {wanted} held-out pairs {len(held)} can be made of those that do"
        )
    draw.shuffle(held)
    return Splits(tuple(learned), tuple(held[:dev]), tuple(held[dev:]))


def _reserved(draw: random.Random) -> set[tuple[str, str]]:
    """(verb, object) pairs to keep for testing; both still occur in others."""
    pairs = [(stem, noun) for stem, verb in lexicon.VERBS.items() for noun in verb.objects]
    verbs_of = Counter(noun for _, noun in pairs)
    spared = [(stem, noun) for stem, noun in pairs if len(lexicon.VERBS[stem].objects) < 4 or verbs_of[noun] < 2]
    shares = {pair: 0.3 if pair[0] in lexicon.COMMON_VERBS else 0.15 for pair in pairs}
    return {pair for pair in pairs if draw.random() < shares[pair]} - set(spared)


def _both_forms(phrase: Phrase) -> list[tuple[str, str]]:
    """The word forms of both languages, each with its language."""
    return [("ko", form) for form in forms(phrase.korean)] + [("en", form) for form in forms(phrase.english)]


def write(splits: Splits, folder: str | Path) -> None:
    """Writes {train,dev,test}.{ko,en,align} to the folder, a line a pair; alignments as in `Phrase.pharaoh`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "dev", "test"):
        pairs: tuple[Phrase, ...] = getattr(splits, name)
        columns = {
            "ko": [pair.korean for pair in pairs],
            "en": [pair.english for pair in pairs],
            "align": [pair.pharaoh for pair in pairs],
        }
        for suffix, lines in columns.items():
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8", newline="\n")


def lexemes() -> tuple[str, ...]:
    """Every content word of the lexicon as Korean/English, so that homonyms (말 horse, 쓰다 write) count by meaning."""
    people = (*lexicon.PEOPLE, *lexicon.FOLK, *lexicon.KIN, *lexicon.ELDERS, *lexicon.NAMES)
    found = {f"{noun.korean}/{noun.bare}" for noun in (*lexicon.NOUNS.values(), *people)}
    verbs: Iterable[Verb] = (*lexicon.VERBS.values(), *lexicon.LIKING, *lexicon.LIVING, *lexicon.GOING, *lexicon.GIVING)
    adjectives = (*lexicon.ADJECTIVES, *lexicon.MOODS, *lexicon.WEATHERS)
    found |= {f"{word.korean.stem}/{word.english}" for word in (*verbs, *adjectives)}
    found |= {f"{korean}/{english}" for korean, english, _ in lexicon.ONLY_BEFORE_NOUNS}
    tables = (
        lexicon.PAST_TIMES,
        lexicon.FUTURE_TIMES,
        lexicon.ANY_TIMES,
        lexicon.HABITS,
        lexicon.FREQUENCIES,
        lexicon.DEGREES,
        lexicon.SIDES,
        lexicon.NUMBERS,
    )
    found |= {f"{korean}/{english}" for table in tables for korean, english in lexicon.rows(table)}
    return tuple(sorted(found | {f"{manner.korean}/{manner.english}" for manner, _ in lexicon.MANNERS}))
