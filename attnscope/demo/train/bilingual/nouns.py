"""Whom and what the translation model speaks about: people, animals, things and places, chosen at random.

Everything is said in both languages at once (`bilingual`); the choices come from a seeded `Speaker`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.phrase import (
    NounPhrase,
    Phrase,
    join,
    noun_phrase,
    of,
    owned,
    phrase,
    pronoun,
)
from attnscope.demo.train.english.phrases import Speaker

NOTHING = Phrase((), ())


def adjectives(s: Speaker, groups: Sequence[str], chance: float) -> tuple[tuple[lex.Adjective, ...], bool]:
    """No, one or two adjectives, and whether "and" joins them; of two, the second tells the nation."""
    if not s.chance(chance):
        return (), False
    first = lex.UNKNOWN_ADJECTIVE if s.chance(0.01) else s.pick(lex.ADJECTIVES[s.pick(groups)])
    nations = lex.ADJECTIVES["nation"]
    if "nation" in groups and first not in nations and s.chance(0.25):
        return (first, s.pick(nations)), False
    colours = lex.ADJECTIVES["colour"]
    if first in colours and s.chance(0.1):
        return (first, s.pick([other for other in colours if other is not first])), True
    return (first,), False


def article(s: Speaker, plural: bool) -> str:
    """Which article, possessive or number stands before a thing."""
    draw = s.generator.random()
    if draw < 0.5:
        return "the"
    if draw < 0.72:
        return "a"
    if draw < 0.92:
        return s.pick(("my", "our", "his", "her", "their", "this"))
    return s.pick(tuple(lex.NUMBERS)) if plural else "the"


def thing(s: Speaker, kind: lex.Class, *, chance: float = 0.45, first: str = "") -> NounPhrase:
    """A thing or an animal: "the red door", "two Italian cars", "the king's black dog"; `first` begins it."""
    noun = lex.UNKNOWN if s.chance(0.01) else s.pick(kind.nouns)
    plural = noun.countable and s.chance(0.2)
    like, both = adjectives(s, kind.like, chance)
    if not first and s.chance(0.1):
        owner = person(s, names=0.5, chance=0.1, many=0)
        if s.chance(0.6):
            return owned(owner, noun_phrase("", noun, like, plural=plural, both=both))
        return of(noun_phrase("the", noun, like, plural=plural, both=both), owner)
    word = first or article(s, plural)
    if not plural and (word in lex.NUMBERS or (word == "any" and not noun.mass)):
        word = "a"
    return noun_phrase(word, noun, like, plural=plural, both=both)


def person(s: Speaker, *, names: float = 0.25, chance: float = 0.3, many: float = 0.12) -> NounPhrase:
    """Somebody: "mary", "the tired king", "my sisters", "a French painter"."""
    he = s.chance(0.5)
    if s.chance(names):
        name = s.pick(lex.HE_NAMES if he else lex.SHE_NAMES)
        return noun_phrase("", name, pronoun="he" if he else "she")
    noun = s.pick(lex.HE if he else lex.SHE)
    plural = noun.english not in lex.ONLY_ONE and s.chance(many)
    words = ["a", "this", "the", "the", "the"] + (list(lex.NUMBERS)[:4] if plural else [])
    word = s.pick(("my", "my", "our", "his", "her", "the") if noun.english in lex.KIN else words)
    like, both = adjectives(s, ("person", "person", "nation"), chance)
    return noun_phrase(word, noun, like, plural=plural, both=both, pronoun="he" if he else "she")


def speaker(s: Speaker) -> NounPhrase:
    """I, we, he, she or they."""
    return pronoun(s.pick(("i", "i", "we", "he", "she", "they")))


def somebody(s: Speaker) -> NounPhrase:
    """A person or a pronoun for one."""
    return speaker(s) if s.chance(0.35) else person(s)


def animal(s: Speaker) -> tuple[NounPhrase, lex.Class]:
    kind = s.pick(lex.ANIMALS)
    return thing(s, kind), kind


def anything(s: Speaker) -> tuple[NounPhrase, lex.Class]:
    """A thing or an animal."""
    kind = s.pick(lex.THINGS) if s.chance(0.7) else s.pick(lex.ANIMALS)
    return thing(s, kind), kind


def place(s: Speaker) -> Phrase:
    """As in "in the green garden", "at the station", "next to the bridge"."""
    draw = s.generator.random()
    noun, before, french_ = s.pick(lex.INSIDE), "in", "dans"
    if draw < 0.25:
        noun, before, french_ = s.pick(lex.PUBLIC), "at", "à"
    elif draw < 0.45:
        noun, before, french_ = s.pick(lex.SURFACES), *s.pick((("on", "sur"), ("under", "sous")))
    elif draw < 0.65:
        noun = s.pick(s.pick((lex.PUBLIC, lex.INSIDE, lex.SURFACES)))
        before, french_ = s.pick(tuple(lex.PREPOSITIONS.items()))
    like, _ = adjectives(s, ("place", "colour"), 0.2)
    word = "the" if s.chance(0.85) else s.pick(("my", "our", "a", "this", "her", "their"))
    plural = word == "the" and draw > 0.25 and s.chance(0.08)
    return join(phrase(before, french_), noun_phrase(word, noun, like, plural=plural).said)


def ending(s: Speaker, tense: str, chance: float = 0.3) -> Phrase:
    """Perhaps a place, or a time that fits the tense."""
    if not s.chance(chance):
        return NOTHING
    times = lex.TIMES.get(tense)
    return phrase(*s.pick(tuple(times.items()))) if times and s.chance(0.3) else place(s)


def any_tense(s: Speaker, verb: lex.Verb) -> str:
    """A tense that a verb has."""
    if verb.state or verb.english in lex.AT_ONCE:
        return s.pick(("present", "past"))
    return s.pick(("present", "progressive", "past", "past", "was"))


def doing(name: str) -> lex.Verb:
    """A verb without an object."""
    return lex.REFLEXIVE.get(name) or lex.VERBS[name]


def handling(name: str) -> lex.Verb:
    """A verb with an object."""
    return lex.WITH_OBJECT.get(name) or lex.VERBS[name]


def can_do(s: Speaker, kind: lex.Class | None) -> lex.Verb:
    """Something that somebody (None), an animal or a thing does."""
    if kind is None:
        return doing(s.pick(lex.PERSON_DOES))
    if kind in lex.ANIMALS and s.chance(0.35):
        return doing(s.pick(lex.ANIMAL_DOES))
    return doing(s.pick(kind.does))


def can_be(s: Speaker, kind: lex.Class | None) -> lex.Adjective:
    """Something that they can be."""
    return s.pick(lex.ADJECTIVES[s.pick(kind.like) if kind else s.pick(("person", "person", "nation"))])
