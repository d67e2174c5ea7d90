"""Groups of options that commands take whole, and the two helps of a command: on one screen, and in full.

A command that asks for a group (`read: Read`, `request: Request`) gets the options of the group's constructor
in that place; `grouped` turns its signature into the flat one that Typer reads. Which options stand in the
help on one screen is said beside each option, by a `Brief`.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from attnscope.cli import streams
from attnscope.cli.examples import EXAMPLES
from attnscope.session.wanted import Takes

SHOWN = "What is shown, and how"  # of the options that a command has for itself
PICTURES = "Pictures"
BESIDES = "Besides"
WHICH, WHAT, OUT = "Which", "What", "Out"  # the headings of the help on one screen


@dataclass(frozen=True)
class Brief:
    """Of an option or an argument: that it stands in the help on one screen, and what is said there.

    `metavar` is the name of its value there, where its own lists too much.
    """

    told: str
    metavar: str | None = None
    under: str = WHAT

    def record(self, parameter: Any) -> tuple[str, str]:
        """Its row of the help: the first of its names with the value that it takes, and what it does."""
        metavar = self.metavar or parameter.metavar
        if parameter.param_type_name == "argument":
            return metavar.strip("[]"), self.told
        short = [name for name in parameter.opts if not name.startswith("--")]
        long = next(name for name in parameter.opts if name.startswith("--"))
        name = f"{short[0]}, {long}" if short else f"    {long}"
        return (name if parameter.is_flag else f"{name} {metavar}"), self.told


@dataclass(frozen=True)
class Former:
    """A name that an option had before and goes by still, of which no help tells."""

    name: str


class Panelled(TyperCommand):
    """A command with a help on one screen, and one of all options under what they are about.

    `grouped` has noted what of either; both have the command's `EXAMPLES`, in lines that are never broken.
    """

    def make_parser(self, ctx: Any) -> Any:
        """The parser, which also takes the former names of options."""
        parser = super().make_parser(ctx)
        names = {parameter.name: parameter.opts[0] for parameter in self.params}
        for former, parameter in self._noted("former").items():
            parser._long_opt[former] = parser._long_opt[names[parameter]]
        return parser

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """What it does, examples, and the options that matter most."""
        self.format_usage(ctx, formatter)
        formatter.write(f"\n  {self.get_short_help_str(limit=200)}\n\n")
        for example in EXAMPLES[self.name or ""]:
            formatter.write(f"  {example}\n")
        told: dict[str, list[tuple[str, str]]] = {WHICH: [], WHAT: [], OUT: []}
        brief = self._noted("brief")
        first = ("argument", "model")  # under their heading
        for parameter in sorted(self.params, key=lambda one: not {one.param_type_name, one.name} & {*first}):
            if (said := brief.get(parameter.name or "")) is not None:
                told[said.under].append(said.record(parameter))
        column = max(len(name) for records in told.values() for name, _ in records)
        for heading, records in told.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(column), text) for name, text in records])
        formatter.write_paragraph()
        formatter.write_text(f"All options: --help-all ({', '.join(self._noted('beyond'))})")

    def in_full(self, ctx: Any) -> str:
        """The help with every option."""
        formatter = ctx.make_formatter()
        super().format_help(ctx, formatter)
        return str(formatter.getvalue()).rstrip("\n")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for example in EXAMPLES[self.name or ""]:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options, the headings in the order in which they first occur."""
        noted = self._noted("panels")
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

    def _noted(self, what: str) -> Any:
        return getattr(self.callback, what, {})


def _tell_in_full(ctx: typer.Context, wanted: bool) -> None:
    if wanted and isinstance(ctx.command, Panelled):
        for line in ctx.command.in_full(ctx).splitlines():
            streams.say(line, sys.stdout)
        raise typer.Exit


HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--help-all", callback=_tell_in_full, is_eager=True, help="Tell all options and exit."),
    ],
)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` for Typer: every parameter that is a group stands open as that group's own options."""
    taken = inspect.signature(command).parameters
    classes: dict[str, Any] = {}
    takes: dict[str, dict[str, Takes]] = {}
    for name, parameter in taken.items():
        kind, *also = get_args(parameter.annotation) or [parameter.annotation]
        if not also or isinstance(also[0], Takes):
            classes[name], takes[name] = kind, {"takes": also[0]} if also else {}
    groups = {
        name: {
            option: each for option, each in inspect.signature(kind).parameters.items() if option != "takes"
        }
        for name, kind in classes.items()
    }

    def call(help_all: bool = False, **given: Any) -> None:
        for name, fields in groups.items():
            given[name] = classes[name](**{field: given.pop(field) for field in fields}, **takes[name])
        command(**given)

    flat = [
        parameter
        for name in taken
        for parameter in (groups[name].values() if name in groups else (taken[name],))
    ]
    flat = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*flat, HELP_ALL)]
    for parameter in flat:
        if parameter.default is None or parameter.default is False:  # a flag that is off says so by its name
            parameter.annotation.__metadata__[0].show_default = False
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__doc__, call.__name__ = command.__doc__, command.__name__
    panels = {name: getattr(classes[name], "PANEL", SHOWN) for name in groups}
    call.panels = {  # type: ignore[attr-defined]  # this and what follows is read by `Panelled`
        option: getattr(classes.get(name), "PANELS", {}).get(option, panels.get(name, SHOWN))
        for name in taken
        for option in (groups.get(name) or (name,))
    }
    beyond = [each.BEYOND for each in classes.values() if hasattr(each, "BEYOND")]
    call.beyond = beyond  # type: ignore[attr-defined]
    marked = [(parameter, mark) for parameter in flat for mark in parameter.annotation.__metadata__]
    call.brief = {each.name: mark for each, mark in marked if isinstance(mark, Brief)}  # type: ignore[attr-defined]
    call.former = {mark.name: each.name for each, mark in marked if isinstance(mark, Former)}  # type: ignore[attr-defined]
    return call
