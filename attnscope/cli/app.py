"""The program: its commands, and the one place where errors become a line and an exit code."""

import errno
import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from attnscope.cli.panels import Panelled
from attnscope.errors import AttnscopeError, DoesNotFitError, InputError, is_out_of_memory, one_line
from attnscope.tokens import printable
from attnscope.version import __version__

INTERRUPTED, BROKEN_PIPE = 130, 141


class ErrorLines(TyperGroup):
    """A group whose commands end in one line on standard error for what a user can cause.

    Anything else is a bug and keeps its traceback. Overriding `invoke` makes tests and shell agree.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except AttnscopeError as error:
            _end(str(error), error.exit_code)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            _end(f"this does not fit in memory: {one_line(error)}", DoesNotFitError.exit_code)
        except BrokenPipeError:
            # nobody reads on: end as a program does that the signal ends, and let the exit flush in vain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(BROKEN_PIPE) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            _end(f"cannot write the output: {error.strerror}", InputError.exit_code)
        except KeyboardInterrupt:
            _end("interrupted", INTERRUPTED)


def _end(message: str, exit_code: int) -> NoReturn:
    print(f"attnscope: {printable(message)}", file=sys.stderr)
    raise typer.Exit(exit_code)


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
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - closed by the caller of this process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    app(prog_name="attnscope")


def _register() -> None:
    from attnscope.cli import (
        compare,
        heads,
        measures,
        model,
        options,
        predict,
        report,
        sdpa,
        show,
        tsne,
        verify,
    )

    for command in (
        heads.heads,
        tsne.tsne,
        predict.predict,
        compare.compare,
        sdpa.sdpa,
        report.report,
        verify.verify,
        model.model,
        show.show,
        measures.measures,
    ):
        app.command(command.__name__, cls=Panelled)(options.grouped(command))


_register()
