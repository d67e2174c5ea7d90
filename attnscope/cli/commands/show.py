"""`attnscope show`: a stored result again, without the model that it came from."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import decoded
from attnscope.cli.options.shown import Key, Query, Rows, Scale
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief
from attnscope.vocabulary import Scaling, Stage

if TYPE_CHECKING:
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
    from attnscope.results import Verdict, load

    most, result = listed(rows), load(file)
    check_delivery(delivery, type(result).__name__)
    query, key = (None if token is None else decoded(token) for token in (query, key))
    if result.verdict in (Verdict.RECOMPUTED, Verdict.STORED) and (how := _again(result, word(str(file)))):
        output.notice(how)
    output.deliver(result, delivery, replace(focus_on(result, stage, query, key, scale), rows=most))


def _again(result: "Result", file: str) -> str:
    """What runs the model of a stored result again; empty where nothing does."""
    from attnscope.render.files import SCRIPT
    from attnscope.render.saving import suffixes
    from attnscope.results import HeadWeights, Overview

    if isinstance(result, HeadWeights | Overview) or hasattr(result, "head"):
        return f"the model is not run here: attnscope check {file} does"
    if SCRIPT in suffixes(type(result)):
        return f"the model is not run here: attnscope show {file} -o again{SCRIPT} writes a program that does"
    return ""
