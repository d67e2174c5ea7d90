"""`attnscope show`: a stored result again, without the model that it came from."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import decoded
from attnscope.cli.options.shown import Key, Query, Rows, Scale
from attnscope.cli.output import Output, check_delivery
from attnscope.vocabulary import Scaling, Stage

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A result that was written as .npz or .json by any command.")
]
Shown = Annotated[
    Stage | None, typer.Option("--show", help="Of one head: what to tabulate. Default: weights.")
]


def show(
    file: File,
    query: Query = None,
    key: Key = None,
    stage: Shown = None,
    scale: Scale = Scaling.AUTO,
    rows: Rows = None,
    *,
    delivery: Delivery,
    output: Output,
) -> None:
    """Show a stored result again, or write it in another form, without its model.

    On the terminal as the command that made it would have shown it; -o writes a picture or another file.
    """
    from attnscope.render.focus import focus_on, listed
    from attnscope.results import load

    most, result = listed(rows), load(file)
    check_delivery(delivery, type(result).__name__)
    query, key = (None if token is None else decoded(token) for token in (query, key))
    output.deliver(result, delivery, replace(focus_on(result, stage, query, key, scale), rows=most))
