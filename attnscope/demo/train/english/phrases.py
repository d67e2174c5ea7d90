"""Noun phrases that remember which pronoun stands for them, and the speaker who chooses them at random.

Texts are made in a marked form: the head noun of an antecedent carries `_1` and the pronoun that refers to it
`~1` ("the old door_1 ... it~1"). `plain` takes the marks off; `links` reads them. Only tests and the
evaluation look at the marks: training sees plain text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, plural, third

Item = TypeVar("Item")

PRONOUNS: dict[str, tuple[str, str, str]] = {
    "i": ("i", "me", "my"),
    "we": ("we", "us", "our"),
    "he": ("he", "him", "his"),
    "she": ("she", "her", "her"),
    "it": ("it", "it", "its"),
    "they": ("they", "them", "their"),
}
MARK = re.compile(r"[_~]\d+")
SLOT = re.compile(r"\{([a-z]+)(?::([a-z]+))?\}")
KINDS = {kind.name: kind for kind in lex.THINGS + lex.ANIMALS}


def plain(marked: str) -> str:
    """The text without its reference marks."""
    return MARK.sub("", marked)


def links(marked: str) -> list[tuple[int, tuple[int, ...]]]:
    """Each marked pronoun's word index with those of its antecedent nouns (words split at spaces)."""
    words = marked.split()
    nouns: dict[str, list[int]] = {}
    for index, word in enumerate(words):
        if "_" in word:
            nouns.setdefault(word.split("_")[1], []).append(index)
    pronouns = ((index, word.split("~")[1]) for index, word in enumerate(words) if "~" in word)
    return [(index, tuple(nouns[mark])) for index, mark in pronouns if mark in nouns]


@dataclass(frozen=True)
class Mention:
    """A noun phrase, the pronoun that refers back to it, and its kind (None for people)."""

    text: str
    pronoun: str
    link: int
    kind: lex.Kind | None = None

    def _form(self, case: int) -> str:
        form = PRONOUNS[self.pronoun][case]
        return form if self.pronoun in ("i", "we") else f"{form}~{self.link}"

    @property
    def he(self) -> str:
        """The subject pronoun."""
        return self._form(0)

    @property
    def him(self) -> str:
        """The object pronoun."""
        return self._form(1)

    @property
    def his(self) -> str:
        """The possessive."""
        return self._form(2)

    @property
    def was(self) -> str:
        return "were" if self.pronoun in ("they", "we") else "was"

    @property
    def am(self) -> str:
        return {"i": "am", "we": "are", "they": "are"}.get(self.pronoun, "is")

    @property
    def plural(self) -> bool:
        """Whether its verbs in the present tense lack the s."""
        return self.pronoun in ("i", "we", "they")


def with_article(words: str) -> str:
    """As in "a door", "an apple"."""
    return ("an " if words[0] in "aeiou" else "a ") + words


