"""`attnscope find`: which heads look from one token at another, or do anything else that has a name."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question, ranked_heads
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import SparedRead, Writing, check_something, decoded
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.options.shown import Looking
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief
from attnscope.errors import InputError
from attnscope.session.wanted import APART

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.claims.finding import Wish
    from attnscope.session.questions.claims.retrieving import Retrieving
    from attnscope.session.reading import Reading

RETRIEVAL = "retrieval"

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--query",
        metavar="TOKEN",
        help='The token that looks, or several words ("the door"), of which the mean is taken: their text; '
        "the@5 begins at position 5, the#2 is the second one; 4-5, pos:first, pos:last, pos:all; of a chat "
        "a message (role:user#2); of a picture a patch (r3c5: row 3, column 5), of a sound a time (0.20s).",
    ),
    Brief('what looks: its text, "the door", the@7, the#2, 4-5'),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        "--key",
        metavar="TOKEN",
        help="What it looks at, named likewise; of several tokens the weights are summed.",
    ),
    Brief("what is looked at, named likewise"),
]
PatternName = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="previous|next|self|first|same|induction|punctuation|special|retrieval",
        help="In place of two tokens: the keys of every query that are meant. same: the query's own token "
        "elsewhere; induction: what followed it before. Of a picture previous and next are the patches to "
        "the left and to the right; same, induction and punctuation are of texts alone. retrieval: a fact "
        "put into TEXT (default: a bundled one) that a question at its end asks for.",
    ),
    Brief("previous, next, same, induction, retrieval ...", metavar="NAME"),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like", metavar="L3H11", help="In place of tokens: likeness to this head, by divergence of rows."
    ),
    Brief("heads whose rows are like this head's"),
]
FactsFile = Annotated[
    Path | None,
    typer.Option(
        "--facts",
        metavar="FILE",
        help='What --pattern retrieval puts into the text: JSON lines {"needle": "The key of Al is red.", '
        '"question": "Question: what is the key of Al? Answer:", "answer": "red"}. Default: bundled facts.',
    ),
]
LengthsOfTexts = Annotated[
    str | None,
    typer.Option(
        "--lengths", metavar="N,N,...", help="Of --pattern retrieval: tokens of a text. Default: 256."
    ),
]
NeedleCount = Annotated[
    int | None,
    typer.Option(
        "--needles", metavar="N", help="Of --pattern retrieval: how many facts for each length. Default: 20."
    ),
]
Count = Annotated[
    int,
    typer.Option(
        "--controls",
        metavar="N",
        help="How many controls of the same shape each head is held against: the words of the text, those of "
        "one kind exchanged for one another; patches of a picture or frames of a sound.",
    ),
]
ControlSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the controls.")]


@dataclass(frozen=True)
class FindOptions:
    """What is to be found, and beside how many controls."""

    PANEL = SHOWN

    query: From = None
    key: To = None
    pattern: PatternName = None
    like: Like = None
    facts: FactsFile = None
    lengths: LengthsOfTexts = None
    needles: NeedleCount = None
    controls: Count = 100
    seed: ControlSeed = 0

    @property
    def retrieves(self) -> bool:
        """Whether heads that fetch are meant; `InputError` for options that go with these alone."""
        for name in ("facts", "lengths", "needles"):
            if getattr(self, name) is not None and self.pattern != RETRIEVAL:
                raise InputError(f"--{name} goes with --pattern {RETRIEVAL}")
        return self.pattern == RETRIEVAL

    def retrieving(self, text: str | None) -> "Retrieving":
        """The options for heads that fetch as the session takes them, checked."""
        from attnscope.session.questions.claims.retrieving import (
            LENGTHS,
            NEEDLES,
            Retrieving,
            facts_in,
            lengths_in,
        )

        for name, value in {"from": self.query, "to": self.key, "like": self.like}.items():
            if value is not None:
                raise InputError(f"--pattern {RETRIEVAL} is no pair and no likeness: leave --{name} out")
        facts = () if self.facts is None else facts_in(self.facts)
        lengths = LENGTHS if self.lengths is None else lengths_in(self.lengths)
        return Retrieving(text, facts, lengths, NEEDLES if self.needles is None else self.needles, self.seed)

    def wish(self) -> "Wish":
        """The options as the session takes them, checked."""
        from attnscope.session.questions.claims.finding import Wish, head_named

        query, key = (None if token is None else decoded(token) for token in (self.query, self.key))
        like = None if self.like is None else head_named(self.like)
        return Wish(query, key, self.pattern, like, self.controls, self.seed)


def find(
    read: SparedRead,
    wanted: Annotated[Wanted, APART],
    asked: FindOptions,
    delivery: Delivery,
    *,
    looking: Looking,
    writing: Writing,
    request: Request,
    output: Output,
) -> None:
    """Find heads that look from one token at another.

    Without --from and --to all links between two words are ranked. Each stands beside texts with other
    words. A head that looks so many tokens back does so whatever the words are: its weight in the controls
    says so. `depends on` says where a weight stays in them: with the position, with the word, or with
    neither (context). Patches of a picture and frames of a sound are exchanged as words are; what the model
    writes itself is read at once. Of many texts (--texts, --fill) each has its controls, and what is told is
    the mean over them, with its interval.
    """
    if asked.retrieves:
        _retrieve(read, wanted, asked, delivery, request=request, output=output)
        return
    check_something(read.text, read.ids, read.image, read.audio, read.texts, read.chat)
    inputs = read.inputs(writing)  # before anything is imported for it
    with output.importing():
        wish = asked.wish()
    kind = "Links" if wish.names_nothing else "Finding"
    check_delivery(delivery, kind, many=read.source is not None)
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.claims.finding import check_wish
    from attnscope.session.questions.claims.finding import find as found
    from attnscope.session.questions.claims.links import links_in

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are wanted"
        if wish.names_nothing:
            found_links = links_in(reading, chosen, wish, looking)
            return Answer(found_links.links, links=found_links)
        result = found(reading, chosen, wish, looking)
        return Answer(result, page=lambda: ranked_heads(reading, chosen, result))

    names = partial(check_wish, wish=wish, looking=looking)
    question = Question(
        ask, request, read, wanted, delivery, output, ranks=True, names=names, over=wish.phrase
    )
    question.put(inputs, Purpose.ATTENTION)


def _retrieve(
    read: SparedRead,
    wanted: Annotated[Wanted, APART],
    asked: FindOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    check_delivery(delivery, "Retrieval")
    if others := [
        name for name in ("ids", "image", "audio", "texts", "chat", "fill", "target") if getattr(read, name)
    ]:
        raise InputError(f"--pattern {RETRIEVAL} puts facts into one TEXT: leave --{others[0]} out")
    text = read.inputs().text
    with output.importing():
        retrieving = asked.retrieving(text)
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.claims.retrieving import check_retrieving, retrieve

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are wanted"
        return Answer(retrieve(reading, chosen, retrieving))

    check = partial(check_retrieving, asked=retrieving, code=request.trust_remote_code)
    question = Question(ask, request, read, wanted, delivery, output, check=check, own=text is not None)
    question.put(retrieving.first, Purpose.ANSWER)
