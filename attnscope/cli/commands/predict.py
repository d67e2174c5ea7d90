"""`attnscope predict`: what the model makes of its input."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read
from attnscope.cli.options.model import Request
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

Top = Annotated[
    int,
    typer.Option("--top", "-k", metavar="N", min=1, help="How many words or classes to show."),
    Brief("how many words or classes to show"),
]

Layers = Annotated[
    bool,
    typer.Option(
        "--layers",
        help="What each layer would answer if it were the last (logit lens), beside texts with the words in "
        "other orders.",
    ),
    Brief("what each layer would answer if it were the last"),
]
Count = Annotated[
    int, typer.Option("--controls", metavar="N", min=0, help="With --layers: how many control texts.")
]
ControlSeed = Annotated[int, typer.Option("--seed", metavar="N", help="With --layers: seed of the controls.")]


@dataclass(frozen=True)
class PredictOptions:
    """How much of the answer is shown: the likeliest alone, or how it comes about layer by layer."""

    PANEL = SHOWN

    top: Top = 5
    layers: Layers = False
    controls: Count = 20
    seed: ControlSeed = 0


def predict(
    read: Read, asked: PredictOptions, *, delivery: Delivery, request: Request, output: Output
) -> None:
    """Show what the model itself answers.

    What it makes of a text, a picture or a sound. A masked model fills each [MASK], and says with --pair
    whether the second text follows; a causal model goes on by one token; an encoder-decoder writes; a
    classifier names the class. With --layers each layer's state takes the place of the last one's.
    """
    check_delivery(delivery, "LayeredPrediction" if asked.layers else "Prediction")
    inputs = read.inputs()
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.layered import predict_layers
    from attnscope.session.questions.prediction import predict as predicted
    from attnscope.session.selection import check_seed

    check_seed(asked.seed)

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        if asked.layers:
            return Answer(predict_layers(reading, asked.controls, asked.seed))
        return Answer(predicted(reading, asked.top))

    Question(ask, request, read, None, delivery, output).put(inputs, Purpose.ANSWER_OR_CLASS)
