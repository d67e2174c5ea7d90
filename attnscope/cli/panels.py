"""Option groups of commands, and the two helps of a command: one screen (-h), and all options.

A command with a parameter such as `read: Read` gets the options of that group's constructor; `grouped` builds
the flat signature that Typer reads. An option with a `brief` text is part of the one-screen help.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from typer.core import TyperCommand

from attnscope import incoming
from attnscope.cli.output import say
from attnscope.register import registered
from attnscope.session.option import ATTENTION, OUT, SHOWN, WHAT, WHICH, Option, Slot, slot_of, slots_of
from attnscope.session.question import Question, question_of

BESIDES = "Besides"


class Panelled(TyperCommand):
    """A command with a one-screen help and a full help under headings.

    `grouped` marks the options of each; both show the verb's `examples` in unbroken lines.
    """

    def make_parser(self, ctx: Any) -> Any:
        """The option parser, which also takes the former names of options."""
        parser = super().make_parser(ctx)
        names = {parameter.name: parameter.opts[0] for parameter in self.params}
        for former, parameter in self._noted("former").items():
            parser._long_opt[former] = parser._long_opt[names[parameter]]
        return parser

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the one-screen help: what the command does, examples, and the main options."""
        self.format_usage(ctx, formatter)
        formatter.write(f"\n  {self.get_short_help_str(limit=200)}\n\n")
        for example in registered()[self.name or ""].examples:
            formatter.write(f"  {example}\n")
        told: dict[str, list[tuple[str, str]]] = {WHICH: [], WHAT: [], OUT: []}
        brief = self._noted("brief")
        first = ("argument", "--model")  # under their heading
        for parameter in sorted(self.params, key=lambda one: not {one.param_type_name, *one.opts} & {*first}):
            if (said := brief.get(parameter.name or "")) is not None:
                told[said.under].append(brief_record(said, parameter))
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
            for example in registered()[self.name or ""].examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options, with headings in order of their first option."""
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


def brief_record(told: Option, parameter: Any) -> tuple[str, str]:
    """An option's row in the one-screen help: its names with its value, and its short description."""
    metavar = told.brief_metavar or parameter.metavar
    if parameter.param_type_name == "argument":
        return metavar.strip("[]"), told.brief or ""
    short = [name for name in parameter.opts if not name.startswith("--")]
    long = next(name for name in parameter.opts if name.startswith("--"))
    name = f"{short[0]}, {long}" if short else f"    {long}"
    return (name if parameter.is_flag else f"{name} {metavar}"), told.brief or ""


def _tell_in_full(ctx: typer.Context, wanted: bool) -> None:
    if wanted and isinstance(ctx.command, Panelled):
        for line in ctx.command.in_full(ctx).splitlines():
            say(line, sys.stdout)
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
    """`command` for Typer: each parameter that is a group is replaced by the group's options.

    A question is a group too. Of several forms of a verb's question the given options choose one.
    """
    taken = inspect.signature(command).parameters
    groups = {name: _Group.of(each.annotation) for name, each in taken.items()}
    opened = {name: group.options() if group else _single(taken[name]) for name, group in groups.items()}

    def call(help_all: bool = False, **given: Any) -> None:
        for name, group in groups.items():
            if group is not None:
                given[name] = group.value({option: given.pop(option) for option in opened[name]})
        command(**given)

    flat = [each for options in opened.values() for each in options.values()]
    flat = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*flat, HELP_ALL)]
    for parameter in flat:
        if parameter.default is None or parameter.default is False:  # a flag that is off says so by its name
            parameter.annotation.__metadata__[0].show_default = False
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__doc__, call.__name__ = command.__doc__, command.__name__
    panels: dict[str, str] = {}
    for name, group in groups.items():
        panels |= dict.fromkeys(opened[name], SHOWN) if group is None else group.panels(opened[name])
    call.panels = panels  # type: ignore[attr-defined]  # this and what follows is read by `Panelled`
    beyond = [each for group in groups.values() if group is not None for each in group.beyond]
    call.beyond = beyond  # type: ignore[attr-defined]
    marked = [(parameter, mark) for parameter in flat for mark in parameter.annotation.__metadata__[1:]]
    call.brief = {each.name: mark for each, mark in marked if mark.brief is not None}  # type: ignore[attr-defined]
    call.former = {name: each.name for each, mark in marked for name in mark.former}  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True)
