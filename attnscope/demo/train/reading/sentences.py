"""demo-reader's texts: facts in several orders of words, sentences beside the point, questions, and words.

In a pattern N and M stand for names, T for a thing, V for what it is like; the other words are themselves. A
name is two pieces, "mar ##na", and every first piece goes with every second one. One name in five is new: it
stands nowhere in training, though both of its pieces do in other names.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

Name = tuple[str, str]

_WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(text.split())
    for name, text in tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8")).items()
}
FIRST, SECOND = _WORDS["first"], tuple(f"##{piece}" for piece in _WORDS["second"])
THINGS, LIKE = _WORDS["things"], _WORDS["like"]
PLACES, MOVES, MOODS, TIMES = (_WORDS[name] for name in ("places", "moves", "moods", "times"))

NAMES: tuple[Name, ...] = tuple(product(FIRST, SECOND))
_FIRST, _SECOND = ({piece: at for at, piece in enumerate(pieces)} for pieces in (FIRST, SECOND))


def is_new(name: Name) -> bool:
    """Whether a name stands nowhere in training."""
    return (_FIRST[name[0]] + 3 * _SECOND[name[1]]) % 5 == 0


MET: tuple[Name, ...] = tuple(name for name in NAMES if not is_new(name))
NEW: tuple[Name, ...] = tuple(name for name in NAMES if is_new(name))


# With their weights. What is said comes last here, and in OTHERS before the thing.
LAST: dict[str, int] = {
    "the T of N is V .": 3,
    "N ' s T is V .": 3,
    "for N , the T is V .": 1,
    "M says that the T of N is V .": 1,
}
OTHERS: dict[str, int] = {"N has a V T .": 4, "M says that N has a V T .": 1}
FACTS = LAST | OTHERS
ASIDES: tuple[str, ...] = (
    "N MOVES to the PLACES with M .",
    "N lost the T near the PLACES TIMES .",
    "the PLACES was V TIMES .",
    "N was MOODS and M was MOODS .",
    "N talks to M about a V T .",
    "the weather was V by the PLACES .",
)
QUESTIONS: tuple[str, ...] = ("what is the T of N ?", "what is N ' s T ?", "which T does N have ?")
BEGUN: tuple[str, ...] = ("in short , the T of N is", "in short , N ' s T is")
_LISTS: dict[str, Sequence[str]] = {"MOVES": MOVES, "PLACES": PLACES, "MOODS": MOODS, "TIMES": TIMES}


@dataclass(frozen=True)
class Fact:
    """What one thing of one person is like."""

    name: Name
    thing: str
    like: str

    @property
    def pair(self) -> tuple[Name, str]:
        """Whose thing it is."""
        return self.name, self.thing


def filled(pattern: str, slots: Mapping[str, Sequence[str]]) -> list[str]:
    """The words of a pattern, each slot replaced by its words."""
    return [word for part in pattern.split() for word in slots.get(part, (part,))]


def stated(fact: Fact, other: Name, generator: random.Random, easy: bool = False) -> list[str]:
    """A sentence that states a fact; in some forms it is `other` who says it.

    In an easy text what is said comes last.
    """
    forms = LAST if easy else FACTS
    (pattern,) = generator.choices(list(forms), list(forms.values()))
    return filled(pattern, {"N": fact.name, "M": other, "T": (fact.thing,), "V": (fact.like,)})


def aside(names: Sequence[Name], generator: random.Random) -> list[str]:
    """A sentence that states no fact, although it may hold a name, a thing and what something is like."""
    name, other = generator.sample(names, 2)
    slots: dict[str, Sequence[str]] = {key: (generator.choice(words),) for key, words in _LISTS.items()}
    slots |= {"N": name, "M": other, "T": (generator.choice(THINGS),), "V": (generator.choice(LIKE),)}
    return filled(generator.choice(ASIDES), slots)


def question(pair: tuple[Name, str], begun: bool, generator: random.Random) -> list[str]:
    """A question about a thing of a person, or a sentence begun, which the answer ends."""
    name, thing = pair
    return filled(generator.choice(BEGUN if begun else QUESTIONS), {"N": name, "T": (thing,)})


def vocabulary() -> list[str]:
    """Every word and piece that a sentence of this module can hold, in alphabetical order."""
    slots = {"N", "M", "T", "V", *_LISTS}
    patterns = " ".join((*FACTS, *ASIDES, *QUESTIONS, *BEGUN)).split()
    named = {piece for name in MET for piece in name}
    return sorted({*patterns} - slots | named | {*THINGS, *LIKE, *MOVES, *PLACES, *MOODS, *TIMES})
