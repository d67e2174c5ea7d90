"""What a field of a question is on the command line: its names, and what the two helps say of it.

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
OWN = object()  # the default that the field has itself
WHICH, WHAT, OUT = "Which", "What", "Out"  # headings of the help on one screen


@dataclass(frozen=True)
class Option:
    """An option: its `names`, its `help`, and `brief`, its line in the help on one screen.

    `former` names still work and stand in no help. `usual` is the default on the command line where that is
    another one than the field's own, or the field has none. A number is from `least` to `most`; a `large` one
    may be written as 1e8. Of what there may be `several` of the command is given a list. `panel` is the
    heading in the help with every option, by default the PANEL of the class.
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
        """The name that messages say."""
        return next((name for name in self.names if name.startswith("--")), self.metavar or "")


def option(*names: str, help: str, **more: Any) -> Option:
    """An option of these names."""
    return Option(names, help, **more)


def argument(metavar: str, *, help: str, **more: Any) -> Option:
    """What stands in a command without a name: an option that has none."""
    return Option((), help, metavar, **more)


@dataclass(frozen=True)
class Slot:
    """A field with its option: `hint` is its type, `own` its default."""

    hint: Any
    own: Any
    option: Option

    @property
    def default(self) -> Any:
        """On the command line; `MISSING` where it has to be given there too."""
        return self.own if self.option.usual is OWN else self.option.usual

    @property
    def typed(self) -> Any:
        """The type that the command line reads: text, wherever the field takes text and no path before it."""
        if self.option.several:
            return list[str]
        kinds = get_args(self.hint) if get_origin(self.hint) in (Union, UnionType) else (self.hint,)
        first = (Path,) if kinds[0] is Path else ()
        meant: Any = next((kind for kind in (*first, str, bool, int, float) if kind in kinds), kinds[0])
        return meant | None if NoneType in kinds or self.default in (None, MISSING) else meant

    @property
    def repeated(self) -> bool:
        """Whether it is said once for each of several values."""
        return list in [get_origin(each) for each in (self.typed, *get_args(self.typed))]


def words(of: Any, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """The options that are not at their default, as words of a command: of all fields, or of these `names`.

    A file that is gone when the command is run, as a pipe is, stands as a name to be put in.
    """
    every, free = slots(type(of)), signature(type(of)).parameters
    given = ((name, every[name], getattr(of, name)) for name in (every if names is None else names))
    return tuple(
        word
        for name, slot, value in given
        if value not in (slot.own, slot.default) or (name not in free and value)  # which says what form it is
        for word in _said(slot, value)
    )


def given_of(of: Any, names: Iterable[str]) -> list[str]:
    """Those of the options with these names that were given."""
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
        yield f"@{value}"  # the position, and no token that is called so
    else:
        several = isinstance(value, Sequence) and not isinstance(value, str)
        yield ",".join(map(str, value)) if several else str(value)


def spoken(kinds: Iterable[Any], said: Iterable[str]) -> dict[str, Any]:
    """The values of the fields that words of a command give, the other way round than `words`.

    `InputError` for an option that none of them has, and for what is no number where one belongs.
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
    """A field or a parameter with its option; None where it has none."""
    hint, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    told = next((mark for mark in marks if isinstance(mark, Option)), None)
    return None if told is None else Slot(hint, default, told)


def slots(question: Any) -> Mapping[str, Slot]:
    """The fields of a question that are options, by name."""
    return _slots(question)


def slots_of(forms: Iterable[Any]) -> Mapping[str, Slot]:
    """The options of all forms of a question, each by the name that the last of them has for it."""
    found = dict[str, Slot]()
    for form in reversed([*forms]):
        there = {*found, *(slot.option for slot in found.values())}
        found |= {name: slot for name, slot in slots(form).items() if not {name, slot.option} & there}
    return found


@cache
def _slots(question: Any) -> Mapping[str, Slot]:
    """Its own first, then those that it shares with others."""
    every = {each.name: each for each in fields(question)} if is_dataclass(question) else {}
    named = dict.fromkeys(name for each in question.__mro__ for name in vars(each).get("__annotations__", ()))
    found = {name: slot_of(every[name].type, every[name].default) for name in named if name in every}
    return {name: slot for name, slot in found.items() if slot is not None}
