"""`attnscope predict`: what the model makes of its input."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, decoded
from attnscope.cli.options.model import Request
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.effects import Layering
    from attnscope.session.opening import Opened
    from attnscope.session.reading import Reading

Top = Annotated[
    int | None,
    typer.Option("--top", "-k", metavar="N", min=1, help="How many words or classes to show. Default: 5."),
    Brief("how many words or classes to show"),
]

AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORDS",
        help="How likely this answer is; of several tokens each is given those before it, and their "
        "probabilities are multiplied.",
    ),
    Brief("how likely this answer is"),
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
    int | None,
    typer.Option(
        "--controls", metavar="N", min=0, help="How many shuffled texts --layers reads. Default: 20."
    ),
]
ControlSeed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Seed of these shuffled texts. Default: 0.")
]


@dataclass(frozen=True)
class PredictOptions:
    """How much of the answer is shown: the likeliest alone, or how it comes about layer by layer."""

    PANEL = SHOWN

    top: Top = None
    answer: AnswerName = None
    layers: Layers = False
    controls: Count = None
    seed: ControlSeed = None

    def layering(self) -> "Layering | None":
        """What is asked of layers, None for nothing; `InputError` for an option of the other answer."""
        from attnscope.session.effects import Layering

        told = {"controls": self.controls, "seed": self.seed}
        given = {name: value for name, value in told.items() if value is not None}
        if not self.layers:
            for name in given:
                raise InputError(f"--{name} is about shuffled texts: it goes with --layers")
            if self.top is not None and self.answer is not None:
                raise InputError("--top is how many answers are shown: --answer is one")
            return None
        if self.answer is not None:
            raise InputError("--layers shows the likeliest answer of each layer: leave --answer out")
        if self.top is not None:
            raise InputError("--top is how many answers are shown: --layers shows the first of each layer")
        return Layering(**given)


def predict(
    read: Read, asked: PredictOptions, *, delivery: Delivery, request: Request, output: Output
) -> None:
    """Show what the model itself answers.

    What it makes of a text, a picture or a sound. A masked model fills each [MASK], and says with --pair
    whether the second text follows; a causal model goes on by one token; an encoder-decoder writes; a
    classifier names the class, a tagger the tag of each token, and of a question the answer is found in the
    text of --pair. With --answer it says how likely that answer is. With --layers each layer's state takes
    the place of the last one's.
    """
    layering = asked.layering()
    kind = "Prediction" if layering is None else "LayeredPrediction"
    check_delivery(delivery, kind, many=read.source is not None)
    inputs = read.inputs()
    from attnscope.session.opening import Purpose

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        if layering is not None:
            from attnscope.session.questions.layered import predict_layers

            return Answer(predict_layers(reading, layering))
        from attnscope.session.questions.prediction import TOP
        from attnscope.session.questions.prediction import predict as predicted

        return Answer(predicted(reading, TOP if asked.top is None else asked.top, answer))

    def apart(opened: "Opened") -> bool:
        from attnscope.session.questions.claims.answers import has_no_one_chance

        return has_no_one_chance(opened)

    answer = None if asked.answer is None else decoded(asked.answer)
    if answer is not None and read.source is not None:
        raise InputError(
            "--texts sets each prompt's own answer beside the other prompts: leave --answer out, or ask "
            "about one text (ablate and flow take --texts with --answer)"
        )
    over = "what the model answers" if layering is None else "what each layer would answer"
    question = Question(ask, request, read, None, delivery, output, over=over, apart=apart)
    question.put(inputs, Purpose.ANSWER_OR_CLASS)
