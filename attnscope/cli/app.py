"""The Typer program: its commands, and the one place where errors become a line and an exit code."""

import io
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from attnscope import incoming
from attnscope.cli.asking import command_of
from attnscope.cli.output import guard, remember, say
from attnscope.cli.panels import Panelled, grouped
from attnscope.errors import AttnscopeError, InputError, NobodyReadsError, lacking, nearest
from attnscope.process.ending import INTERRUPTED
from attnscope.register import Verb, registered, there
from attnscope.version import __version__

_LONGEST = max(map(len, registered()))
_COMPLETION = {"--show-completion", "--install-completion"}
UsageError: Any = typer.BadParameter.__base__  # what the option parser raises, wherever Typer has its Click


class ErrorLines(TyperGroup):
    """Typer group that ends user errors in one line on standard error and an exit code.

    Any other exception is a bug and keeps its traceback. Tests and shell both run through this class.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # for a completion: whatever stands there yet
            left: list[str] = super().parse_args(ctx, args)
            return left
        if not args:
            for line in ctx.get_help().splitlines():
                say(line)
            raise typer.Exit(InputError.exit_code)
        remember(args)
        incoming.limit_to(None)
        if not _COMPLETION & set(args):
            return super().parse_args(ctx, args)
        return self._completion(ctx, args)

    def _completion(self, ctx: Any, args: list[str]) -> list[str]:
        """Run Typer's completion option; `InputError` where Typer cannot tell the shell."""
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(io.StringIO()):
                left: list[str] = super().parse_args(ctx, args)
                return left
        except (typer.Exit, SystemExit) as end:
            if getattr(end, "exit_code", 0):
                unknown = "cannot tell for which shell: ask in bash, zsh, fish or PowerShell"
                raise InputError(unknown) from None
            for line in printed.getvalue().splitlines():
                say(line, sys.stdout)
            raise

    def _main_shell_completion(self, *given: Any, **settings: Any) -> None:
        """Answer a shell's request for completions; incomplete variables end in one line and exit code 2."""
        try:
            with redirect_stderr(io.StringIO()):
                super()._main_shell_completion(*given, **settings)
        except (KeyError, ValueError, SystemExit) as end:
            if isinstance(end, SystemExit) and not end.code:
                raise
            say("attnscope: _ATTNSCOPE_COMPLETE is set and no shell asks for a completion: unset it")
            sys.exit(InputError.exit_code)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the program's help: purpose, an example, and the commands under their headings."""
        formatter.write(f"{self.help}\n\n  {next(iter(registered().values())).examples[0]}\n")
        under: dict[str, list[str]] = {}
        for name, verb in registered().items():
            under.setdefault(verb.under, []).append(name)
        for heading, commands in under.items():
            found = ((name, self.get_command(ctx, name)) for name in commands)
            formatter.write(f"\n{heading}\n")
            with formatter.indentation():
                formatter.write_dl(
                    [(name.ljust(_LONGEST), one.get_short_help_str(limit=200)) for name, one in found if one]
                )
        for paragraph in (self.epilog or "").split("\n\n"):
            told = textwrap.fill(paragraph, formatter.width, break_on_hyphens=False)
            formatter.write(f"\n{told}\n")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if " " in args[0].strip() and not ctx.resilient_parsing:
            raise InputError(
                f"no such command '{args[0]}': a text stands behind one, as in attnscope heads TEXT"
            )
        return super().resolve_command(ctx, args)

    def make_context(self, *given: Any, **settings: Any) -> Any:
        with _one_line_each():
            return super().make_context(*given, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _one_line_each():
            if os.environ.get("TORCH_LOGS"):  # some commands import torch for its arithmetic alone
                from attnscope.session.request import check_logs

                check_logs()
            return super().invoke(ctx)


@contextmanager
def _one_line_each() -> Iterator[None]:
    try:
        try:
            yield
        except (typer.Exit, SystemExit):
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except NobodyReadsError as error:
        raise typer.Exit(error.exit_code) from None
    except AttnscopeError as error:
        _end(str(error), error.exit_code)
    except UsageError as error:
        _end(_misused(error), InputError.exit_code)
    except Exception as error:
        if isinstance(error, typer.Exit) or (refusal := lacking(error)) is None:
            raise
        _end(str(refusal), refusal.exit_code)
    except KeyboardInterrupt:
        _end("interrupted", INTERRUPTED)


def _misused(error: Any) -> str:
    said = " ".join(error.format_message().split()).removesuffix(".").replace(": Value error, ", ": ")
    said = said.partition(", unable to parse")[0].replace("Input should be", "it should be")
    if (option := getattr(error, "option_name", None)) is not None and hasattr(error, "possibilities"):
        said = f"{error.message}{_meant_option(option, error.ctx)}"
    if "unexpected extra argument" in said:
        said += ": a text of several words goes in quotes"
    help_is_at = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
    return said[:1].lower() + said[1:] + help_is_at


def _meant_option(option: str, ctx: Any) -> str:
    commands = ctx.find_root().command.commands
    having = [name for name, command in commands.items() if option in _options(command)]
    if having:
        others = f" and {len(having) - 3} more" if len(having) > 3 else ""
        return f": {', '.join(having[:3])}{others} {'have' if having[1:] else 'has'} it"
    near = nearest(option, _options(ctx.command), likeness=0.7)
    return f": did you mean {near[0]}?" if near else ""


def _options(command: Any) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name.startswith("--")]


def _end(message: str, exit_code: int) -> NoReturn:
    say(f"attnscope: {message}")
    raise typer.Exit(exit_code)


app = typer.Typer(
    name="attnscope",
    cls=ErrorLines,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help and one-line errors, in half the time
    context_settings={"help_option_names": ["--help", "-h"]},
    help="See what a pretrained transformer attends to, with every number proved.",
    epilog="COMMAND -h tells the options that matter, COMMAND --help-all all of them. Beside commands: "
    "--version, --install-completion, --show-completion.\n\n"
    "L3 H11 is layer 3, head 11; everything counts from 0. Bundled models: demo (fills [MASK]), demo-causal "
    "(goes on), demo-translate (English to French), demo-reader (answers from a passage), demo-caption "
    "(tells a picture), demo-speech (writes what is said).\n\n"
    "Exit codes: 0 fine, 2 bad input, 3 model not available, 4 does not fit in memory, "
    "5 certificate failed, 6 a threshold that was asked for is exceeded, 130 interrupted, 141 nobody reads "
    "the output.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"attnscope {__version__}", sys.stdout)
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line, with guarded standard output and error."""
    guard()
    app(prog_name="attnscope")


def _register() -> None:
    for name, verb in registered().items():
        try:
            if verb.fault:
                raise InputError(verb.fault)
            command = grouped(there(verb.command)) if verb.command else command_of(verb)
            app.command(name, cls=Panelled)(command)
        except Exception as error:
            if not verb.of:
                raise
            app.command(name, cls=_broken(verb, error), help=f"Broken: a command of {verb.of}.")(lambda: None)


def _broken(verb: Verb, error: Exception) -> type[Panelled]:
    """Command class that refuses every use of a broken third-party verb and says why."""
    said = verb.fault or f"{type(error).__name__}: {error}"

    class Broken(Panelled):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            raise InputError(f"{verb.name} is of {verb.of}, and that is broken: {said}")

    return Broken


_register()
