"""Groups of options that commands take whole.

A command that asks for a group (`texts: Texts`, `request: Request`) gets the options of the group's
constructor in that place; `grouped` turns its signature into the flat one that Typer reads.
"""

import inspect
from collections.abc import Callable
from typing import Any

from attnscope.cli.panels import SHOWN


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` for Typer: every parameter that is a group stands open as that group's own options."""
    taken = inspect.signature(command).parameters
    groups = {
        name: inspect.signature(parameter.annotation).parameters
        for name, parameter in taken.items()
        if inspect.isclass(parameter.annotation)
    }

    def call(**given: Any) -> None:
        for name, fields in groups.items():
            given[name] = taken[name].annotation(**{field: given.pop(field) for field in fields})
        command(**given)

    flat = [each for name in taken for each in (groups[name].values() if name in groups else (taken[name],))]
    flat = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__doc__, call.__name__ = command.__doc__, command.__name__
    panels = {name: getattr(taken[name].annotation, "PANEL", SHOWN) for name in groups}
    call.panels = {  # type: ignore[attr-defined]  # read by `panels.Panelled`
        each: getattr(taken[name].annotation, "PANELS", {}).get(each, panels.get(name, SHOWN))
        for name in taken
        for each in (groups.get(name) or (name,))
    }
    return call
