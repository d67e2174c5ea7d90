"""`attnscope explain`: one verdict on a link between two tokens, and what shows more of each part of it."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, decoded
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief
from attnscope.session.wanted import APART

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.claims.explaining import Linked
    from attnscope.session.reading import Reading

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--query",
        metavar="TOKEN",
        help="The token that looks: its text or position, or the@5; of a picture a patch (r2c4), of a sound "
        "a time (0.20s). It may be left out of a model that tags tokens: then it is the one whose tag is "
        "surest.",
    ),
    Brief("the token that looks: its text, the@7, position 5"),
]
To = Annotated[
    str,
    typer.Option("--to", "--key", metavar="TOKEN", help="The token that it looks at, named likewise."),
    Brief("the token that is looked at, named likewise"),
]
AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORD",
        help="The answer that is meant: a word, a class, the tag of --from. Default: the likeliest one.",
    ),
    Brief("the answer that is meant; default: the likeliest"),
]
Count = Annotated[
    int,
    typer.Option(
        "--controls", metavar="N", help="How many controls of the same shape each head is held against."
    ),
]
ControlSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the controls.")]


@dataclass(frozen=True)
class ExplainOptions:
    """Which link is meant, and beside how many controls."""

    PANEL = SHOWN

    key: To
    query: From = None
    answer: AnswerName = None
    controls: Count = 100
    seed: ControlSeed = 0

    def linked(self) -> "Linked":
        """The options as the session takes them, checked."""
        from attnscope.session.questions.claims.explaining import Linked

        query, answer = (None if each is None else decoded(each) for each in (self.query, self.answer))
        return Linked(query, decoded(self.key), self.controls, self.seed, answer)


def explain(
    read: Read,
    wanted: Annotated[Wanted, APART],
    asked: ExplainOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    """Explain a link: who looks, by what, and if it matters.

    One verdict, and a sentence for each question behind it: which heads look there beyond shuffled texts,
    whether the word, the place or the context draws them, whether the answer needs them, why they look,
    whom they read, and whether the answer depends on the word at all. Each has its figures and the command
    that shows more.
    """
    check_delivery(delivery, "Explanation")
    inputs = read.inputs()
    with output.importing():
        linked = asked.linked()
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.claims.answers import check_tags
    from attnscope.session.questions.claims.explaining import check_pair
    from attnscope.session.questions.claims.explaining import explain as explained

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are looked for"
        return Answer(explained(reading, chosen, linked))

    names = partial(check_pair, asked=linked)
    check = partial(check_tags, command="explain") if linked.query is None else None
    question = Question(
        ask, request, read, wanted, delivery, output, whole=True, ranks=True, names=names, check=check
    )
    question.put(inputs, Purpose.ANYTHING)
