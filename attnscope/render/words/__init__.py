"""Sentences of each verb: `find.jinja` has those of `find`, a macro for each case and phrase.

    say = Said("find", result, {"head": "L3 H11", "own": 0.93, ...})
    say("one")             # its text in one line, filled with these facts; of `a case` the macro is a_case
    say.lines("legend")    # its paragraphs, which blank lines part

A table names facts and macros, its own and those of `common.jinja`; line breaks in it are blanks. What is
no fact is what the result has under that name. A number gets its form from a filter, `{{ own | weight }}`. A
fact that has no meaning for a result is None.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from jinja2.runtime import Context
from jinja2.utils import missing
from markupsafe import Markup

from attnscope.errors import listed
from attnscope.register import registered
from attnscope.render.kit import numbers

_RESULT = "result"  # in a table
_BLANK = "\0"  # stands for those of facts, which are not of the table


def _fact(value: object) -> Markup:
    """A fact as Markup that keeps repeated blanks; the output of a macro is unchanged."""
    return value if isinstance(value, Markup) else Markup(str(value).replace(" ", _BLANK))


def _of(form: Callable[..., str]) -> Callable[..., str]:
    return lambda value, *given: numbers.NONE if value is None else form(value, *given)


def _nth(place: int) -> str:
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _names(names: Iterable[object], most: int = 3) -> str:
    """`L0 H7`, `L0 H7 and L0 H1`, `L0 H7, L0 H1, L1 H6 and 2 more`."""
    every = list(map(str, names))
    if len(every) > most + 1:
        every = [*every[:most], f"{len(every) - most} more"]
    return " and ".join([", ".join(every[:-1]), every[-1]] if every[1:] else every)


FORMS: Mapping[str, Callable[..., str]] = {
    "weight": numbers.weight,
    "chance": numbers.likely,
    "percent": numbers.percent,
    "number": numbers.number,
    "signed": numbers.signed,
    "digits": numbers.significant,
    "parameter": numbers.parameter,
    "amount": numbers.amount,  # {{ 438e6 | amount("B") }}: 438 MB
    "roughly": numbers.roughly,
    "times": lambda value: f"{numbers.significant(float(f'{value:.1e}'))} times",
    "count": numbers.counted,  # {{ 12 | count("head") }}: 12 heads
    "plural": numbers.plural,
    "many": lambda count, one, several: one if count == 1 else several,  # {{ n | many("does", "do") }}
    "nth": _nth,
    "begun": lambda sentence: sentence[:1].upper() + sentence[1:],  # where a sentence or a title begins so
    "odds": lambda logits: FORMS["times"](exp(logits)),  # of a difference of logits
    "list": listed,
    "names": _names,
}


class _Facts(Context):
    """Template context: facts first, then attributes of the result."""

    def resolve_or_missing(self, key: str) -> Any:
        found = super().resolve_or_missing(key)
        return getattr(self.parent.get(_RESULT), key, missing) if found is missing else found


@cache
def environment() -> Environment:
    folders = [Path(__file__).parent, *(verb.folder for verb in registered().values() if not verb.fault)]
    made = Environment(loader=FileSystemLoader(folders), autoescape=True, finalize=_fact)
    made.context_class = _Facts
    made.filters |= {name: _of(form) for name, form in FORMS.items()}
    return made


class Said:
    """The sentences of one verb about one result; `say(name)` gives one line of text."""

    def __init__(self, verb: str, result: object = None, facts: Mapping[str, object] | None = None) -> None:
        self.result, self.facts = result, facts or {}
        template = environment().get_template(f"{verb}.jinja")
        self._macros = template.make_module({**self.facts, _RESULT: result})

    def __contains__(self, name: str) -> bool:
        return hasattr(self._macros, name)

    def __call__(self, name: str, *given: object) -> str:
        return " ".join(self.lines(name, *given))

    def lines(self, name: str, *given: object) -> Iterator[str]:
        text: str = str(getattr(self._macros, name.replace(" ", "_"))(*given))
        for paragraph in re.split(r"\n\s*\n", text):
            if line := " ".join(re.split(r"[ \n]+", paragraph)).strip():
                yield line.replace(_BLANK, " ")
