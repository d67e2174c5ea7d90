"""`attnscope compose`: which heads read what others write, from weights alone."""

from dataclasses import dataclass
from typing import Annotated

import typer

from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief

ThroughName = Annotated[
    str | None,
    typer.Option(
        "--through",
        metavar="query|key|value",
        help="By which of its inputs the later head reads the earlier one. Default: all three.",
    ),
    Brief("query, key or value; default: all three", metavar="INPUT"),
]
Draws = Annotated[
    int,
    typer.Option("--draws", metavar="N", help="How many random circuits each pair is held against."),
    Brief("random circuits that each pair is held against"),
]
DrawSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random circuits.")]


@dataclass(frozen=True)
class Composed:
    """By which input, and beside how many random circuits."""

    PANEL = SHOWN

    through: ThroughName = None
    draws: Draws = 200
    seed: DrawSeed = 0


def compose(
    wanted: Wanted,
    composed: Composed,
    *,
    delivery: Delivery,
    request: Request,
    output: Output,
) -> None:
    """Find the heads that read what others write, from weights.

    No text decides: beside them stand random circuits. Scores of Q-, K- and V-composition (Elhage et al.
    2021) of every earlier with every later head; with --layer and --head of one head with all before and
    after it. No text is needed: a short one that the program brings along, or noise for a model of pictures
    or sounds, only serves to read the matrices back.
    """
    check_delivery(delivery, "Composition")
    with output.importing():
        from attnscope.session.questions.claims.composition import CompositionQuestion
        from attnscope.session.questions.claims.composition import compose as composed_of

    asked = CompositionQuestion(wanted.layer, wanted.head, composed.through, composed.draws, composed.seed)
    result = composed_of(request, asked, wanted, output)
    from attnscope.cli.again import run_again

    with run_again(request, wanted):
        output.deliver(result, delivery)
