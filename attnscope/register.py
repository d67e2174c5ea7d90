"""Which verbs there are, and what each brings: its command, its questions, the kinds of its results.

A verb is a folder of `attnscope.verbs`, or a package of somebody else (an entry point `attnscope.verbs`: the
verb's name, and its package), whose `VERB` says by place (`module:name`; `.result:Why` is of the
folder itself) where its parts are. Nothing of them is loaded before it is used.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from os import listdir
from pkgutil import iter_modules
from typing import Any

FOLDER = "attnscope.verbs"


@dataclass(frozen=True)
class Kind:
    """A kind of result: the place of its class, and the module whose `sheet` says what it shows."""

    result: str
    sheet: str


@dataclass(frozen=True)
class Verb:
    """A verb: the heading of the help that it stands `under`, and three examples of its command.

    `order` is where it stands there, the lowest first. `kinds` are those of its results, by the name that
    files give them. Its questions are the `FORMS` of its module `question`; a `command` is one that is not
    made of these. `library` are functions of the package and methods (`Reading.measure`) that are not made
    of them either, by their places. It is there where all verbs are that it `needs`.
    `name` and `package` are filled in where it is found, and for one of another distribution what that is
    called (`of`) and why it cannot be used (`fault`).
    """

    under: str
    examples: tuple[str, ...]
    order: int = 1000
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    command: str = ""
    library: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    name: str = ""
    package: str = ""
    of: str = ""
    fault: str = ""

    @property
    def forms(self) -> tuple[Any, ...]:
        """Its questions; none of a verb that is a command alone."""
        return () if self.command or self.fault else import_module(f"{self.package}.question").FORMS

    @property
    def questions(self) -> tuple[Any, ...]:
        """Every class of its module `question` that says which methods of the library ask it."""
        there = () if self.command or self.fault else vars(import_module(f"{self.package}.question")).values()
        own = (each for each in there if getattr(each, "__module__", "") == f"{self.package}.question")
        return tuple(each for each in own if isinstance(each, type) and "METHODS" in vars(each))

    def full(self, place: str) -> str:
        """A place as Python has it."""
        return self.package + place if place[0] == "." else place

    def there(self, place: str) -> Any:
        """What stands at a place, a module or `module:name`."""
        module, _, name = self.full(place).partition(":")
        return getattr(import_module(module), name) if name else import_module(module)


@cache
def registered() -> Mapping[str, Verb]:
    """All verbs by name, in the order of the help."""
    there = iter_modules(import_module(FOLDER).__path__)
    own = {each.name: _verb(each.name, f"{FOLDER}.{each.name}") for each in there}
    found = own | {each.name: _of_others(each, own) for each in entry_points(FOLDER) if each.name not in own}
    while lacking := [each.name for each in found.values() if not {*each.needs} <= {*found}]:
        found = {name: each for name, each in found.items() if name not in lacking}
    return {each.name: each for each in sorted(found.values(), key=lambda each: (each.order, each.name))}


def _verb(name: str, package: str) -> Verb:
    verb: Verb = import_module(package).VERB
    return replace(verb, name=name, package=package)


def _of_others(point: Any, own: Mapping[str, Verb]) -> Verb:
    """A verb of another distribution; whatever is wrong with it, the others go on."""
    of = f"{point.dist.name} {point.dist.version}"
    try:
        verb = replace(_verb(point.name, point.value), of=of)
        if taken := [kind for kind in verb.kinds if any(kind in each.kinds for each in own.values())]:
            raise ValueError(f"there are results called '{taken[0]}' already")
        verb.questions  # noqa: B018  (loads them)
        return verb
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Verb("Of other packages", (f"attnscope {point.name}",), name=point.name, of=of, fault=said)


@cache
def entry_points(group: str) -> tuple[Any, ...]:
    """What other distributions give under this name.

    `importlib.metadata` takes longer than all else here: it is asked where a file has such a name.
    """
    if f"[{group}]".encode() not in _declared():
        return ()
    return tuple(import_module("importlib.metadata").entry_points(group=group))


@cache
def _declared() -> bytes:
    """What all distributions say of their entry points."""
    files = []
    for folder in dict.fromkeys(each or "." for each in sys.path):
        with suppress(OSError):
            files += [
                f"{folder}/{name}/entry_points.txt" for name in listdir(folder) if name.endswith("-info")
            ]
    told = b""
    for file in files:
        with suppress(OSError), open(file, "rb", buffering=0) as opened:
            told += opened.read()
    return told


@cache
def kinds() -> Mapping[str, tuple[Verb, Kind]]:
    """Every kind of result that a verb has, by the name that files give it, with its verb."""
    return {name: (verb, kind) for verb in registered().values() for name, kind in verb.kinds.items()}


@cache
def in_library() -> Mapping[str, Verb]:
    """The verb of every function and method that one puts in the library."""
    return {name: verb for verb in registered().values() for name in verb.library}
