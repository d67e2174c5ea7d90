"""`attnscope flow`: from a token back to the input through all layers, beside what replacing tokens does."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, Writing, decoded
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.options.shown import Looking
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief
from attnscope.errors import InputError
from attnscope.session.selection import check_seed
from attnscope.session.wanted import MEANS

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--query",
        metavar="TOKEN",
        help="The token to go back from: its text or position; a patch (r2c4), a time (0.20s); several words "
        '("the door", 4-5) are their mean; pooled is the one vector that the model makes of a text '
        "(pooled:mean, :first, :last and :pooler say how). It may be left out of a model that tags tokens: "
        "then it is the one whose tag is surest.",
    ),
    Brief("the token to go back from: its text or position"),
]
AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORD",
        help="The answer that tokens are replaced for; of several tokens the probabilities are multiplied. "
        "Default: the likeliest word.",
    ),
    Brief("the word that is meant; default: the likeliest"),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="WORD",
        help="Another word: what is measured, in every column, is how far the answer's logit lies above its.",
    ),
    Brief("another word that the answer is set against"),
]
ShuffleSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the shuffled effects.")]


def flow(
    read: Read,
    wanted: Annotated[Wanted, MEANS],
    looking: Looking,
    query: From = None,
    seed: ShuffleSeed = 0,
    answer: AnswerName = None,
    against: Against = None,
    *,
    delivery: Delivery,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Follow attention back to the input, beside replaced words.

    Rollout, flow, rollout of what is moved, value zeroing, and back from the answer gradient x input,
    integrated gradients and attention x gradient, beside what the answer (--against: its lead over
    another one) loses when a token is replaced: the rank correlation of the two, that of shuffled effects,
    and that of distance alone.
    Of a picture patches are replaced by their mean, of a sound frames by silence, neighbours together where
    there are many. From `pooled`, the vector of a whole text, it says how far that turns.
    """
    check_delivery(delivery, "Flow", many=read.source is not None)
    check_seed(seed)
    name, inputs = None if query is None else decoded(query), read.inputs(writing)
    from attnscope.session.opening import Purpose

    with output.importing():
        from attnscope.session.questions.claims.answers import check_tags
        from attnscope.session.questions.claims.flow import Meant, check_query
        from attnscope.session.questions.claims.flow import flow as followed
        from attnscope.session.questions.claims.pooled import is_pooled

    meant = Meant(*(None if each is None else decoded(each) for each in (answer, against)))

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "layers are wanted"
        return Answer(followed(reading, chosen, name, seed, looking, meant))

    # a word head has no pooler beside it
    if (pooled := name is not None and is_pooled(name, inputs.text or "")) and meant.named:
        raise InputError("a pooled vector answers nothing: leave --answer and --against out")
    purpose = Purpose.ATTENTION if pooled else Purpose.ATTENTION_AND_ANSWER
    names = None if name is None else partial(check_query, query=name, looking=looking)
    check = partial(check_tags, command="flow") if name is None else None
    over = "from the surest tag" if name is None else f"from {name}"
    question = Question(ask, request, read, wanted, delivery, output, names=names, check=check, over=over)
    question.put(inputs, purpose)
