"""`attnscope explore`: browse a model in the terminal; each key asks a question."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from attnscope.cli.options import ArticleRead, Writing
from attnscope.cli.output import PlainOutput, say
from attnscope.errors import InputError
from attnscope.session.request import ModelRequest
from attnscope.session.wanted import Wanted


@dataclass(frozen=True)
class OneRead(ArticleRead):
    """Options for the one text to explore, without files of several texts."""

    BEYOND = "chats, pictures, sounds"

    texts: Path | None = field(default=None, init=False)
    fill: Path | None = field(default=None, init=False)


def explore(
    read: OneRead, wanted: Wanted, *, writing: Writing, request: ModelRequest, output: PlainOutput
) -> None:
    """Explore a model in the terminal, one key a question.

    Heads, tokens, scores, maps and predictions without a new start. Every number is recomputed and
    certified as the other commands do; ? lists the keys, q ends.
    """
    piped = read.text == "-" and not sys.stdin.isatty()
    if not (sys.stdout.isatty() and (piped or sys.stdin.isatty())):
        raise InputError("explore needs a terminal to read keys from: attnscope heads prints the same heads")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise InputError(
            "explore needs a terminal that places characters (TERM is dumb): use attnscope heads"
        )
    inputs = read.inputs(writing)
    from attnscope.explore.app import keys_from_the_terminal, run

    if piped:
        keys_from_the_terminal()
    for line in run(request, inputs, wanted, output.screen, output.background):
        say(line, sys.stdout)
