"""The program: its commands, and the one place where errors become a line and an exit code."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from attnscope import __version__
from attnscope.errors import AttnscopeError

INTERRUPTED = 130


class ErrorLines(TyperGroup):
    """A group whose commands end in one line on standard error for what a user can cause.

    Anything else is a bug and keeps its traceback. Overriding `invoke` makes tests and shell agree.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except AttnscopeError as error:
            print(f"attnscope: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from error
        except MemoryError as error:
            print("attnscope: not enough memory for this input", file=sys.stderr)
            raise typer.Exit(4) from error
        except KeyboardInterrupt as error:
            print("attnscope: interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    name="attnscope",
    cls=ErrorLines,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help and one-line errors, in half the time
    context_settings={"help_option_names": ["--help", "-h"]},
    help="See what a pretrained transformer attends to, with every number proved.",
    epilog="Exit codes: 0 fine, 2 bad input, 3 model not available, 4 does not fit in memory, "
    "5 certificate failed, 130 interrupted.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"attnscope {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `attnscope` command."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    app(prog_name="attnscope")


def _register() -> None:
    from attnscope.cli import heads, verify

    app.command("heads")(heads.heads)
    app.command("verify")(verify.verify)


_register()
