"""`attnscope why`: why one head looks from one token at another, or why the model answers what it does."""

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
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.claims.why import Answering, Link
    from attnscope.session.reading import Reading

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--query",
        metavar="TOKEN",
        help="The token that looks: its text or position, or the@5; with --answer the one that has this tag.",
    ),
    Brief("the token that looks: its text, the@7, position 5"),
]
To = Annotated[
    str | None,
    typer.Option("--to", "--key", metavar="TOKEN", help="The token that it looks at."),
    Brief("the token that is looked at, named likewise"),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="TOKEN|WORD",
        help="The key that --to is set against. Default: the mean of all others that may be looked at. With "
        "--answer another answer: then the difference of their logits is told.",
    ),
    Brief("another key; default: the mean of all the others"),
]
AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORD",
        help="In the place of a head: what each head, MLP, embedding and bias of the model brings to the "
        "logit of this answer directly, a word, a class, or a tag of the token --from.",
    ),
    Brief("no head: what every part brings to this answer"),
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

    query: From = None
    key: To = None
    against: Against = None
    patch_from: PatchFrom = None
    answer: AnswerName = None

    def link(self) -> "Link":
        from attnscope.session.questions.claims.why import Link

        query, key = _meant(self.query), _meant(self.key)
        if query is None or key is None:
            missing = "--from" if query is None else "--to"
            raise InputError(
                f"no {missing}: why takes --from TOKEN and --to TOKEN of a head, or --answer WORD"
            )
        return Link(query, key, _meant(self.against), _meant(self.patch_from))

    def answering(self, wanted: ArticleHead, output: Output) -> "Answering | None":
        """The answer that is to be explained, None where it is a head; `InputError` for both."""
        if self.answer is None:
            return None
        with output.importing():
            from attnscope.session.questions.claims.why import OF_ALL, Answering

        if self.key is not None or wanted != ArticleHead():
            raise InputError(OF_ALL)
        names = (self.answer, self.against, self.patch_from, self.query)
        return Answering(decoded(self.answer), *map(_meant, names[1:]))


def _meant(text: str | None) -> str | None:
    return None if text is None else decoded(text)


def why(
    read: Read,
    wanted: ArticleHead,
    asked: WhyOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    """Tell why a head looks there, or why the model answers so.

    A score is a sum over earlier heads, MLPs, embeddings and biases, told from the query and from the key:
    each side is the whole of it. Beside the share of a part stands what becomes of the score without it, and
    what becomes of it without other heads of the same layer: only what exceeds these is called a reason.
    With --answer the same of an answer's logit, or of how far it lies above another one's (--against).
    """
    if (answering := asked.answering(wanted, output)) is not None:
        _why_answer(read, answering, delivery, request=request, output=output)
        return
    check_delivery(delivery, "Why", many=read.source is not None)
    inputs = read.inputs()
    with output.importing():
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


def _why_answer(
    read: Read, answering: "Answering", delivery: Delivery, *, request: Request, output: Output
) -> None:
    check_delivery(delivery, "Contributions", many=read.source is not None)
    inputs = read.inputs()
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.claims.why import told_of, why_answer

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        return Answer(why_answer(reading, answering))

    over = told_of(answering.answer, answering.against)
    question = Question(ask, request, read, None, delivery, output, over=over)
    question.put(inputs, Purpose.ANSWER_OR_CLASS)
