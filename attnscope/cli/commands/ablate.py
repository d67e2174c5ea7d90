"""`attnscope ablate`: what the model's answer becomes without a head, or with its output of another text."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question, ranked_heads
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, decoded
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief, Former
from attnscope.session import effects
from attnscope.session.wanted import APART

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

Each = Annotated[
    bool,
    typer.Option(
        "--each",
        help="Take the chosen heads away one after the other only, and not all at once as well. So it is "
        "where neither --layer nor --head is given.",
    ),
]
With = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="zero|mean",
        help="What stands in the place of what is taken away: zeros, or its mean over shuffled texts. "
        "Default: zero; with --rank mean, unless --by is given.",
    ),
]
Link = Annotated[
    str | None,
    typer.Option(
        "--link",
        metavar="QUERY->KEY",
        help="Cut this link before the softmax and leave the rest of a head: two tokens or spans, such as "
        '"[MASK]->the door": every one of the first from every one of the second.',
    ),
    Brief('cut this one link: "[MASK]->door"', metavar="FROM->TO"),
    Former("--edge"),
]
AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORD",
        help="The answer whose probability is meant: a word, a class, a tag, follows. Of several tokens the "
        "probabilities are multiplied, each given those before. Default: the likeliest one.",
    ),
    Brief("whose probability is meant; default: the likeliest"),
]
PatchFrom = Annotated[
    str | None,
    typer.Option(
        "--patch-from",
        metavar="TEXT",
        help="Put in what this text, of as many tokens, has there, and show how much of the way from one "
        "answer to the other each makes (activation patching); with --part in both directions.",
    ),
    Former("--to"),
]
PartName = Annotated[
    str,
    typer.Option(
        "--part",
        metavar="head|mlp|attention|residual|position",
        help="What is taken away: heads, MLPs, all heads of a layer, what a layer hands on, or the learned "
        "vector of a position, in whose place the mean of the others stands. By layer; with --at by token.",
    ),
    Brief("mlp, attention, residual or position", metavar="PART"),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TOKEN",
        help="Change it at this token or span alone; pos:each is every token by itself, layer by layer. "
        "Default: all tokens.",
    ),
    Brief("at this token alone; pos:each: at each of them"),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="WORD|TEXT",
        help="Measure how far the answer's logit lies above this other answer's. Of a model without any "
        "head: the cosine of the text's vector to that of this text.",
    ),
]
Through = Annotated[
    str | None,
    typer.Option(
        "--via",
        metavar="L3H11|direct",
        help="Let only these later heads read what is changed: what of it comes to the answer through them "
        "alone (path patching). L3H11, L3H11.q by its queries (k, v), L3, all, or direct, past all heads.",
    ),
    Brief("what comes to the answer through this head alone", metavar="HEAD"),
]
Tagged = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--query",
        metavar="TOKEN",
        help="The token whose tag is the answer, of a model that tags tokens. Default: the one whose tag is "
        "surest.",
    ),
]
Rank = Annotated[
    bool,
    typer.Option(
        "--rank",
        help="Foretell what every head does from one backward pass, then really take the first ones away.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="patching|importance|attention-gradient|logit",
        help="What --rank foretells by: attribution patching, or a measure of `heads --measure`. "
        "Default: patching.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option("--top", "-k", metavar="N", help="How many of them --rank takes away. Default: 10."),
]
Texts = Annotated[
    int | None,
    typer.Option("--controls", metavar="N", help="Shuffled texts that a mean is over. Default: 30."),
]
DrawSeed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of shuffled texts and random heads.")
]


@dataclass(frozen=True)
class AblateOptions(effects.Ablating):
    """What is done to heads, as the user wrote it."""

    PANEL = SHOWN

    each: Each = False
    replacement: With = None
    link: Link = None
    answer: AnswerName = None
    patch_from: PatchFrom = None
    rank: Rank = False
    top: Top = None
    controls: Texts = None
    seed: DrawSeed = 0
    by: By = None
    part: PartName = "head"
    at: At = None
    against: Against = None
    via: Through = None
    query: Tagged = None


def ablate(
    read: Read,
    wanted: Annotated[Wanted, APART],
    asked: AblateOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    """Take heads away: what the answer becomes, beside others.

    Each effect stands beside what random heads and rounding do. The answer is the word of the first [MASK],
    the next token, the verdict on a pair, the text that an encoder-decoder writes (or --target), the class,
    or the tag of a token (--from).
    """
    wish, inputs = _decoded(asked), read.inputs()
    over = wish.over_prompts
    check_delivery(delivery, "Ablation", many=over is not None and read.source is not None)
    wish.check_wanted(wanted.layer, wanted.head)
    if wanted.layer is None and wanted.head is None:
        wish = replace(wish, each=True)
    from attnscope.session.opening import Purpose

    with output.importing():
        from attnscope.session.questions.claims.ablation import ablate as ablated
        from attnscope.session.questions.claims.places import names_of

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are wanted"
        result = ablated(reading, chosen, wish)
        if not result.heads:
            return Answer(result)
        return Answer(result, page=lambda: ranked_heads(reading, chosen, result))

    names = partial(names_of, asked=wish)
    question = Question(
        ask, request, read, wanted, delivery, output, whole=True, ranks=True, names=names, over=over
    )
    question.put(inputs, Purpose.ANSWER_OR_VECTOR)


def _decoded(asked: AblateOptions) -> AblateOptions:
    def meant(text: str | None) -> str | None:
        return None if text is None else decoded(text)

    return replace(
        asked,
        replacement=meant(asked.replacement),
        link=meant(asked.link),
        answer=meant(asked.answer),
        patch_from=meant(asked.patch_from),
        at=meant(asked.at),
        against=meant(asked.against),
        query=meant(asked.query),
    )
