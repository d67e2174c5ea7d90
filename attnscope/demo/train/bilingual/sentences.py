"""Sentences of the translation model's language, each made in English and French at once.

One small function per pattern. A sentence names at most one thing or person that its pronoun can stand for,
or names a place or an owner besides, which the pronoun never means: in "I was watching the door in the garden
when it opened" it is the door.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.french import Agreement
from attnscope.demo.train.bilingual.nouns import (
    NOTHING,
    adjectives,
    animal,
    any_tense,
    anything,
    can_be,
    can_do,
    ending,
    handling,
    person,
    place,
    somebody,
    speaker,
    thing,
)
from attnscope.demo.train.bilingual.phrase import (
    NounPhrase,
    Phrase,
    Word,
    again,
    join,
    noun_phrase,
    of,
    phrase,
    pronoun,
    without,
)
from attnscope.demo.train.bilingual.verbs import be, is_like, verb_phrase
from attnscope.demo.train.english.phrases import Speaker

STOP, COMMA = phrase(".", "."), phrase(",", ",")
LINKS = {"when": "quand", "because": "parce que", "while": "pendant que", "and": "et", "but": "mais"}


def predicate(s: Speaker, who: Agreement, kind: lex.Class | None, tense: str = "") -> Phrase:
    """As in "was not very red"."""
    adjective = can_be(s, kind)
    plain = lex.ADJECTIVES["nation"] + lex.ADJECTIVES["colour"] + lex.ADJECTIVES["shape"]
    graded = adjective not in plain and adjective.english not in lex.UNGRADED
    degree = s.pick(("very", "very", "too")) if graded and s.chance(0.25) else ""
    tense = tense or s.pick(("present", "past"))
    return is_like(who, tense, adjective, degree=degree, negated=s.chance(0.15))


def event(s: Speaker, who: NounPhrase, kind: lex.Class | None) -> Phrase:
    """What is said of a pronoun in a clause of the past: "opened", "was not sleeping", "was red"."""
    draw = s.generator.random()
    if draw < 0.3:
        return predicate(s, who.agreement, kind, "past")
    tense = "past" if draw < 0.85 else "was"
    return verb_phrase(who.agreement, can_do(s, kind), tense, negated=s.chance(0.1))


def clause(s: Speaker, who: NounPhrase, kind: lex.Class | None, links: Sequence[str]) -> Phrase:
    """As in "when it opened", "because she was tired", "while they were sleeping"."""
    link, it = s.pick(links), again(who)
    if link == "while":
        said = verb_phrase(it.agreement, can_do(s, kind), "was")
    elif link == "because":
        said = predicate(s, it.agreement, kind, "past")
    else:
        said = event(s, it, kind)
    return join(phrase(link, LINKS[link]), it.said, said)


def object_of(s: Speaker, by_animal: bool = False) -> tuple[lex.Verb, NounPhrase, lex.Class | None]:
    """Something to do, with whom or what."""
    draw = s.generator.random()
    if by_animal or draw < 0.3:
        if s.chance(0.6):
            return handling(s.pick(lex.BY_ANIMAL if by_animal else lex.TO_SOMEBODY)), person(s), None
        whom, kind = animal(s)
        verbs = lex.BY_ANIMAL if by_animal else lex.TO_ANIMAL + kind.done
        return handling(s.pick(verbs)), whom, kind
    kind = s.pick(lex.THINGS)
    verbs = kind.done if s.chance(0.65) else lex.TO_THING
    return handling(s.pick(verbs)), thing(s, kind), kind


def who_does(s: Speaker) -> tuple[NounPhrase, bool]:
    """A subject for a verb with an object, and whether it is an animal."""
    return (animal(s)[0], True) if s.chance(0.15) else (somebody(s), False)


def happens(s: Speaker) -> Phrase:
    """The black cat is sleeping in the green garden. The door did not open."""
    who, kind = (somebody(s), None) if s.chance(0.4) else anything(s)
    verb = can_do(s, kind)
    tense, negated = any_tense(s, verb), s.chance(0.2)
    manner = s.chance(0.12) and not negated
    how = phrase(*s.pick(tuple(lex.MANNERS.items()))) if manner else NOTHING
    said = verb_phrase(who.agreement, verb, tense, negated=negated)
    return join(who.said, said, how, ending(s, tense, 0.4))


def acts(s: Speaker) -> Phrase:
    """The queen bought two Italian lamps yesterday."""
    who, beast = who_does(s)
    verb, what, _ = object_of(s, beast)
    tense = any_tense(s, verb)
    return join(who.said, verb_phrase(who.agreement, verb, tense), what.said, ending(s, tense))


def acts_not(s: Speaker) -> Phrase:
    """The man does not have a red car: "pas de voiture rouge"."""
    who, kind = somebody(s), s.pick(lex.THINGS)
    verb = handling(s.pick(lex.TO_THING if s.chance(0.5) else kind.done))
    what = thing(s, kind, first=s.pick(("the", "the", "my", "this", "any", "a")))
    return join(
        who.said, verb_phrase(who.agreement, verb, any_tense(s, verb), negated=True), without(what).said
    )


def is_so(s: Speaker) -> Phrase:
    """The red door of the house is closed."""
    who, kind = (somebody(s), None) if s.chance(0.35) else anything(s)
    if kind in lex.THINGS and s.chance(0.3):
        who = of(thing(s, kind, first="the"), noun_phrase("the", s.pick(lex.INSIDE + lex.PUBLIC)))
    return join(who.said, predicate(s, who.agreement, kind))


def exists(s: Speaker) -> Phrase:
    """There is a red door in the garden. There was no bread on the table."""
    none = s.chance(0.25)
    first = "no" if none else s.pick(("a", "a", "a", *lex.NUMBERS))
    what = thing(s, s.pick(lex.THINGS if s.chance(0.7) else lex.ANIMALS), first=first)
    tense, french_ = s.pick((("present", "a"), ("past", "avait")))
    said = [Word(word, (0, 1)) for word in ("il", "y", french_)]
    if none:
        said = [said[0], Word("ne", (2,)), *said[1:], Word("pas", (2,))]
    there = Phrase(("there", be(what.agreement, tense)[0]), tuple(said))
    return join(there, what.said, place(s))


def watched(s: Speaker) -> Phrase:
    """I was watching the red door when it opened."""
    who = somebody(s)
    what, kind = (person(s), None) if s.chance(0.25) else anything(s)
    verb = lex.VERBS[s.pick(("watch", "watch", "look at", "wait for", "listen to", "look for", "draw"))]
    where = place(s) if s.chance(0.2) else NOTHING
    said = verb_phrase(who.agreement, verb, "was" if s.chance(0.75) else "past")
    return join(who.said, said, what.said, where, clause(s, what, kind, ("when", "when", *LINKS)))


def was_there(s: Speaker) -> Phrase:
    """The white horse was sleeping in the field when it fell."""
    who, kind = (person(s), None) if s.chance(0.5) else animal(s)
    where = place(s) if s.chance(0.5) else NOTHING
    said = verb_phrase(who.agreement, can_do(s, kind), "was")
    return join(who.said, said, where, clause(s, who, kind, tuple(LINKS)))


def because(s: Speaker) -> Phrase:
    """The man did not buy the Greek vase because it was broken."""
    who, kind, negated = somebody(s), s.pick(lex.THINGS), s.chance(0.3)
    what = thing(s, kind)
    verb = handling(s.pick(lex.TO_THING if s.chance(0.5) else kind.done))
    said = verb_phrase(who.agreement, verb, "past", negated=negated)
    return join(
        who.said, said, (without(what) if negated else what).said, clause(s, what, kind, ("because",))
    )


def twice(s: Speaker) -> Phrase:
    """The woman bought a red lamp and sold it: "et l'a vendue"."""
    who, kind = somebody(s), s.pick(lex.THINGS if s.chance(0.8) else lex.ANIMALS)
    return done_twice(s, who, thing(s, kind), (*lex.TO_THING[:6], "take", *kind.done))


def done_twice(s: Speaker, who: NounPhrase, what: NounPhrase, verbs: Sequence[str]) -> Phrase:
    """Two doings, the second with a pronoun."""
    first, second = (handling(verb) for verb in s.generator.sample(verbs, 2))
    start = join(who.said, verb_phrase(who.agreement, first, "past"), what.said, phrase("and", "et"))
    return join(start, verb_phrase(who.agreement, second, "past", object_=what))


def met(s: Speaker) -> Phrase:
    """We saw the tired dancer and invited her."""
    return done_twice(s, somebody(s), person(s), lex.TO_SOMEBODY)


def gave(s: Speaker) -> Phrase:
    """The king gave the queen a red book: in French the book comes first."""
    who, taker = somebody(s), person(s)
    what = thing(s, s.pick(lex.THINGS))
    verb = lex.VERBS[s.pick(("give", "give", "show", "sell"))]
    tense = any_tense(s, verb)
    said = verb_phrase(who.agreement, verb, tense)
    if s.chance(0.5):
        return join(who.said, said, what.said, phrase("to", "à"), taker.said)
    unsaid = Phrase((), (Word("à", ()),))
    return join(who.said, said, taker.said, unsaid, what.said, order=(0, 1, 4, 3, 2))


def goes(s: Speaker) -> Phrase:
    """I am going to the supermarket."""
    who = somebody(s) if s.chance(0.9) else animal(s)[0]
    verb, tense = lex.VERBS["go"], s.pick(("present", "progressive", "progressive", "past", "was"))
    like, _ = adjectives(s, ("place", "colour"), 0.15)
    where = join(phrase("to", "à"), noun_phrase("the", s.pick(lex.PUBLIC), like).said)
    times = lex.TIMES.get(tense, {})
    late = phrase(*s.pick(tuple(times.items()))) if times and s.chance(0.2) else NOTHING
    return join(who.said, verb_phrase(who.agreement, verb, tense, negated=s.chance(0.15)), where, late)


def relative(s: Speaker) -> Phrase:
    """The man who bought the red door is tired. The dog that barked was hungry."""
    if s.chance(0.5):
        who = person(s, names=0)
        verb, what, _ = object_of(s)
        clause = join(verb_phrase(who.agreement, verb, any_tense(s, verb)), what.said)
        return join(who.said, phrase("who", "qui"), clause, predicate(s, who.agreement, None))
    who, kind = anything(s)
    verb = can_do(s, kind)
    clause = verb_phrase(who.agreement, verb, any_tense(s, verb))
    return join(who.said, phrase("that", "qui"), clause, predicate(s, who.agreement, kind))


def when_then(s: Speaker) -> Phrase:
    """When the bell rang, the dog barked."""
    (first, one), (second, two) = anything(s), ((person(s), None) if s.chance(0.4) else anything(s))
    start = join(phrase("when", "quand"), first.said, verb_phrase(first.agreement, can_do(s, one), "past"))
    rest = join(second.said, verb_phrase(second.agreement, can_do(s, two), s.pick(("past", "was"))))
    return join(start, COMMA, rest)


def two_clauses(s: Speaker) -> Phrase:
    """The king laughed and we cried. The dog barks because the cat is sleeping."""
    (first, one), (second, two) = ((somebody(s), None) if s.chance(0.6) else anything(s) for _ in range(2))
    now, link = s.chance(0.3), s.pick(tuple(LINKS))
    start = verb_phrase(first.agreement, can_do(s, one), "present" if now else s.pick(("past", "was")))
    if s.chance(0.3):
        rest = predicate(s, second.agreement, two, "present" if now else "past")
    else:
        tense = s.pick(("present", "progressive")) if now else "was" if link == "while" else "past"
        rest = verb_phrase(second.agreement, can_do(s, two), tense, negated=s.chance(0.1))
    return join(first.said, start, phrase(link, LINKS[link]), second.said, rest)


def it_is(s: Speaker) -> Phrase:
    """She is tired. It was red. They were sleeping."""
    who, kind = (
        (speaker(s), None) if s.chance(0.5) else (pronoun(s.pick(("it", "it", "they"))), s.pick(lex.THINGS))
    )
    if s.chance(0.5):
        return join(who.said, predicate(s, who.agreement, kind))
    verb = can_do(s, kind)
    tense = any_tense(s, verb)
    return join(
        who.said, verb_phrase(who.agreement, verb, tense, negated=s.chance(0.2)), ending(s, tense, 0.3)
    )


def two_sentences(s: Speaker) -> Phrase:
    """The red door was closed. It opened slowly."""
    who, kind = anything(s) if s.chance(0.6) else (person(s), None)
    it = again(who)
    return join(who.said, predicate(s, who.agreement, kind, "past"), STOP, it.said, event(s, it, kind))


Pattern = Callable[[Speaker], Phrase]
PATTERNS: dict[Pattern, int] = {
    happens: 14, acts: 14, acts_not: 6, is_so: 12, exists: 6, watched: 14, was_there: 6, because: 5, twice: 5,
    met: 3, gave: 6, goes: 5, relative: 6, when_then: 6, two_clauses: 8,
    it_is: 5, two_sentences: 4,
}  # fmt: skip
_DRAW = tuple(pattern for pattern, weight in PATTERNS.items() for _ in range(weight))


def sentence(s: Speaker) -> Phrase:
    """One sentence with its full stop, of a pattern chosen by its weight."""
    return join(s.pick(_DRAW)(s), STOP)
