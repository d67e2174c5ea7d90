"""`attnscope why`: why one head looks from one token at another."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, decoded
from attnscope.cli.options.model import ArticleHead, Request
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.claims.why import Link
    from attnscope.session.reading import Reading

From = Annotated[
    str,
    typer.Option(
        "--from", "--query", metavar="TOKEN", help="The token that looks: its text or position, or the@5."
    ),
    Brief("the token that looks: its text, the@7, position 5"),
]
To = Annotated[
    str,
    typer.Option("--to", "--key", metavar="TOKEN", help="The token that it looks at."),
    Brief("the token that is looked at, named likewise"),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="TOKEN",
        help="The key that --to is set against. Default: the mean of all others that may be looked at.",
    ),
    Brief("another key; default: the mean of all the others"),
]
PatchFrom = Annotated[
    str | None,
    typer.Option(
        "--patch-from",
        metavar="TEXT",
        help="Replace parts by what they are in this text, of as many tokens. Default: by their mean over "
        "the keys that --to is set against; a part of the query by its mean over the other tokens.",
    ),
    Brief("parts of this text in the place of means", metavar="TEXT"),
]


@dataclass(frozen=True)
class WhyOptions:
    """Which link is meant, and what it is set against."""

    PANEL = SHOWN

    query: From
    key: To
    against: Against = None
    patch_from: PatchFrom = None

    def link(self) -> "Link":
        from attnscope.session.questions.claims.why import Link

        against, other = (None if each is None else decoded(each) for each in (self.against, self.patch_from))
        return Link(decoded(self.query), decoded(self.key), against, other)


def why(
    read: Read,
    wanted: ArticleHead,
    asked: WhyOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    """Tell why a head looks there: what its score is made of.

    A score is a sum over earlier heads, MLPs, embeddings and biases, told from the query and from the key:
    each side is the whole of it. Beside the share of a part stands what becomes of the score without it, and
    what becomes of it without other heads of the same layer: only what exceeds these is called a reason.
    """
    check_delivery(delivery, "Why", many=read.source is not None)
    inputs = read.inputs()
    link = asked.link()
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.claims.why import check_link
    from attnscope.session.questions.claims.why import why as explained

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "a head is wanted"
        return Answer(explained(reading, chosen, link))

    names, over = partial(check_link, link=link), f"from {link.query} at {link.key}"
    question = Question(ask, request, read, wanted, delivery, output, names=names, over=over)
    question.put(inputs, Purpose.ATTENTION)
