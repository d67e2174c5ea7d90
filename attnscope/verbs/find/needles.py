"""Needle-in-a-haystack texts: facts planted in long texts, their questions, bundled facts and filler text.

The bundled facts use the vocabulary of demo-reader, plain enough for any model of English.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnscope.errors import InputError

_FIRST, _SECOND = "Mar El Jo Ka Ben Dar Gra Hol Mi Nor Vel Ros", "na ton rik vin mir bert ris"
_THINGS = "key hat car coat door bag boat cup book lamp chair box dog bike ring shirt tent clock"
_LIKE = "blue red green white black yellow purple brown pink silver golden small large round"
_PLACES = "market river school garden bridge station forest church library kitchen tower field"
_ASIDES = (
    "{a} walks to the {place} with {b}.",
    "The {place} was {like} today.",
    "{a} was happy and {b} was tired.",
    "{a} lost the {thing} near the {place} yesterday.",
    "The weather was {like} by the {place}.",
)
ASIDES = 60  # sentences of the bundled filler text
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


@dataclass(frozen=True)
class Fact:
    """A fact to plant in a text (`needle`), the question that asks for it, and its answer."""

    needle: str
    question: str
    answer: str


@dataclass(frozen=True)
class Planted:
    """A text with the fact its question asks for and another fact, each with its character range."""

    text: str
    fact: Fact
    other: Fact
    length: int
    depth: float
    at: tuple[int, int]
    other_at: tuple[int, int]


def bundled_facts(count: int, seed: int, goes_on: bool = False) -> tuple[Fact, ...]:
    """`count` seeded facts, each asked for by a question, or with `goes_on` by a sentence to complete."""
    draw = random.Random(f"facts {seed}")
    pairs = draw.sample([(name, thing) for name in _names() for thing in _THINGS.split()], count)
    facts = list[Fact]()
    for name, thing in pairs:
        like = draw.choice(_LIKE.split())
        asks = f"The {thing} of {name} is" if goes_on else f"Question: what is the {thing} of {name}? Answer:"
        facts.append(Fact(f"The {thing} of {name} is {like}.", asks, like))
    return tuple(facts)


def bundled_text() -> str:
    """Filler text: sentences with the words of the bundled facts that state none of those facts."""
    draw, words = random.Random("asides"), {"place": _PLACES, "like": _LIKE, "thing": _THINGS}
    told = list[str]()
    for i in range(ASIDES):
        a, b = draw.sample(_names(), 2)
        drawn = {name: draw.choice(every.split()) for name, every in words.items()}
        told.append(_ASIDES[i % len(_ASIDES)].format(a=a, b=b, **drawn))
    return " ".join(told)


def _names() -> list[str]:
    return [first + second for first in _FIRST.split() for second in _SECOND.split()]


def planted(
    facts: Sequence[Fact], hay: str, lengths: Sequence[int], count: int, seed: int, size: Callable[[str], int]
) -> list[Planted]:
    """Plant facts in `count` texts of each length in tokens; `size` counts the tokens of a text.

    Depths are stratified: one from each of `count` equal parts of the text, in random order.
    """
    sentences = [each.strip() for each in _SENTENCE.split(hay) if each.strip()]
    if not sentences:
        raise InputError(
            "there is no sentence to put facts between: give a text, or none for the bundled one"
        )
    sizes, draw, found = [size(each) for each in sentences], random.Random(seed), list[Planted]()
    for length in lengths:
        places = draw.sample(range(count), count)
        for i, place in enumerate(places):
            fact = facts[i % len(facts)]
            other = draw.choice([each for each in facts if each.answer != fact.answer])
            room = length - sum(map(size, (fact.needle, other.needle, fact.question, " " + fact.answer))) - 4
            around, at = list[str](), draw.randrange(len(sentences))
            while (room := room - sizes[at]) >= 0:
                around.append(sentences[at])
                at = (at + 1) % len(sentences)
            if len(around) < 2:
                raise InputError(
                    f"--lengths {length}: no room for the facts, the question and two sentences of the text"
                )
            depth = (place + draw.random()) / count
            found.append(_woven(around, fact, other, length, depth, draw.random()))
    return found


def _woven(
    around: Sequence[str], fact: Fact, other: Fact, length: int, depth: float, other_depth: float
) -> Planted:
    marks = {round(depth * len(around)): [fact.needle]}
    marks.setdefault(round(other_depth * len(around)), []).insert(0, other.needle)
    parts, places = list[str](), dict[str, tuple[int, int]]()
    for i in range(len(around) + 1):
        for told in (*marks.get(i, ()), *around[i : i + 1]):
            start = sum(len(each) + 1 for each in parts)
            if told in marks.get(i, ()):
                places[told] = (start, start + len(told))
            parts.append(told)
    text = " ".join((*parts, fact.question))
    return Planted(text, fact, other, length, depth, places[fact.needle], places[other.needle])
