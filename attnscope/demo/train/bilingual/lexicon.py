"""The English words that the translation model knows, with their French, read from words.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.demo.train.bilingual import french
from attnscope.demo.train.english import inflection
from attnscope.demo.train.english.lexicon import joined, phrases, read


@dataclass(frozen=True)
class Noun:
    """An English noun and its French. `mass`: no plural and no "a"; `name`: no article either."""

    english: str
    french: str
    feminine: bool
    mass: bool = False
    name: bool = False

    @property
    def countable(self) -> bool:
        return not (self.mass or self.name)

    def forms(self, plural: bool) -> tuple[str, str]:
        """The English and the French form."""
        if not plural:
            return self.english, self.french
        return inflection.plural(self.english), french.plural(self.french)


@dataclass(frozen=True)
class Adjective:
    """An English adjective and the French masculine and feminine; `fixed` ones have one form only."""

    english: str
    masculine: str
    feminine: str
    fixed: bool = False

    def form(self, agreement: french.Agreement) -> str:
        """The French form: "blanches"."""
        form = self.feminine if agreement.feminine else self.masculine
        return french.plural(form) if agreement.plural and not self.fixed else form


@dataclass(frozen=True)
class Verb:
    """An English verb and a French infinitive.

    `reflexive`: "s'ouvrir". `moves`: its past is made with "être". `state`: its simple past is an imparfait,
    and it has no progressive.
    """

    english: str
    french: str
    reflexive: bool = False
    moves: bool = False
    state: bool = False


@dataclass(frozen=True)
class Class:
    """Nouns with what they do, what people do to them and what they are like."""

    name: str
    nouns: tuple[Noun, ...]
    does: tuple[str, ...]
    done: tuple[str, ...]
    like: tuple[str, ...]  # groups of adjectives


def _nouns(text: str, mass: bool = False, name: bool = False) -> tuple[Noun, ...]:
    """Nouns out of "door porte f, window fenêtre f"."""
    rows = (item.split() for item in text.split(","))
    return tuple(Noun(english, french_, gender == "f", mass, name) for english, french_, gender in rows)


def _adjectives(text: str) -> tuple[Adjective, ...]:
    """Adjectives out of "red rouge, white blanc blanche, orange orange =" (= has one form only)."""
    adjectives = []
    for item in text.split(","):
        english, masculine, *rest = item.split()
        fixed = rest == ["="]
        feminine = masculine if fixed else rest[0] if rest else french.feminine(masculine)
        adjectives.append(Adjective(english, masculine, feminine, fixed))
    return tuple(adjectives)


def _verbs(text: str) -> dict[str, Verb]:
    """Verbs out of "open: ouvrir, fall: tomber +, want: vouloir =" (+ moves, = state, se reflexive)."""
    verbs = {}
    for item in phrases(text):
        english, _, words = item.partition(": ")
        marks = words.split()
        name = next(word for word in marks if word not in ("se", "+", "="))
        verbs[english] = Verb(english, name, "se" in marks, "+" in marks, "=" in marks)
    return verbs


def _class(row: Mapping[str, Any]) -> Class:
    nouns = _nouns(row["nouns"], row.get("mass", False))
    return Class(row["name"], nouns, joined(row["does"]), joined(row["done"]), tuple(row["like"].split()))


_TABLES = read(Path(__file__).with_name("words.toml"))
_NOUNS: dict[str, str] = _TABLES["nouns"]
_DOINGS = {name: phrases(text) for name, text in _TABLES["doings"].items()}
_SETS = {name: frozenset(text.split()) for name, text in _TABLES["words"].items()}

ADJECTIVES = {name: _adjectives(text) for name, text in _TABLES["adjectives"].items()}
THINGS: tuple[Class, ...] = tuple(map(_class, _TABLES["things"]))
ANIMALS: tuple[Class, ...] = tuple(map(_class, _TABLES["animals"]))
HE, SHE = (_nouns(_NOUNS[name]) for name in ("he", "she"))
HE_NAMES, SHE_NAMES = (_nouns(_NOUNS[name], name=True) for name in ("he_names", "she_names"))
PUBLIC, INSIDE, SURFACES = (_nouns(_NOUNS[name]) for name in ("public", "inside", "surfaces"))
# What the tokenizer does not know is not translated.
UNKNOWN = Noun("[UNK]", "[UNK]", feminine=False, name=True)
UNKNOWN_ADJECTIVE = Adjective("[UNK]", "[UNK]", "[UNK]", fixed=True)

VERBS, REFLEXIVE, WITH_OBJECT = (
    _verbs(_TABLES["verbs"][name]) for name in ("ordinary", "reflexive", "with_object")
)
PERSON_DOES, ANIMAL_DOES, BY_ANIMAL = (_DOINGS[name] for name in ("person_does", "animal_does", "by_animal"))
TO_THING, TO_SOMEBODY, TO_ANIMAL = (_DOINGS[name] for name in ("to_thing", "to_somebody", "to_animal"))
KIN, ONLY_ONE, UNGRADED, AT_ONCE = (_SETS[name] for name in ("kin", "only_one", "ungraded", "at_once"))
NUMBERS: dict[str, str] = _TABLES["numbers"]
MANNERS: dict[str, str] = _TABLES["manners"]
PREPOSITIONS: dict[str, str] = _TABLES["prepositions"]
TIMES: dict[str, dict[str, str]] = _TABLES["times"]
