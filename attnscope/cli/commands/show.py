"""`attnscope show`: a stored result again, without the model that it came from."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope import incoming
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief
from attnscope.errors import InputError
from attnscope.session.option import WHICH
from attnscope.session.selection import rows_listed
from attnscope.session.verbs.heads import ROWS, SCALE
from attnscope.session.wanted import KEY, QUERY
from attnscope.vocabulary import Scaling, Stage

if TYPE_CHECKING:
    from attnscope.render.focus import Focus
    from attnscope.results import Result

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A result that was written as .npz or .json by any command."),
    Brief("what any command wrote as .npz or .json"),
]
OneLayer = Annotated[
    int | None,
    typer.Option("--layer", "-l", metavar="N", help="Of an overview's .npz: the layer of one head, from 0."),
    Brief("of an overview one head, with its --head", under=WHICH),
]
OneHead = Annotated[
    int | None,
    typer.Option("--head", metavar="N", help="Of an overview's .npz: the head of that layer, from 0."),
    Brief("the head of that layer, from 0", under=WHICH),
]
Shown = Annotated[
    Stage | None,
    typer.Option("--show", help="Of one head: what to tabulate. Default: weights."),
    Brief("of one head: weights, scores, scaled, q, k, v ...", metavar="STAGE"),
]


def show(
    file: File,
    layer: OneLayer = None,
    head: OneHead = None,
    query: Annotated[str | None, QUERY] = None,
    key: Annotated[str | None, KEY] = None,
    stage: Shown = None,
    scale: Annotated[Scaling | None, SCALE] = None,
    rows: Annotated[str | None, ROWS] = None,
    *,
    delivery: Delivery,
    output: Output,
) -> None:
    """Show a stored result again, or write it in another form.

    Its model is not needed. On the terminal as the command that made it would have shown it; -o writes a
    picture or another file. Of an overview that was written as .npz it shows any head by its weights.
    """
    from attnscope.printable import word
    from attnscope.render.focus import focus_on
    from attnscope.render.kit.words.command import asked_by
    from attnscope.render.sheet.guard import Stored
    from attnscope.render.sheet.sheet import Next
    from attnscope.results.stored.document import stored, stored_verdict

    listed, (result, told) = rows_listed(rows), stored(file)
    query, key = (None if token is None else incoming.argument(token) for token in (query, key))
    place, made_by = None, asked_by(result)
    again = Next("is it still so?", f"attnscope check {word(str(file))}") if made_by else None
    if layer is None and head is None:
        focus = focus_on(result, stage, query, key, scale)
    else:
        place, result, focus = _one_head(result, (layer, head), stage, query, key, scale)
    check_delivery(delivery, type(result).__name__)
    came = Stored(_day(file), stored_verdict(told, place), again, made_by)
    output.deliver(result, delivery, replace(focus, **listed, stored=came))


def _one_head(
    result: "Result",
    wanted: tuple[int | None, int | None],
    stage: str | None,
    query: str | None,
    key: str | None,
    scale: str | None,
) -> "tuple[tuple[int, int], Result, Focus]":
    """The place of a head in an overview, the head as that looks at it, and what of it is meant."""
    from attnscope.render.focus import focus_on
    from attnscope.results import Overview
    from attnscope.session.looking import aim_at
    from attnscope.session.wanted import Looking

    layer, head = wanted
    if not isinstance(result, Overview):
        raise InputError("--layer and --head choose a head of an overview, and this file holds none")
    if layer is None or head is None:
        raise InputError("of an overview one head is shown: give both --layer and --head")
    found = result.head(layer, head)
    if query is None and key is not None:
        raise InputError("a key goes with a query: name a query")
    seen = aim_at(found, Looking(by=result.by, special=result.special), query, key)
    queries = () if seen.query is None else (seen.query,)
    focus = replace(focus_on(seen.shown, stage, scale=scale), queries=queries, key=seen.key)
    return result.place_of(layer, head), seen.shown, focus


def _day(file: Path) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(file.stat().st_mtime)) if file.is_file() else ""
