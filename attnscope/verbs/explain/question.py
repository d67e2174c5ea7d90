"""Explain a link: who looks, by what, and if it matters.

One verdict, and a sentence for each question behind it: which heads look there beyond shuffled texts,
whether the word, the place or the context draws them, whether the answer needs them, why they look,
whom they read, and whether the answer depends on the word at all. Each has its figures and the command
that shows more.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated

from attnscope.session.option import option
from attnscope.session.question import Question
from attnscope.session.wanted import APART
from attnscope.session.which import Heads, Name, SurestTag
from attnscope.verbs.find.question import Controlled, Find
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.verbs.explain.result import Explanation  # noqa: F401

FROM = option(
    "--from", "--query", metavar="TOKEN", usual=None,
    help="The token that looks: its text or position, or the@5; of a picture a patch (r2c4), of a sound "
    "a time (0.20s). It may be left out of a model that tags tokens: then it is the one whose tag is surest.",
    brief="the token that looks: its text, the@7, position 5",
)  # fmt: skip
TO = option(
    "--to", "--key", metavar="TOKEN", help="The token that it looks at, named likewise.",
    brief="the token that is looked at, named likewise",
)  # fmt: skip
OF_ANSWER = option(
    "--answer", metavar="WORD",
    help="The answer that is meant: a word, a class, the tag of --from. Default: the likeliest one.",
    brief="the answer that is meant; default: the likeliest",
)  # fmt: skip
CONTROLS = option(
    "--controls", metavar="N", help="How many controls of the same shape each head is held against."
)


@dataclass(frozen=True)
class Explain(SurestTag, Controlled, Heads, Question["Explanation"]):
    """One verdict on the link from `query` to `key`, out of all the questions that belong together.

    Which heads look there beyond their `controls`, whether the answer needs them and the link, what their
    scores come from, whom they read, and whether the answer depends on the word. What could not be asked is
    `unasked`, with the reason. `answer` is the answer that is meant, by default the likeliest; without a
    query a tagger is asked for the token whose tag is surest.
    """

    METHODS = ("Reading.explain",)
    KIND, TAKES, PURPOSE = "Explanation", APART, Purpose.ANYTHING
    RANKS = whole = True
    ANSWER = "attnscope.verbs.explain.answer:explain"
    NAMES = "attnscope.verbs.explain.answer:check_pair"

    query: Annotated[Name | None, FROM]
    key: Annotated[Name, TO]
    _: KW_ONLY
    answer: Annotated[str | None, OF_ANSWER] = None
    controls: Annotated[int, CONTROLS] = 100

    def __post_init__(self) -> None:
        self.wish  # noqa: B018 - refused in its words where there is none
        super().__post_init__()

    @property
    def wish(self) -> Find:
        """What is found first: the heads that look there."""
        query = self.key if self.query is None else self.query  # where it is not known yet
        return Find(query, self.key, controls=self.controls, seed=self.seed)


FORMS = (Explain,)
