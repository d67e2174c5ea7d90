"""`attnscope explore`: wander through a model in the terminal, one key a question."""

import os
import sys

from attnscope.cli.groups import ArticleRead, Request, Wanted
from attnscope.cli.output import Output
from attnscope.errors import InputError
from attnscope.session.request import Inputs


def explore(read: ArticleRead, wanted: Wanted, *, request: Request, output: Output) -> None:
    """Explore a model in the terminal: heads, tokens, scores, maps, predictions, without a new start.

    Every number is recomputed and certified as the other commands do; ? lists the keys, q ends.
    """
    _check_terminal()
    inputs = _inputs(read)
    from attnscope.explore.run import run

    for line in run(request, inputs, wanted, output.screen, output.background):
        print(line)


def _inputs(read: ArticleRead) -> Inputs:
    """What is read first; a file of many texts is for commands that answer each of them."""
    if read.texts is not None:
        raise InputError("explore shows one text, which e changes: leave --texts out")
    if read.text == "-":
        raise InputError("explore reads its keys from standard input: give the text itself")
    return read.inputs()


def _check_terminal() -> None:
    """Raises `InputError` where keys cannot be read, or cells not be coloured and placed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("explore needs a terminal to read keys from: attnscope heads prints the same heads")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise InputError(
            "explore needs a terminal that places characters (TERM is dumb): use attnscope heads"
        )
