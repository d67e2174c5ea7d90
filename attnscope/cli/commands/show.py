"""`attnscope show`: a stored result again, without the model that it came from."""

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import decoded
from attnscope.cli.options.shown import Key, Query, Rows, Scale
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief
from attnscope.errors import InputError
from attnscope.vocabulary import Scaling, Stage

if TYPE_CHECKING:
    from attnscope.render.sheet.sheet import Next
    from attnscope.results import Result

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A result that was written as .npz or .json by any command."),
    Brief("what any command wrote as .npz or .json"),
]
Shown = Annotated[
    Stage | None,
    typer.Option("--show", help="Of one head: what to tabulate. Default: weights."),
    Brief("of one head: weights, scores, scaled, q, k, v ...", metavar="STAGE"),
]


def show(
    file: File,
    query: Query = None,
    key: Key = None,
    stage: Shown = None,
    scale: Scale = Scaling.SQRT,
    rows: Rows = None,
    *,
    delivery: Delivery,
    output: Output,
) -> None:
    """Show a stored result again, or write it in another form.

    Its model is not needed. On the terminal as the command that made it would have shown it; -o writes a
    picture or another file.
    """
    from attnscope.render.focus import focus_on, listed
    from attnscope.render.kit.words.shell import word
    from attnscope.render.sheet.guard import Stored
    from attnscope.results.stored.document import stored

    most, (result, verdict) = listed(rows), stored(file)
    check_delivery(delivery, type(result).__name__)
    query, key = (None if token is None else decoded(token) for token in (query, key))
    focus = focus_on(result, stage, query, key, scale)
    came = Stored(_day(file), verdict, _again(result, word(str(file))))
    output.deliver(result, delivery, replace(focus, rows=most, stored=came))


def _day(file: Path) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(file.stat().st_mtime)) if file.is_file() else ""


def _again(result: "Result", file: str) -> "Next | None":
    from attnscope.render.files import SCRIPT
    from attnscope.render.script.figures import shown
    from attnscope.render.sheet.sheet import Next
    from attnscope.results import HeadWeights, Overview

    held = getattr(result, "overview", result)
    if isinstance(held, Overview):
        all_weights = (held.tokens or held).weights is not None
    else:
        all_weights = isinstance(held, HeadWeights) or isinstance(getattr(held, "head", None), HeadWeights)
    if all_weights:
        return Next("is it still so?", f"attnscope check {file}")
    with suppress(InputError):
        shown(result)  # what a program is told, where there is one of such a result
        asked = "is it still so? A program computes it again"
        return Next(asked, f"attnscope show {file} -o again{SCRIPT}")
    return None
