"""Options: how a question's fields appear on the command line, with their names and help texts.

The type and the default are those of the field itself.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from attnscope.errors import InputError
from attnscope.printable import FileWord

SHOWN, ATTENTION = "What is shown, and how", "Which attention"  # headings of the help with every option
OWN = object()  # marks the field's own default
WHICH, WHAT, OUT = "Which", "What", "Out"  # headings of the help on one screen


@dataclass(frozen=True)
class Option:
    """A command-line option: its `names`, its `help`, and `brief`, its line in the short help.

    `former` names still work and are not in the help. `usual` is the command line's default where that
    differs from the field's own, or the field has none. A number is from `least` to `most`; a `large` one may
    be written as 1e8. With `several` the command takes a list. `panel` is the heading in the full help, by
    default the PANEL of the class.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None = None
    brief: str | None = None
    brief_metavar: str | None = None
    under: str = WHAT
    panel: str | None = None
    former: tuple[str, ...] = ()
    usual: Any = OWN
    least: int | None = None
    most: int | None = None
    large: bool = False
    several: bool = False

    @property
    def name(self) -> str:
        """The name used in messages: the first long one, else the metavar."""
        return next((name for name in self.names if name.startswith("--")), self.metavar or "")


def option(*names: str, help: str, **more: Any) -> Option:
    """An option with these names."""
    return Option(names, help, **more)


def argument(metavar: str, *, help: str, **more: Any) -> Option:
    """A positional argument: an option without names."""
    return Option((), help, metavar, **more)


@dataclass(frozen=True)
class Slot:
    """A field that is an option: `hint` is its type, `own` its default."""

    hint: Any
    own: Any
    option: Option

    @property
    def default(self) -> Any:
        """Default on the command line; `MISSING` for a required option."""
        return self.own if self.option.usual is OWN else self.option.usual

    @property
    def typed(self) -> Any:
        """Type that the command line reads: Path where the field's first type is one, else str if it may."""
        if self.option.several:
            return list[str]
        kinds = get_args(self.hint) if get_origin(self.hint) in (Union, UnionType) else (self.hint,)
        first = (Path,) if kinds[0] is Path else ()
        meant: Any = next((kind for kind in (*first, str, bool, int, float) if kind in kinds), kinds[0])
        return meant | None if NoneType in kinds or self.default in (None, MISSING) else meant

    @property
    def repeated(self) -> bool:
        """True where the option is given once for each of several values."""
        return list in [get_origin(each) for each in (self.typed, *get_args(self.typed))]


def words(of: Any, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Command-line words for the options that differ from their defaults: all, or those of `names`.

    A file that does not exist, as a pipe's, becomes a placeholder name.
    """
    every, free = slots(type(of)), signature(type(of)).parameters
    given = ((name, every[name], getattr(of, name)) for name in (every if names is None else names))
    return tuple(
        word
        for name, slot, value in given
        if value not in (slot.own, slot.default) or (name not in free and value)  # chooses the form
        for word in _said(slot, value)
    )


def given_of(of: Any, names: Iterable[str]) -> list[str]:
    """Those option names among `names` whose values are neither None nor False."""
    fields_by_name = {slot.option.name: name for name, slot in slots(type(of)).items()}
    return [name for name in names if getattr(of, fields_by_name[name]) not in (None, False)]


def _said(slot: Slot, value: Any) -> Iterator[str]:
    option = slot.option
    if slot.repeated:
        yield from (word for each in value for word in (*option.names[:1], str(each)))
        return
    if isinstance(value, bool):
        on, _, off = option.name.partition("/")
        yield off if off and not value else on
        return
    yield from [option.name] if option.names else []
    if option.metavar == "FILE" or isinstance(value, Path):
        file = str(getattr(value, "file", value))
        yield FileWord(file if file == "-" or os.path.isfile(file) else f"your-{option.name[2:]}-file")
    elif isinstance(value, int) and (option.metavar or "").startswith("TOKEN"):
        yield f"@{value}"  # a position, not a token spelled so
    else:
        several = isinstance(value, Sequence) and not isinstance(value, str)
        yield ",".join(map(str, value)) if several else str(value)


def spoken(kinds: Iterable[Any], said: Iterable[str]) -> dict[str, Any]:
    """Field values from command-line words, the inverse of `words`.

    `InputError` for an unknown option, and for a word that should be a number and is none.
    """
    every = [*slots_of(kinds).items()]
    options = {each: pair for pair in every for names in pair[1].option.names for each in names.split("/")}
    arguments = [pair for pair in every if not pair[1].option.names]
    given, rest = dict[str, Any](), iter(said)
    for word in rest:
        if word not in options and not arguments:
            raise InputError(f"no option '{word}' here")
        name, slot = options[word] if word in options else arguments.pop(0)
        kinds_read = get_args(slot.typed) or (slot.typed,)
        if bool in kinds_read:
            given[name] = slot.own is not True and word == slot.option.name.partition("/")[0]
            continue
        value = next(rest, "") if word in options else word
        if slot.repeated:
            given.setdefault(name, []).append(value)
            continue
        try:
            given[name] = next((kind for kind in (int, float, Path) if kind in kinds_read), str)(value)
        except ValueError as error:
            raise InputError(f"{word} is '{value}', which is no number") from error
    return given


def slot_of(annotation: Any, default: Any) -> Slot | None:
    """The slot of a field or a parameter; None where its annotation has no `Option`."""
    hint, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    told = next((mark for mark in marks if isinstance(mark, Option)), None)
    return None if told is None else Slot(hint, default, told)


def slots(question: Any) -> Mapping[str, Slot]:
    """A question's fields that are options, by name."""
    return _slots(question)


def slots_of(forms: Iterable[Any]) -> Mapping[str, Slot]:
    """The options of all forms of a question, by field name; later forms' names win."""
    found = dict[str, Slot]()
    for form in reversed([*forms]):
        there = {*found, *(slot.option for slot in found.values())}
        found |= {name: slot for name, slot in slots(form).items() if not {name, slot.option} & there}
    return found


@cache
def _slots(question: Any) -> Mapping[str, Slot]:
    """Fields that are options, in order of the classes: the question's own first, then inherited ones."""
    every = {each.name: each for each in fields(question)} if is_dataclass(question) else {}
    named = dict.fromkeys(name for each in question.__mro__ for name in vars(each).get("__annotations__", ()))
    found = {name: slot_of(every[name].type, every[name].default) for name in named if name in every}
    return {name: slot for name, slot in found.items() if slot is not None}
