"""`attnscope find`: which heads look from one token at another, or do anything else that has a name."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question, ranked_heads
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, Writing, decoded
from attnscope.cli.options.model import HeadsApart, Request
from attnscope.cli.options.shown import Looking
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.claims.finding import Wish
    from attnscope.session.reading import Reading

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
        metavar="previous|next|self|first|same|induction|punctuation|special",
        help="In place of two tokens: the keys of every query that are meant. same: the query's own token "
        "elsewhere; induction: what followed it before. Of a picture previous and next are the patches to "
        "the left and to the right; same, induction and punctuation are of texts alone.",
    ),
    Brief("previous, next, self, first, same, induction ...", metavar="NAME"),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like", metavar="L3H11", help="In place of tokens: likeness to this head, by divergence of rows."
    ),
    Brief("heads whose rows are like this head's"),
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
    controls: Count = 100
    seed: ControlSeed = 0

    @property
    def told(self) -> str:
        """What a head does that is to be found, in a few words."""
        if self.query is None and self.pattern is None and self.like is None:
            return "what is linked"
        if self.pattern is not None:
            return f"has the pattern {self.pattern}"
        return f"is like {self.like}" if self.like is not None else f"looks from {self.query} at {self.key}"

    def wish(self) -> "Wish":
        """The same for the session, checked."""
        from attnscope.session.questions.claims.finding import Wish, head_named

        query, key = (None if token is None else decoded(token) for token in (self.query, self.key))
        like = None if self.like is None else head_named(self.like)
        return Wish(query, key, self.pattern, like, self.controls, self.seed)


def find(
    read: Read,
    wanted: HeadsApart,
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
    inputs = read.inputs(writing)  # before anything is imported for it
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
        ask, request, read, wanted, delivery, output, ranks=True, names=names, over=asked.told
    )
    question.put(inputs, Purpose.ATTENTION)
