"""Parts of a text that a template made and that have a name: `role:user`, `role:user#2`, `role:user@12`."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from attnscope.errors import InputError, listed

IS_NO = {  # a text that has none of them
    "role": "the text is no chat: --chat reads one, --system makes one of a text",
    "field": "no field of a template (--fill) and no span of a record (.jsonl) stands in it",
}
_ONE = re.compile(r"(.*)([#@])([0-9]{1,9})", re.DOTALL)


class Named(Protocol):
    """Tokens that have a name together (`attnscope.tokens.Section`)."""

    @property
    def kind(self) -> str: ...
    @property
    def called(self) -> str: ...
    @property
    def positions(self) -> tuple[int, ...]: ...


class Origin(Protocol):
    """How tokens were given (`attnscope.tokens.Given`)."""

    @property
    def no_roles(self) -> str: ...


def section_named(positions: Sequence[int], there: Sequence[Named], wanted: str) -> tuple[int, ...]:
    """The places of the one of `there` that is meant; `positions` says what a reader is told of a place.

    Raises `InputError` that lists what there is, and where, for none and for several.
    """
    name, sign, number = wanted.casefold(), "", 0
    named = [each.called.casefold() for each in there]
    if name not in named and (one := _ONE.fullmatch(name)):
        name, sign, number = one[1], one[2], int(one[3])
    places = [each.positions for each, called in zip(there, named, strict=True) if called == name]
    if sign == "#":
        places = places[number - 1 : number] if number else []
    elif sign:
        places = [each for each in places if positions[each[0]] == number]
    if len(places) == 1:
        return places[0]
    every = dict(zip(_choices(positions, there), named, strict=True))
    if places:
        choices = ", ".join(choice for choice, each in every.items() if each == name)
        raise InputError(f"'{wanted}' stands {len(places)} times: choose one of {choices}")
    choices = ", ".join(every)
    raise InputError(f"no {there[0].kind} '{wanted}' in the input: there are {choices}")


def called(sections: Sequence[Named]) -> list[str]:
    """What each is called, where several have one name with its number: `role:user#2`."""
    names = [each.called for each in sections]
    return [
        f"{name}#{names[: i + 1].count(name)}" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]


def _choices(positions: Sequence[int], there: Sequence[Named]) -> Iterator[str]:
    for name, each in zip(called(there), there, strict=True):
        yield f"{name} ({listed([positions[place] for place in each.positions])})"
