"""The registry of verbs: their commands, questions and result kinds.

A verb is a subpackage of `attnscope.verbs`, or a package of another distribution (entry point
`attnscope.verbs`: the verb's name and its package). Its `VERB` names its parts by place (`module:name`;
`.result:Why` is relative to the package). They are imported on first use.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from os import listdir
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

FOLDER = "attnscope.verbs"


@dataclass(frozen=True)
class Kind:
    """A kind of result: where its class and its sheet function are, as `module:name`.

    Optional are `page`, the function for a page's content beside the sheet; `drawing`, a module whose
    `figure`, `pages` and `named_pages` draw in a design of their own (`no_picture` says why there is no
    picture); `files`, further formats by suffix; `again`, a program that recomputes it, and `script`, the
    function for its figures (`no_script` says why there is none); `many`, the function for its figures over
    many prompts. `name` is its name in files, filled in later.
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
    """A verb: the help heading it is `under`, and three example commands.

    `order` is its place there, lowest first. `kinds` are its result kinds by their name in files; `also` are
    other classes for `attnscope.results`, by name. Its questions are the `FORMS` of its module `question`,
    unless it has a `command` of its own. `library` are its other functions and methods (`Reading.measure`),
    by place. It is registered only if all verbs that it `needs` are. `name` and `package` are filled in when
    it is found, and for one of another distribution that one's name (`of`) and why the verb cannot be used
    (`fault`).
    """

    under: str
    examples: tuple[str, ...]
    order: int = 1000
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    library: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    name: str = ""
    package: str = ""
    of: str = ""
    fault: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the verb's package, where its word tables are."""
        return Path(str(import_module(self.package).__file__)).parent

    @property
    def forms(self) -> tuple[Any, ...]:
        """The verb's questions; empty for a verb that is only a command."""
        return () if self.command or self.fault else import_module(f"{self.package}.question").FORMS

    @property
    def questions(self) -> tuple[Any, ...]:
        """Question classes of the verb's module `question` that define library `METHODS`."""
        there = () if self.command or self.fault else vars(import_module(f"{self.package}.question")).values()
        own = (each for each in there if getattr(each, "__module__", "") == f"{self.package}.question")
        return tuple(each for each in own if isinstance(each, type) and "METHODS" in vars(each))

    def placed(self, name: str, package: str) -> "Verb":
        """The verb with its name, and with absolute instead of relative places."""

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
        library = {each: full(place) for each, place in self.library.items()}
        found = replace(self, name=name, package=package, kinds=kinds, also=also)
        return replace(found, command=full(self.command), library=library)


def there(place: str) -> Any:
    """Imports the object at a place: a module, or a name in it."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)


@cache
def registered() -> Mapping[str, Verb]:
    """All verbs by name, in the order of the help."""
    packages = {each.name: f"{FOLDER}.{each.name}" for each in iter_modules(import_module(FOLDER).__path__)}
    own = {name: import_module(package).VERB.placed(name, package) for name, package in packages.items()}
    found = own | {each.name: each for each in (_of_others(point, own) for point in entry_points(FOLDER))}
    while lacking := [each.name for each in found.values() if not {*each.needs} <= {*found}]:
        found = {name: each for name, each in found.items() if name not in lacking}
    return {each.name: each for each in sorted(found.values(), key=lambda each: (each.order, each.name))}


@cache
def kinds() -> Mapping[str, Kind]:
    """All result kinds of verbs, by their name in files."""
    return {name: kind for verb in registered().values() for name, kind in verb.kinds.items()}


def _of_others(point: Any, own: Mapping[str, Verb]) -> Verb:
    """A verb of another distribution; if it is broken, `fault` says why."""
    name, of = point.name, f"{point.dist.name} {point.dist.version}"
    try:
        if name in own:
            name += f"@{point.dist.name}"
            raise ValueError(f"there is a command '{point.name}' already")
        verb: Verb = replace(import_module(point.value).VERB.placed(name, point.value), of=of)
        if taken := [kind for kind in verb.kinds if any(kind in each.kinds for each in own.values())]:
            raise ValueError(f"there are results called '{taken[0]}' already")
        verb.questions  # noqa: B018  (loads them)
        return verb
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Verb("Of other packages", (f"attnscope {name}",), name=name, of=of, fault=said)


@cache
def entry_points(group: str) -> tuple[Any, ...]:
    """The entry points of other distributions in `group`.

    `importlib.metadata` is slow to import: it is used only where an entry_points.txt has this group.
    """
    if f"[{group}]".encode() not in _declared():
        return ()
    return tuple(import_module("importlib.metadata").entry_points(group=group))


@cache
def _declared() -> bytes:
    """The contents of all installed entry_points.txt files."""
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
def _by_place() -> Mapping[str, Kind]:
    return {kind.result: kind for kind in kinds().values()}


def public(name: str) -> Any:
    """A public class of a verb by its name in `attnscope.results`; None where there is none."""
    places = {kind.result.partition(":")[2]: kind.result for kind in kinds().values()}
    places |= {each: place for verb in registered().values() for each, place in verb.also.items()}
    return there(places[name]) if name in places else None


def kind_of(result: type) -> Kind | None:
    """The registered kind of a result class; None where no verb defines it."""
    return _by_place().get(f"{result.__module__}:{result.__qualname__}")


@cache
def in_library() -> Mapping[str, str]:
    """Places of library functions and methods that verbs define, by name."""
    return {name: place for verb in registered().values() for name, place in verb.library.items()}
