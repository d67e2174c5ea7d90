"""`attnscope verify`: every layer and head of a model at once, one exit code."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import ArticleRead
from attnscope.cli.options.model import ProvenModel
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading


EveryToken = Annotated[
    bool,
    typer.Option(
        "--every-token",
        help="Try the place of each token, however long the text, and each row of a block by itself. "
        "Otherwise samples are tried: of a text of more than 252 tokens, and of every block a half.",
    ),
    Brief("try the place of each token, not of samples"),
]


def verify(
    read: ArticleRead,
    delivery: Delivery,
    every_token: EveryToken = False,
    *,
    request: ProvenModel,
    output: Output,
) -> None:
    """Certify every layer and head of a model, and its results.

    The final hidden states and logits are held against a run that was not touched. Exit code 5 when
    a certificate fails or a result changes while the model is watched.
    """
    check_delivery(delivery, "Verification")
    inputs = read.inputs()
    from attnscope.session.opening import Purpose

    with output.importing():
        from attnscope.session.questions.heads import verify_reading

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        return Answer(verify_reading(reading, every_token=every_token))

    Question(ask, request, read, None, delivery, output).put(inputs, Purpose.EVERYTHING)
