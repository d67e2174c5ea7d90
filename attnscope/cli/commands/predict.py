"""`attnscope predict`: what the model makes of its input."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read
from attnscope.cli.options.model import Request
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

Top = Annotated[
    int,
    typer.Option("--top", "-k", metavar="N", min=1, help="How many words or classes to show."),
    Brief("how many words or classes to show"),
]


def predict(read: Read, top: Top = 5, *, delivery: Delivery, request: Request, output: Output) -> None:
    """Show what the model itself answers.

    What it makes of a text, a picture or a sound. A masked model fills each [MASK], and says with --pair
    whether the second text follows; a causal model goes on by one token; an encoder-decoder writes; a
    classifier names the class.
    """
    check_delivery(delivery, "Prediction")
    inputs = read.inputs()
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.prediction import predict as predicted

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        return Answer(predicted(reading, top))

    Question(ask, request, read, None, delivery, output).put(inputs, Purpose.ANSWER_OR_CLASS)
