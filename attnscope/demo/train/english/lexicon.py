"""The words of the artificial language, read from words.toml and tales.toml, where they can be added to.

`sentences` and `stories` make texts of them; nothing here knows about models or tokens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kind:
    """One class of nouns with its selectional preferences: what its members do, undergo and are like."""

    name: str
    nouns: tuple[str, ...]
    does: tuple[str, ...]  # intransitive: "the door opened"
    done: tuple[str, ...]  # transitive, with the noun as the object: "she locked the door"
    like: tuple[str, ...]  # predicates: "the door was locked"
    mass: bool = False  # no plural and no "a": "bread", "water"


def read(path: Path) -> dict[str, Any]:
    """The tables of a file of words, in the order in which they stand there."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text, between commas."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


def joined(text: str) -> tuple[str, ...]:
    """The words of a text, where several of one item are joined by `_`: "take_off"."""
    return tuple(item.replace("_", " ") for item in text.split())


def _kind(row: Mapping[str, Any]) -> Kind:
    nouns, does, done, like = (joined(row[field]) for field in ("nouns", "does", "done", "like"))
    return Kind(row["name"], nouns, does, done, like, row.get("mass", False))


def _lists(table: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(items) for name, items in table.items()}


_TABLES = read(Path(__file__).with_name("words.toml"))
_TALES = read(Path(__file__).with_name("tales.toml"))
_WORDS: dict[str, tuple[str, ...]] = {name: tuple(text.split()) for name, text in _TABLES["words"].items()}
_PHRASES = {name: phrases(text) for name, text in _TABLES["phrases"].items()}

THINGS: tuple[Kind, ...] = tuple(map(_kind, _TABLES["things"]))
ANIMALS: tuple[Kind, ...] = tuple(map(_kind, _TABLES["animals"]))

HE, SHE, EITHER = (_WORDS[name] for name in ("he", "she", "either"))
HE_NAMES, SHE_NAMES, KIN = (_WORDS[name] for name in ("he_names", "she_names", "kin"))
PERSON_DOES, PERSON_DONE, PERSON_LIKE = _PHRASES["person_does"], _WORDS["person_done"], _WORDS["person_like"]
TRAITS, PERSON_TRAITS, ADVERBS = (_WORDS[name] for name in ("traits", "person_traits", "adverbs"))
LIMBS, LOST_THINGS, NUMBERS = (_WORDS[name] for name in ("limbs", "lost_things", "numbers"))
SKILLS, TIMES, ROOMS = (_PHRASES[name] for name in ("skills", "times", "rooms"))
WATCHING, NOTICED, BETWEEN = (_PHRASES[name] for name in ("watching", "noticed", "between"))

FRAMES = _lists(_TALES["frames"])
REMEDIES = _lists(_TALES["remedies"])  # a state, what one does about it
JOBS = _lists(_TALES["jobs"])  # what each of them does all day
# Where people go: the preposition for being there, what they do there.
PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (place["preposition"], tuple(place["purposes"])) for name, place in _TALES["places"].items()
}
# How a story begins (past) and what it came to: "and that is how ...".
ENDINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    name: (tuple(ending["beginnings"]), tuple(ending["outcomes"]))
    for name, ending in _TALES["endings"].items()
}