class _Group:
    """The classes of one command parameter: one option group, or the forms of a verb's question."""

    kinds: tuple[Any, ...]

    @classmethod
    def of(cls, annotation: Any) -> "_Group | None":
        """The group of an annotation; None for a parameter that is a single option."""
        if get_origin(annotation) in (Union, UnionType):
            return cls(get_args(annotation))
        return None if get_args(annotation) else cls((annotation,))

    @property
    def asks(self) -> bool:
        """True where the classes are forms of a question, not an option group."""
        return any(issubclass(kind, Question) for kind in self.kinds)

    @property
    def slots(self) -> Mapping[str, Slot]:
        """Option slots by name; attention options come first in a question without its own heading."""
        if not self.asks:
            return _taken(self.kinds[0])
        own = hasattr(self.kinds[0], "PANEL")
        found = slots_of(self.kinds).items()
        return dict(sorted(found, key=lambda each: not own and each[1].option.panel != ATTENTION))

    def options(self) -> dict[str, inspect.Parameter]:
        """The parameters that Typer reads, by name."""
        alone = len(self.kinds) == 1  # of several forms not all need it
        return {name: _parameter(name, slot, needed=alone) for name, slot in self.slots.items()}

    def value(self, given: dict[str, Any]) -> Any:
        """The group's object from the typed options; a question takes only those not at their default."""
        if not self.asks:
            return self.kinds[0](**given)
        own = self.slots
        typed = {name: _meant(each, own[name]) for name, each in given.items() if each != _usual(own[name])}
        return question_of(self.kinds, typed)

    def panels(self, options: dict[str, inspect.Parameter]) -> dict[str, str]:
        """The help heading of each option."""
        first, own = self.kinds[0], self.slots
        whole, single = getattr(first, "PANEL", SHOWN), getattr(first, "PANELS", {})
        single = single | {name: slot.option.panel for name, slot in own.items() if slot.option.panel}
        return {name: single.get(name, whole) for name in options}

    @property
    def beyond(self) -> list[str]:
        """Topics that the one-screen help names after "All options"."""
        return [kind.BEYOND for kind in self.kinds[:1] if hasattr(kind, "BEYOND")]


@cache
def _taken(kind: Any) -> Mapping[str, Slot]:
    given = inspect.signature(kind).parameters.items()
    every = {
        name: slot_of(each.annotation, MISSING if each.default is each.empty else each.default)
        for name, each in given
    }
    return {name: slot for name, slot in every.items() if slot is not None}


def _single(parameter: inspect.Parameter) -> dict[str, inspect.Parameter]:
    slot = slot_of(
        parameter.annotation, MISSING if parameter.default is parameter.empty else parameter.default
    )
    return {parameter.name: parameter if slot is None else _parameter(parameter.name, slot, needed=True)}


def _usual(slot: Slot) -> Any:
    return None if slot.default is MISSING else slot.default


def _meant(typed: Any, slot: Slot) -> Any:
    if slot.own is True:  # the flag turns it off
        return False
    return incoming.argument(typed) if type(typed) is str else typed


@cache  # most options are those of many commands
def _parameter(name: str, slot: Slot, *, needed: bool = False) -> inspect.Parameter:
    told = slot.option
    if told.names:
        reads: dict[str, Any] = (
            {"parser": _whole_number} if told.large else {"min": told.least, "max": told.most}
        )
        option = typer.Option(*told.names, metavar=told.metavar, help=told.help, **reads)
    else:
        option = typer.Argument(metavar=told.metavar, help=told.help)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if needed and slot.default is MISSING else _usual(slot),
        annotation=Annotated[slot.typed, option, told],  # type: ignore[valid-type]
    )


def _whole_number(typed: str) -> int:
    try:
        number = float(typed)
        whole = int(typed) if typed.strip("+-").isdecimal() else int(number)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"'{typed}' is not a whole number") from None
    if whole != number:
        raise typer.BadParameter(f"'{typed}' is not a whole number")
    return whole
