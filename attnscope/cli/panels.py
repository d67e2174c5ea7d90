"""Groups of options that commands take whole, and the help in which they stand under their headings.

A command that asks for a group (`read: Read`, `request: Request`) gets the options of the group's constructor
in that place; `grouped` turns its signature into the flat one that Typer reads.
"""

import inspect
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand

from attnscope.cli.examples import EXAMPLES

SHOWN = "What is shown, and how"  # of the options that a command has for itself
PICTURES = "Pictures"
BESIDES = "Besides"


class Panelled(TyperCommand):
    """A command whose options stand under what they are about, as `grouped` has noted it.

    Its help opens with its `EXAMPLES`, in lines that are never broken.
    """

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for example in EXAMPLES[self.name or ""]:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options, the headings in the order in which they first occur."""
        noted: dict[str, str] = getattr(self.callback, "panels", {})
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_option = parameter.param_type_name == "option"
                panel = noted.get(parameter.name or "", BESIDES) if is_option else "Arguments"
                panels.setdefault(panel, []).append(record)
        for heading, records in panels.items():
            if not records:
                continue
            with formatter.section(heading):
                formatter.write_dl(records)


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

    flat = [
        parameter
        for name in taken
        for parameter in (groups[name].values() if name in groups else (taken[name],))
    ]
    flat = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in flat]
    for parameter in flat:
        if parameter.default is None or parameter.default is False:  # a flag that is off says so by its name
            parameter.annotation.__metadata__[0].show_default = False
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__doc__, call.__name__ = command.__doc__, command.__name__
    panels = {name: getattr(taken[name].annotation, "PANEL", SHOWN) for name in groups}
    call.panels = {  # type: ignore[attr-defined]  # read by `Panelled`
        option: getattr(taken[name].annotation, "PANELS", {}).get(option, panels.get(name, SHOWN))
        for name in taken
        for option in (groups.get(name) or (name,))
    }
    return call
