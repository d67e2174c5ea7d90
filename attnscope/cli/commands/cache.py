"""`attnscope cache`: what is kept of earlier runs, and how to be rid of it."""

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.options.delivery import Json
from attnscope.cli.output import Output
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


def cache(action: Doing = Action.INFO, json: Json = False, *, output: Output) -> None:
    """Tell what is kept of earlier runs, or forget it.

    A second question of `heads` and `tsne` about the same text and model is answered from there, without
    loading the model. What was asked for longest ago makes room for what is new.
    """
    from attnscope.session.cache.store import clear, holdings

    held = clear() if action is Action.CLEAR else holdings()
    if json:
        output.document(_document(held, action))
    else:
        output.show(*_lines(held, action))


def _lines(held: "Holdings", action: Action) -> list[str]:
    if held.folder is None:
        return [_OFF]
    folder = printable(str(held.folder))
    entries = f"{held.entries} {'entry' if held.entries == 1 else 'entries'}"
    if action is Action.CLEAR:
        return [folder, f"{entries} of {_bytes(held.size)} forgotten"]
    used = (
        ""
        if held.used is None
        else f" · last asked on {time.strftime('%Y-%m-%d', time.localtime(held.used))}"
    )
    return [folder, f"{entries} · {_bytes(held.size)} of {_bytes(held.room)}{used}", _HOW]


def _document(held: "Holdings", action: Action) -> str:
    from json import dumps

    document = {
        "schema": "attnscope.cache/1",
        "folder": None if held.folder is None else str(held.folder),
        "cleared": action is Action.CLEAR,
        "entries": held.entries,
        "bytes": held.size,
        "room": held.room,
    }
    return dumps(document, indent=2, ensure_ascii=True)


def _bytes(size: int) -> str:
    for unit, count in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= count:
            return f"{size / count:.3g} {unit}"
    return f"{size} bytes"
