"""Which verbs there are, and what each brings: its command, its questions, the kinds of its results.

A verb is a folder of `attnscope.verbs`, whose `VERB` says by place (`module:name`; `.result:Why` is of the
folder itself) where its parts are. Nothing of them is loaded before it is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

FOLDER = "attnscope.verbs"


@dataclass(frozen=True)
class Kind:
    """A kind of result: the place of its class, and that of the function that makes its sheet.

    What only some have: `page` is the function that says what a page shows beside the sheet. `drawing` is
    a module whose `figure`, `pages` and `named_pages` draw in a design of their own; `no_picture` says why it
    has no picture. `files` are further formats by their suffix. `script` gives a program its figures, `again`
    is that program; `no_script` says why there is none. `many` makes figures of one for many prompts.
    `name` is what files call it, and is filled in.
    """

    result: str
    sheet: str
    page: str = ""
    drawing: str = ""
    no_picture: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    script: str = ""
    again: str = ""
    many: str = ""
    no_script: str = ""
    name: str = ""


_PLACES = ("result", "sheet", "page", "drawing", "script", "again", "many")


@dataclass(frozen=True)
class Verb:
    """A verb: the heading of the help that it stands `under`, and three examples of its command.

    `order` is where it stands there, the lowest first. `kinds` are those of its results, by the name that
    files give them; `also` are other classes that `attnscope.results` has of it, by name. Its questions are
    the `FORMS` of its module `question`; a `command` is one that is not made of these. `name` and `package`
    are filled in where it is found.
    """

    under: str
    examples: tuple[str, ...]
    order: int = 1000
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    name: str = ""
    package: str = ""

    @property
    def folder(self) -> Path:
        """Where it lies; `Said` finds its tables of words there."""
        return Path(str(import_module(self.package).__file__)).parent

    @property
    def forms(self) -> tuple[Any, ...]:
        """Its questions; none of a verb that is a command alone."""
        return () if self.command else import_module(f"{self.package}.question").FORMS

    def found(self, name: str, package: str) -> "Verb":
        """The verb as it is called, and its places as Python has them."""

        def full(place: str) -> str:
            return package + place if place[:1] == "." else place

        kinds = {
            each: replace(
                kind,
                name=each,
                files={suffix: full(place) for suffix, place in kind.files.items()},
                **{part: full(getattr(kind, part)) for part in _PLACES},
            )
            for each, kind in self.kinds.items()
        }
        also = {each: full(place) for each, place in self.also.items()}
        command = full(self.command)
        return replace(self, name=name, package=package, kinds=kinds, also=also, command=command)


def there(place: str) -> Any:
    """What stands at a place: a module, or what has a name in it."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)


@cache
def registered() -> Mapping[str, Verb]:
    """All verbs by name, in the order of the help."""
    packages = {each.name: f"{FOLDER}.{each.name}" for each in iter_modules(import_module(FOLDER).__path__)}
    found = [import_module(package).VERB.found(name, package) for name, package in packages.items()]
    return {each.name: each for each in sorted(found, key=lambda each: (each.order, each.name))}


@cache
def kinds() -> Mapping[str, Kind]:
    """Every kind of result that a verb has, by the name that files give it."""
    return {name: kind for verb in registered().values() for name, kind in verb.kinds.items()}


@cache
def _by_place() -> Mapping[str, Kind]:
    return {kind.result: kind for kind in kinds().values()}


def public(name: str) -> Any:
    """The class of a verb that `attnscope.results` has by this name; None where there is none."""
    places = {kind.result.partition(":")[2]: kind.result for kind in kinds().values()}
    places |= {each: place for verb in registered().values() for each, place in verb.also.items()}
    return there(places[name]) if name in places else None


def kind_of(result: type) -> Kind | None:
    """The kind that results of this class are; None of those that no verb brings."""
    return _by_place().get(f"{result.__module__}:{result.__qualname__}")