class Speaker:
    """Chooses words at random, from a seeded generator, and numbers what it refers to."""

    def __init__(self, generator: random.Random) -> None:
        self.generator = generator
        self.count = 0

    def pick(self, items: Sequence[Item]) -> Item:
        """One item, all alike likely."""
        return items[int(self.generator.random() * len(items))]

    def chance(self, probability: float) -> bool:
        return self.generator.random() < probability

    def one(self, text: str) -> str:
        """One alternative out of "near|beside|behind"."""
        return self.pick(text.split("|"))

    def link(self) -> int:
        self.count += 1
        return self.count

    def thing_kind(self) -> lex.Kind:
        return self.pick(lex.THINGS)

    def kind(self) -> lex.Kind:
        """A kind of thing or animal."""
        return self.pick(lex.THINGS) if self.chance(0.65) else self.pick(lex.ANIMALS)

    def other_kind(self, kind: lex.Kind | None) -> lex.Kind:
        """A kind none of whose doings the first one shares, so that the verb tells them apart."""
        while True:
            other = self.kind()
            if kind is None or not set(other.does) & set(kind.does):
                return other

    def trait(self, traits: Sequence[str] = lex.TRAITS, probability: float = 0.2) -> str:
        return self.pick(traits) + " " if self.chance(probability) else ""

    def thing(self, kind: lex.Kind | None = None, article: str = "", many: float = 0.12) -> Mention:
        """A thing or an animal: "the old door" or "my doors"; `many` is the chance of a plural."""
        kind = kind or self.kind()
        noun, link, trait = self.pick(kind.nouns), self.link(), self.trait()
        plural_now = not kind.mass and self.chance(many)
        head = f"{trait}{plural(noun) if plural_now else noun}_{link}"
        article = article or ("the" if self.chance(0.7) else self.pick(("a", "a", "a", "my", "our")))
        if article == "a":
            article = "some" if plural_now or kind.mass else "a"
        text = with_article(head) if article == "a" else f"{article} {head}"
        return Mention(text, "they" if plural_now else "it", link, kind)

    def person(self, gender: str = "", names: float = 0.4) -> Mention:
        """Someone whose gender is in the word: "the queen", "tom", "my brother"."""
        gender = gender or self.pick(("he", "she"))
        link = self.link()
        if self.chance(names):
            return Mention(
                f"{self.pick(lex.HE_NAMES if gender == 'he' else lex.SHE_NAMES)}_{link}", gender, link
            )
        noun = self.pick(lex.HE if gender == "he" else lex.SHE)
        owner = self.pick(("my", "the", "our")) if noun in lex.KIN else "the"
        return Mention(f"{owner} {self.trait(lex.PERSON_TRAITS, 0.15)}{noun}_{link}", gender, link)

    def people(self) -> Mention:
        """Several people: a plural or a coordination; `they`."""
        link = self.link()
        if self.chance(0.5):
            noun = plural(self.pick(self.pick((lex.HE, lex.SHE, lex.EITHER, lex.EITHER))))
            return Mention(f"the {self.trait(lex.PERSON_TRAITS, 0.15)}{noun}_{link}", "they", link)
        first, second = self.person(), self.person()
        return Mention(f"{plain(first.text)}_{link} and {plain(second.text)}_{link}", "they", link)

    def somebody(self) -> Mention:
        """A person or several, to be referred to."""
        return self.people() if self.chance(0.2) else self.person()

    def subject(self) -> Mention:
        """Whoever does it: most often "i" or a person."""
        draw = self.generator.random()
        if draw < 0.35:
            return Mention("i", "i", 0)
        if draw < 0.45:
            return Mention("we", "we", 0)
        if draw < 0.52:
            pronoun = self.pick(("he", "she", "they"))
            return Mention(pronoun, pronoun, self.link())
        return self.somebody()

    def kin(self) -> str:
        return f"{self.pick(('my', 'your', 'your', 'our'))} {self.pick(lex.KIN)}"

    def nominal(self, article: str, name: str) -> str:
        """A noun phrase for a slot of the lexicon: "an apple" (a), "apples" (some), "the door" (the)."""
        kind = KINDS[name]
        trait, noun = self.trait(probability=0.08), self.pick(kind.nouns)
        if kind.mass or article == "mass":
            return trait + noun if article == "mass" or self.chance(0.5) else f"some {trait}{noun}"
        if article == "some":
            return ("" if self.chance(0.6) else "some ") + trait + plural(noun)
        return with_article(trait + noun) if article == "a" else f"the {trait}{noun}"

    def fill(self, template: str, who: Mention | None = None) -> str:
        """A phrase of the lexicon with its slots filled; `{my}` is the possessive of `who`."""
        if "{" not in template:
            return template
        owner = who.his if who else "my"
        plain_slots = {
            "my": owner,
            "num": self.pick(lex.NUMBERS),
            "kin": self.kin(),
            "skill": self.pick(lex.SKILLS),
            "limb": self.pick(lex.LIMBS),
            "lostthing": self.pick(lex.LOST_THINGS),
        }
        return SLOT.sub(
            lambda slot: self.nominal(slot[1], slot[2]) if slot[2] else plain_slots[slot[1]], template
        )


def bare(mention: Mention) -> Mention:
    """The same referent, to be named again by its pronoun."""
    return replace(mention, text=mention.he)


def does(s: Speaker, who: Mention) -> str:
    """Something that this kind of thing, or a person, does: "opened", "woke up"."""
    return past(s.pick(who.kind.does if who.kind else lex.PERSON_DOES))


def like(s: Speaker, who: Mention) -> str:
    """What it can be like: "locked", "hungry"."""
    return s.pick(who.kind.like if who.kind else lex.PERSON_LIKE)


def when(s: Speaker) -> str:
    return s.pick(lex.FRAMES["when"])


def ending(s: Speaker, probability: float = 0.25) -> str:
    """Perhaps a place or a time: " in the kitchen", " last night"."""
    return " " + s.pick(lex.ROOMS if s.chance(0.5) else lex.TIMES) if s.chance(probability) else ""


def event(s: Speaker, who: Mention) -> str:
    """What is said of a pronoun: "opened", "was locked", "began to bark", "suddenly opened"."""
    draw = s.generator.random()
    if draw < 0.6:
        return does(s, who)
    if draw < 0.8:
        return f"{who.was} {like(s, who)}"
    verb = s.pick(who.kind.does if who.kind else lex.PERSON_DOES)
    return f"began to {verb}" if draw < 0.9 else f"{s.pick(lex.ADVERBS)} {past(verb)}"


def handle(s: Speaker, thing: Mention) -> str:
    """Something that people do to it: "locked", "fed"."""
    return past(s.pick(thing.kind.done if thing.kind and s.chance(0.7) else ("see", "find", "buy", "sell")))


def go(who: Mention) -> str:
    """The present tense of going, agreeing with who goes."""
    return "go" if who.plural else "goes"


def modal(s: Speaker, who: Mention) -> str:
    """One of "would like to", "has to", "wants to"."""
    frame = s.pick(lex.FRAMES["wish"])
    return frame if who.plural or frame.startswith("would") else f"{third(frame.split()[0])} to"


def tense(s: Speaker, who: Mention, do: str) -> str:
    """One of "works in", "worked in", "has to work in", agreeing with who does it."""
    draw = s.generator.random()
    if draw < 0.45:
        return past(do)
    if draw < 0.7:
        return do if who.plural else third(do)
    return f"{modal(s, who)} {do}" if draw < 0.85 else f"{who.was} {gerund(do)}"


def outcome(s: Speaker, name: str, who: Mention) -> str:
    """The last sentence of a story."""
    start = s.one("and that is how|and that is how|and that is how|that is how|and that is why|and so")
    return f"{start} {who.he if who.link else who.text} {s.fill(s.pick(lex.ENDINGS[name][1]), who)} ."
