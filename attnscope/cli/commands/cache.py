"""`attnscope cache`: what is kept of earlier runs, and how to be rid of it."""

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.options.delivery import Json
from attnscope.cli.output import PlainOutput
from attnscope.cli.panels import Brief
from attnscope.printable import printable

if TYPE_CHECKING:
    from attnscope.session.cache.store import Holdings

_OFF = "nothing is kept: ATTNSCOPE_CACHE is off, ATTNSCOPE_CACHE_SIZE is 0, or there is no home"
_HOW = "ATTNSCOPE_CACHE moves it or switches it off, ATTNSCOPE_CACHE_SIZE is its room"


class Action(StrEnum):
    """What is done."""

    INFO = "info"
    CLEAR = "clear"


Doing = Annotated[
    Action,
    typer.Argument(metavar="[info|clear]", help="Tell what is kept, or forget it."),
    Brief("tell what is kept, or forget it"),
]


def cache(action: Doing = Action.INFO, json: Json = False, *, output: PlainOutput) -> None:
    """Tell what is kept of earlier runs, or forget it.

    A second question of `heads` and `tsne` about the same text and model is answered from there, without
    loading the model, and the very same question of any command with what it printed. What was asked for
    longest ago makes room for what is new.
    """
    from attnscope.session.cache.store import clear, holdings

    held = clear() if action is Action.CLEAR else holdings()
    lines = _lines(held, action)
    if json:
        output.document(_document(held, action, lines[0]))
    else:
        output.show(*lines)


def _lines(held: "Holdings", action: Action) -> list[str]:
    """What is kept and what that is good for, or what was forgotten; then where, and how that is changed."""
    if held.folder is None:
        return [_OFF]
    folder = printable(str(held.folder))
    several = "answer" if held.entries == 1 else "answers"
    if action is Action.CLEAR:
        return [f"{held.entries} earlier {several} forgotten, {_bytes(held.size)}.", folder]
    verb = "is" if held.entries == 1 else "are"
    told = [
        f"{held.entries} earlier {several} {verb} kept here, {_bytes(held.size)} of {_bytes(held.room)}.",
        "They answer the same question again without loading the model.",
        "",
        folder,
    ]
    if held.used is not None:
        told.append(f"last asked on {time.strftime('%Y-%m-%d', time.localtime(held.used))}")
    return [*told, _HOW, "Next: forget them", "  attnscope cache clear"]


def _document(held: "Holdings", action: Action, answer: str) -> str:
    from attnscope.results.stored.listings import CacheListing, cache_document

    folder = None if held.folder is None else str(held.folder)
    listing = CacheListing(folder, action is Action.CLEAR, held.entries, held.size, held.room)
    return cache_document(listing, answer)


def _bytes(size: int) -> str:
    for unit, count in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= count:
            return f"{size / count:.3g} {unit}"
    return f"{size} bytes"
