"""`attnscope show`: displays a stored result without its model."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attnscope import incoming
from attnscope.cli.options import Delivery
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import InputError
from attnscope.session.option import WHICH, argument, option
from attnscope.session.selection import rows_listed
from attnscope.session.wanted import KEY, QUERY, ROWS, SCALE
from attnscope.vocabulary import Scaling, Stage

if TYPE_CHECKING:
    from attnscope.render.sheets import Focus
    from attnscope.results import Result

FILE = argument(
    "FILE",
    help="A result that was written as .npz or .json by any command.",
    brief="what any command wrote as .npz or .json",
)  # fmt: skip
ONE_LAYER = option(
    "--layer", "-l", metavar="N", under=WHICH,
    help="Of an overview's .npz: the layer of one head, from 0.",
    brief="of an overview one head, with its --head",
)  # fmt: skip
ONE_HEAD = option(
    "--head", metavar="N", under=WHICH,
    help="Of an overview's .npz: the head of that layer, from 0.",
    brief="the head of that layer, from 0",
)  # fmt: skip
STAGE = option(
    "--show", brief_metavar="STAGE",
    help="Of one head: what to tabulate. Default: weights.",
    brief="of one head: weights, scores, scaled, q, k, v ...",
)  # fmt: skip


def show(
    file: Annotated[Path, FILE],
    layer: Annotated[int | None, ONE_LAYER] = None,
    head: Annotated[int | None, ONE_HEAD] = None,
    query: Annotated[str | None, QUERY] = None,
    key: Annotated[str | None, KEY] = None,
    stage: Annotated[Stage | None, STAGE] = None,
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
    from attnscope.render.kit.command import asked_by
    from attnscope.render.sheet.sheet import Next, Stored
    from attnscope.render.sheets import focus_on
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
    day = time.strftime("%Y-%m-%d", time.localtime(file.stat().st_mtime)) if file.is_file() else ""
    came = Stored(day, stored_verdict(told, place), again, made_by)
    output.deliver(result, delivery, replace(focus, **listed, stored=came))


def _one_head(
    result: "Result",
    wanted: tuple[int | None, int | None],
    stage: str | None,
    query: str | None,
    key: str | None,
    scale: str | None,
) -> "tuple[tuple[int, int], Result, Focus]":
    """Index pair of one head of an overview, its result, and the focus on the named query and key."""
    from attnscope.render.sheets import focus_on
    from attnscope.results import Overview
    from attnscope.session.opening import aim_at
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
