"""`attnscope align`: which word of a text stands for which of another, or when each word is heard."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope import incoming
from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief
from attnscope.errors import InputError
from attnscope.session.wanted import CROSS

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

Gold = Annotated[
    Path | None,
    typer.Option(
        "--gold",
        metavar="FILE",
        help="What is right: links of this pair (0-0 1-2 2?1: source-target from 0, ? is possible), or of "
        "other pairs, one a line: source ||| target ||| links, words between blanks. Of a sound word, begin "
        "and end, parted by tabs, a word a line; of others the sound's file before them.",
    ),
    Brief("what is right, to score by"),
]
Learn = Annotated[
    Path | None,
    typer.Option(
        "--learn",
        metavar="FILE",
        help="Learn on such pairs or sounds how much each head counts, and how sure an answer is; each fifth "
        "of them is judged by the others.",
    ),
    Brief("gold to learn heads and sureness on"),
]


def align(
    read: Read,
    wanted: Annotated[Wanted, CROSS],
    gold: Gold = None,
    learn: Learn = None,
    *,
    delivery: Delivery,
    request: Request,
    output: Output,
) -> None:
    """Link words with their translation, or time what is said.

    By the cross-attention of a translator, a summariser or a recogniser of speech. Heads count alike where
    they are given (--head L1H0,L2H5) or named by the model's own settings, else by how sharp and monotone
    they are, or by what is learnt on gold; then each link has the chance that it is right. Words are linked
    as seen from both sides; those of a sound are timed by dynamic time warping. Without --target it is what
    the model writes itself.
    """
    for file in (gold, learn):
        incoming.check_there(file, "gold")
    inputs = read.inputs()
    if read.image is not None:
        raise InputError("align takes a text or a sound: attnscope heads --image looks at a picture")
    check_delivery(delivery, "Timing" if inputs.sensed else "Alignment", many=read.source is not None)
    from attnscope.session.opening import Purpose

    with output.importing():
        from attnscope.session.questions.claims.word_links import AligningWords
        from attnscope.session.questions.claims.word_times import TimingWords

    asked = (TimingWords if inputs.sensed else AligningWords)(gold, learn)

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are wanted"
        return Answer(asked.answer(reading, chosen))

    question = Question(ask, request, read, wanted, delivery, output)
    question.put(inputs, Purpose.ATTENTION_AND_ANSWER)
