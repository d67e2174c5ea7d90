"""Single questions to measure demo-reader with: about names that training never sees, or about others.

Every text also holds facts that nearly fit: other things of the same name, the same thing of other names, and
of names that share a piece with it. So an answer that goes by less than the whole question is mostly wrong.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from attnscope.demo.train.reading.sentences import LIKE, MET, NAMES, NEW, THINGS, Fact, Name, stated
from attnscope.demo.train.reading.stream import NONE, PASSAGE, STYLES, Pair, asking, opening, passages

NEW_NAME, MET_NAME = KINDS = ("new", "met")
STATED_SHARE = 0.75
FACT_ROOM = 13  # words of the longest sentence that states a fact


@dataclass(frozen=True)
class Prompt:
    """A text that ends where the answer belongs; `sentence` is where it is stated, empty where it is not."""

    words: tuple[str, ...]
    answer: str
    pair: Pair
    style: str
    facts: tuple[Fact, ...]
    sentence: range

    @property
    def depth(self) -> float:
        """How far into the text the fact stands: 0 at its beginning, 1 at its end."""
        return self.sentence.start / len(self.words)

    @property
    def value(self) -> int:
        """Where the word that answers stands in the passages."""
        return next(place for place in self.sentence if self.words[place] == self.answer)


def near(pair: Pair, generator: random.Random) -> list[Pair]:
    """Pairs that nearly fit: one piece of the name, the whole name or the thing is the same."""
    (first, second), thing = pair
    others = [name for name in NAMES if name != (first, second)]
    akin = [
        (generator.choice([name for name in others if name[0] == first]), thing),
        (generator.choice([name for name in others if name[1] == second]), thing),
    ]
    things = generator.sample([each for each in THINGS if each != thing], 3)
    same = [(pair[0], each) for each in things]
    return [*akin, same[0], (generator.choice(others), thing), *same[1:], (generator.choice(others), thing)]


def prompt(length: int, kind: str, generator: random.Random, style: str = "") -> Prompt:
    """A question after passages, of about `length` tokens and never more."""
    pair = generator.choice(NEW if kind == NEW_NAME else MET), generator.choice(THINGS)
    style = style or generator.choice(STYLES)
    before, (question, _) = opening(style, generator), asking(pair, style, first=True, generator=generator)
    before += PASSAGE if generator.random() < 0.7 else ()
    told = passages(
        [Fact(*each, generator.choice(LIKE)) for each in _others(pair, length, generator)],
        generator.sample(MET, 12),
        length - len(before) - len(question) - FACT_ROOM,
        generator.uniform(0.3, 0.9),
        generator,
    )
    marks = sum(text == list(PASSAGE) for text, _ in told)
    told = [each for each in told if each[0] != list(PASSAGE)]
    generator.shuffle(told)
    asked = Fact(*pair, generator.choice(LIKE)) if generator.random() < STATED_SHARE else None
    if asked:
        told.insert(generator.randint(0, len(told)), (stated(asked, generator.choice(MET), generator), asked))
    words, sentence = before, range(0)
    marked = generator.sample(range(1, len(told)), min(marks, len(told) - 1))
    for at, (text, fact) in enumerate(told):
        words = [*words, *PASSAGE] if at in marked else words
        if asked and fact is asked:
            sentence = range(len(words), len(words) + len(text))
        words = words + text
    facts = tuple(fact for _, fact in told if fact)
    return Prompt((*words, *question), asked.like if asked else NONE, pair, style, facts, sentence)


def _others(pair: Pair, length: int, generator: random.Random) -> list[Pair]:
    """The pairs of a prompt beside its own, those that nearly fit first."""
    names: list[Name] = generator.sample(NAMES, min(len(NAMES), 4 + length // 40))
    rest = [(name, thing) for name in names for thing in generator.sample(THINGS, 4)]
    generator.shuffle(rest)
    return [each for each in dict.fromkeys([*near(pair, generator), *rest]) if each != pair]
